package app_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"satchel/auth"
	"satchel/auth/github/app"
	"satchel/auth/github/apptest"
	"satchel/internal/fault"
	"satchel/internal/space"
)

// The test creates an App, installs it, signs a person in, connects a repository, gets a
// token, and pushes with the token.
func TestConnectsARepository(t *testing.T) {
	w := newWorld(t)
	ctx := t.Context()
	if _, ok, err := w.App(ctx); ok || err != nil {
		t.Fatal("there is an App", err)
	}
	a := w.create(false)
	if a.Slug == "" || a.Owner != "ada" || a.Creates || a.Secrets != (auth.GitHubSecrets{}) {
		t.Errorf("%+v", a)
	}
	to, err := w.InstallURL(ctx, "state-3")
	if err != nil {
		t.Fatal(err)
	}
	back, err := w.gh.InstallByPage("ada", to, "ada", "ada/notes")
	if err != nil || back.Path != app.PathSetup || back.Query().Get("state") != "state-3" {
		t.Fatal(back, err)
	}
	f := w.find("ada")
	if names(f) != "ada/notes" || f.Login != "ada" || f.Cut || len(f.Installations) != 1 || f.Installations[0].Account != "ada" || !strings.HasPrefix(f.Installations[0].ManageURL, w.gh.URL+"/") {
		t.Fatalf("%+v", f)
	}
	if people, _ := w.gh.Tokens(); people != 0 || w.gh.Revoked() != 1 {
		t.Errorf("%d tokens of people are good, %d were revoked", people, w.gh.Revoked())
	}
	l, err := w.Link(ctx, w.ann.ID, w.annSpace, f, w.notes)
	if err != nil || l.State != auth.LinkConnected || l.Repository != w.notes || l.GitHubUser != f.GitHubUser || l.FullName != "ada/notes" {
		t.Fatalf("%+v, %v", l, err)
	}
	if told := w.becomes(auth.LinkConnected); told != l {
		t.Errorf("told of %+v", told)
	}
	c, err := w.credential("ada/notes")
	if err != nil || c.Username != "x-access-token" || !strings.HasPrefix(c.Secret, "ghs_") || time.Until(c.Expires) < 50*time.Minute {
		t.Fatalf("%v, expires %v, %v", c.Username, c.Expires, err)
	}
	again, err := w.credential("ada/notes")
	if err != nil || again.Secret != c.Secret {
		t.Error("a good token is not used again", err)
	}
	// A token for one repository does not give access to the other.
	for repo, want := range map[int64]int{w.notes: http.StatusOK, w.diary: http.StatusNotFound} {
		r, _ := http.NewRequest(http.MethodGet, fmt.Sprintf("%s/repositories/%d", w.gh.API(), repo), nil)
		r.Header.Set("Authorization", "Bearer "+c.Secret)
		resp, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
		if resp.StatusCode != want {
			t.Errorf("repository %d: %d, want %d", repo, resp.StatusCode, want)
		}
	}
	if err := w.Unlink(ctx, w.ann.ID, w.annSpace); err != nil {
		t.Fatal(err)
	}
	w.becomes("")
	_, err = w.credential("ada/notes")
	wantCode(t, "a token after the end", err, fault.Unavailable)
}

// The stored result of a visit fits into a flow, contains no token, and does not change
// when it is stored.
func TestFoundIsJSONWithoutTokens(t *testing.T) {
	w, _ := withApp(t)
	f := w.find("ada")
	b, err := json.Marshal(f)
	if err != nil || secretForm.Match(b) {
		t.Fatalf("%s, %v", b, err)
	}
	var back app.Found
	if err := json.Unmarshal(b, &back); err != nil {
		t.Fatal(err)
	}
	if _, err := w.Link(t.Context(), w.ann.ID, w.annSpace, back, w.diary); err != nil {
		t.Error(err)
	}
}

// The stored result of a visit is limited. Repositories to which the person may push come
// first. The person learns that there are more.
func TestFoundIsBounded(t *testing.T) {
	w, _ := withApp(t, func(o *app.Options) { o.MaxFound = 700 })
	for i := range 6 {
		w.gh.AddRepository(apptest.Repository{Owner: "acme", Name: fmt.Sprintf("wiki-%d", i), Private: true})
	}
	w.gh.SetRole("acme", "ada", "member")
	w.gh.SetPermission("acme/wiki", "ada", "write")
	w.gh.AddPerson("owner")
	w.gh.SetRole("acme", "owner", "admin")
	w.gh.Install(apptest.Installing{App: w.slug(), Account: "acme", By: "owner"})
	f := w.find("ada")
	b, _ := json.Marshal(f)
	if !f.Cut || len(b) > 900 || len(f.Repositories) < 3 {
		t.Errorf("%d bytes, cut %v: %s", len(b), f.Cut, names(f))
	}
	for i, r := range f.Repositories {
		if r.Push != (i < 3) {
			t.Errorf("the order: %s", names(f))
			break
		}
	}
	few, _ := withApp(t, func(o *app.Options) { o.MaxRepositories = 1 })
	few.gh.Behave(apptest.Behaviour{PerPage: 1})
	if f := few.find("ada"); !f.Cut || len(f.Repositories) != 1 {
		t.Errorf("of two, one is read: %+v", f)
	}
}

// A repository on a later page is found.
func TestLaterPagesAreRead(t *testing.T) {
	w, _ := withApp(t)
	w.install("acme")
	w.gh.Behave(apptest.Behaviour{PerPage: 1})
	f := w.find("ada")
	if len(f.Installations) != 2 || len(f.Repositories) != 3 || f.Cut {
		t.Errorf("%d installations, %s, %v", len(f.Installations), names(f), f.Cut)
	}
	if _, err := w.Link(t.Context(), w.ann.ID, w.annSpace, f, w.wiki); err != nil {
		t.Error(err)
	}
}

func TestCreatesARepository(t *testing.T) {
	w := newWorld(t)
	if a := w.create(true); !a.Creates {
		t.Fatal("the App may not make repositories")
	}
	w.gh.Install(apptest.Installing{App: w.slug(), Account: "ada", By: "ada"})
	w.gh.Install(apptest.Installing{App: w.slug(), Account: "acme", By: "ada"})
	for _, c := range []struct {
		name, login string
		r           app.NewRepository
		want        string
		err         fault.Code
	}{
		{"one's own", "ada", app.NewRepository{Name: "memory", Private: true}, "ada/memory", ""},
		{"one's own by name", "ada", app.NewRepository{Owner: "ADA", Name: "memory-2", Private: true}, "ada/memory-2", ""},
		{"an organization's", "ada", app.NewRepository{Owner: "acme", Name: "memory", Private: true}, "acme/memory", ""},
		{"a name that is taken", "ada", app.NewRepository{Name: "notes"}, "", fault.Conflict},
		{"of an organization that is not theirs", "mallory", app.NewRepository{Owner: "acme", Name: "mine"}, "", fault.Forbidden},
		{"of no account", "ada", app.NewRepository{Owner: "../user", Name: "x"}, "", fault.Invalid},
		{"a path", "ada", app.NewRepository{Name: "a/b"}, "", fault.Invalid},
		{"a parent", "ada", app.NewRepository{Name: ".."}, "", fault.Invalid},
		{"an ending of git's", "ada", app.NewRepository{Name: "x.GIT"}, "", fault.Invalid},
		{"a description of two lines", "ada", app.NewRepository{Name: "x", Description: "a\nb"}, "", fault.Invalid},
	} {
		t.Run(c.name, func(t *testing.T) {
			flow, q := w.visit(c.login)
			f, err := w.FinishCreate(t.Context(), w.callback(), flow, q, c.r)
			wantCode(t, "made", err, c.err)
			if c.err != "" {
				return
			}
			if f.Created == 0 || f.Repositories[0].ID != f.Created || f.Repositories[0].FullName != c.want || !f.Repositories[0].Push {
				t.Fatalf("%+v", f)
			}
			if _, err := w.Link(t.Context(), w.ann.ID, w.annSpace, f, f.Created); err != nil {
				t.Error(err)
			}
		})
	}
	if people, _ := w.gh.Tokens(); people != 0 {
		t.Errorf("%d tokens of people are good", people)
	}
}

func TestAnAppThatMayNotMakesNoRepository(t *testing.T) {
	w, _ := withApp(t)
	flow, q := w.visit("ada")
	_, err := w.FinishCreate(t.Context(), w.callback(), flow, q, app.NewRepository{Name: "x"})
	wantCode(t, "made", err, fault.Forbidden)
	if n := w.gh.Count(http.MethodPost, "/user/repos"); n != 0 {
		t.Error("GitHub was asked")
	}
}

// A renamed repository stays connected under its new name.
func TestFollowsARenamedRepository(t *testing.T) {
	w, _ := withApp(t)
	w.connect(w.notes)
	w.gh.RenameRepository("ada/notes", "journal")
	if l := w.becomes(auth.LinkConnected); l.FullName != "ada/journal" || l.Repository != w.notes {
		t.Errorf("%+v", l)
	}
	_, err := w.credential("ada/notes")
	wantCode(t, "a token for the old name", err, fault.Unavailable)
	if _, err := w.credential("ada/journal"); err != nil {
		t.Error(err)
	}
}

// A person who changes their login keeps their connection. Somebody who takes the old login
// does not get the connection.
func TestFollowsARenamedPerson(t *testing.T) {
	w := newWorld(t)
	w.create(false)
	w.install("acme")
	w.gh.SetPermission("acme/wiki", "bob", "write")
	if _, err := w.Link(t.Context(), w.ann.ID, w.annSpace, w.find("bob"), w.wiki); err != nil {
		t.Fatal(err)
	}
	w.gh.RenameAccount("bob", "robert")
	l, err := w.Recheck(t.Context(), w.annSpace)
	if err != nil || l.State != auth.LinkConnected || l.GitHubLogin != "robert" {
		t.Errorf("%+v, %v", l, err)
	}
	w.gh.SetPermission("acme/wiki", "robert", "")
	w.gh.AddPerson("bob")
	w.gh.SetRole("acme", "bob", "admin")
	if l, err = w.Recheck(t.Context(), w.annSpace); err != nil || l.State != auth.LinkLost {
		t.Errorf("with another bob: %+v, %v", l, err)
	}
}

// RecheckOlder checks every link that was not confirmed lately, even if the check of
// another link fails.
func TestLooksAgainFromTimeToTime(t *testing.T) {
	var mu = make(chan time.Duration, 1)
	mu <- 0
	clock := func() time.Time { d := <-mu; mu <- d; return time.Now().Add(d) }
	w, _ := withApp(t, func(o *app.Options) { o.Now = clock })
	w.connect(w.notes)
	f := w.find("ada")
	if _, err := w.Link(t.Context(), w.eve.ID, w.eveSpace, f, w.diary); err != nil {
		t.Fatal(err)
	}
	w.gh.Behave(apptest.Behaviour{NoHooks: true})
	w.gh.SetPermission("ada/diary", "mallory", "write")
	asked := func() int { return w.gh.Count(http.MethodGet, "/app/installations/*") }
	before := asked()
	if err := w.RecheckOlder(t.Context(), time.Hour); err != nil || asked() != before {
		t.Errorf("%d looks at what was confirmed a moment ago, %v", asked()-before, err)
	}
	<-mu
	mu <- 2 * time.Hour
	w.gh.DeleteRepository("ada/notes")
	if err := w.RecheckOlder(t.Context(), time.Hour); err != nil || asked() != before+2 {
		t.Errorf("%d looks, %v", asked()-before, err)
	}
	for id, want := range map[space.SpaceID]auth.LinkState{w.annSpace: auth.LinkRemoved, w.eveSpace: auth.LinkConnected} {
		if l, _, _ := w.Linked(t.Context(), id); l.State != want {
			t.Errorf("%s, want %s", l.State, want)
		}
	}
	w.gh.Behave(apptest.Behaviour{Down: true})
	if err := w.RecheckAll(t.Context()); fault.CodeOf(err) != fault.Unavailable {
		t.Errorf("while GitHub is down: %v", err)
	}
	if l, _, _ := w.Linked(t.Context(), w.eveSpace); l.State != auth.LinkConnected {
		t.Error("an outage took a connection")
	}
}

func TestWaitsForApproval(t *testing.T) {
	w := newWorld(t)
	w.createFor("acme", false) // only the owner's account can install a private App
	to, err := w.InstallURL(t.Context(), "state-3")
	if err != nil {
		t.Fatal(err)
	}
	back, err := w.gh.InstallByPage("bob", to, "acme", "acme/wiki")
	if err != nil || back.Query().Get("setup_action") != "request" {
		t.Fatal(back, err)
	}
	if err := w.AskApproval(t.Context(), w.annSpace, w.ann.ID); err != nil {
		t.Fatal(err)
	}
	if _, ok, err := w.Waiting(t.Context(), w.annSpace); err != nil || !ok {
		t.Error("nobody waits", err)
	}
	if f := w.find("bob"); len(f.Installations) != 0 {
		t.Errorf("before the approval: %+v", f)
	}
	if _, err = w.gh.Approve("ada", "acme", "acme/wiki"); err != nil {
		t.Fatal(err)
	}
	w.gh.SetPermission("acme/wiki", "bob", "write")
	w.unlinked(w.annSpace) // the approval itself connects nothing
	if _, err := w.Link(t.Context(), w.ann.ID, w.annSpace, w.find("bob"), w.wiki); err != nil {
		t.Fatal(err)
	}
	if _, ok, _ := w.Waiting(t.Context(), w.annSpace); ok {
		t.Error("who is connected waits")
	}
}
