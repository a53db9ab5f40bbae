package app_test

import (
	"net/http"
	"testing"

	"satchel/auth/github/app"
	"satchel/auth/github/apptest"
	"satchel/internal/fault"
	"satchel/internal/testenv"
)

// gitStatus returns the answer of GitHub's git server to a token.
func (w *world) gitStatus(token, repository, service string) int {
	w.t.Helper()
	r, err := http.NewRequest(http.MethodGet, w.gh.URL+"/"+repository+".git/info/refs?service="+service, nil)
	if err != nil {
		w.t.Fatal(err)
	}
	r.SetBasicAuth("x-access-token", token)
	resp, err := http.DefaultClient.Do(r)
	if err != nil {
		w.t.Fatal(err)
	}
	resp.Body.Close()
	return resp.StatusCode
}

// A token reads one repository, and only for those who may read it at GitHub.
func TestTokensToRead(t *testing.T) {
	w, installation := withApp(t)
	ada, bob, mallory := w.gh.ID("ada"), w.gh.ID("bob"), w.gh.ID("mallory")
	token := func(r app.Reader, repository string) string {
		t.Helper()
		got, err := w.ReadToken(t.Context(), r, repository)
		if err != nil {
			t.Fatal(err)
		}
		return got
	}
	operator, anybody := app.Reader{Operator: true}, func(accounts ...int64) app.Reader { return app.Reader{Accounts: accounts} }

	read := token(anybody(mallory, ada), "ada/notes")
	for _, c := range []struct {
		repository, service string
		want                int
	}{
		{"ada/notes", "git-upload-pack", http.StatusOK},
		{"ada/notes", "git-receive-pack", http.StatusForbidden},
		{"ada/diary", "git-upload-pack", http.StatusNotFound},
	} {
		if got := w.gitStatus(read, c.repository, c.service); got != c.want {
			t.Errorf("%s of %s: %d, want %d", c.service, c.repository, got, c.want)
		}
	}
	if token(operator, "ada/diary") == "" {
		t.Error("the operator has no token for a repository with the App")
	}

	w.gh.SetPermission("ada/notes", "bob", "read")
	if token(anybody(bob), "ada/notes") == "" {
		t.Error("a collaborator has no token")
	}
	w.gh.SetPermission("ada/notes", "bob", "")
	for name, r := range map[string]app.Reader{"a former collaborator": anybody(bob), "a stranger": anybody(mallory), "a person without GitHub": anybody()} {
		if token(r, "ada/notes") != "" {
			t.Errorf("attack: %s has a token", name)
		}
	}
	for _, repository := range []string{"acme/wiki", "ada/absent", "nobody/nothing", "../x", "ada/.."} {
		if token(operator, repository) != "" {
			t.Errorf("a token for %s", repository)
		}
	}
	w.gh.Suspend(installation)
	if token(operator, "ada/notes") != "" {
		t.Error("a token of a suspended installation")
	}
}

func TestTokensToReadWithoutGitHub(t *testing.T) {
	w := newWorld(t)
	operator := app.Reader{Operator: true}
	if got, err := w.ReadToken(t.Context(), operator, "ada/notes"); got != "" || err != nil {
		t.Errorf("without an App: %q, %v", got, err)
	}
	w.create(false)
	w.install("ada", "ada/notes")
	for _, c := range []struct {
		behaviour apptest.Behaviour
		want      fault.Code
	}{
		{apptest.Behaviour{Down: true}, fault.Unavailable},
		{apptest.Behaviour{
			Status: map[string]int{"/repos/ada/notes/installation": http.StatusTooManyRequests},
			Header: map[string]http.Header{"/repos/ada/notes/installation": {"Retry-After": {"60"}}},
		}, fault.Limited},
	} {
		w.gh.Behave(c.behaviour)
		_, err := w.ReadToken(t.Context(), operator, "ada/notes")
		wantCode(t, string(c.want), err, c.want)
	}
}

// Every push to a repository with the App is reported, with its branch.
func TestPushesAreReported(t *testing.T) {
	type push struct {
		repository, branch string
		standard           bool
	}
	pushes := make(chan push, 10)
	w, _ := withApp(t, func(o *app.Options) {
		o.OnBranch = func(repository, branch string, standard bool) { pushes <- push{repository, branch, standard} }
	})
	w.gh.Push("ada/notes", map[string]string{"a.md": "a"})
	if got := testenv.Receive(t, "the push", pushes); got != (push{w.gh.URL + "/ada/notes", "main", true}) {
		t.Errorf("%+v", got)
	}
	w.gh.Idle()
	w.gh.Push("acme/wiki", map[string]string{"a.md": "a"}) // the App is not installed there
	w.gh.Idle()
	if len(pushes) > 0 {
		t.Errorf("another repository: %+v", <-pushes)
	}
}
