package transport_test

import (
	"encoding/base64"
	"fmt"
	"io/fs"
	"log/slog"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"satchel/gitstore/gitcmd"
	"satchel/gitstore/remotetest"
	"satchel/gitstore/transport"
	"satchel/internal/space"
	"satchel/internal/testenv"
)

// forms returns the forms in which the secret could appear.
func forms(user string) []string {
	both := []byte(user + ":" + secret)
	return []string{
		secret, url.QueryEscape(secret), url.PathEscape(secret),
		base64.StdEncoding.EncodeToString(both), base64.StdEncoding.EncodeToString([]byte(secret)),
		base64.RawURLEncoding.EncodeToString(both), "canary",
	}
}

func show(t *testing.T, where, text, user string) {
	t.Helper()
	for _, f := range forms(user) {
		if strings.Contains(text, f) {
			t.Errorf("%s shows the credential as %q: %.300q", where, f, text)
		}
	}
}

// recordingGit runs git from a directory before git's own. It records the arguments and the
// environment of every process that git starts.
func recordingGit(t *testing.T) (r gitcmd.Runner, argv, environ func() string) {
	t.Helper()
	real := testenv.NeedProgram(t, "git")
	dir := t.TempDir()
	name := filepath.Join(dir, "git")
	script := fmt.Sprintf(`#!/bin/sh
n=%s/$$
tr '\0' '\n' < /proc/$$/cmdline > $n.argv
env > $n.env
export GIT_EXEC_PATH=%s/exec
exec %s "$@"
`, dir, dir, real)
	if err := os.WriteFile(name, []byte(script), 0o700); err != nil {
		t.Fatal(err)
	}
	out, err := exec.Command(real, "--exec-path").Output()
	if err != nil {
		t.Fatal(err)
	}
	programs, err := os.ReadDir(strings.TrimSpace(string(out)))
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(filepath.Join(dir, "exec"), 0o700); err != nil {
		t.Fatal(err)
	}
	for _, p := range programs {
		inner := filepath.Join(strings.TrimSpace(string(out)), p.Name())
		body := fmt.Sprintf("#!/bin/sh\nn=%s/$$\ntr '\\0' '\\n' < /proc/$$/cmdline > $n.argv\nenv > $n.env\nexec %s \"$@\"\n", dir, inner)
		if err := os.WriteFile(filepath.Join(dir, "exec", p.Name()), []byte(body), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	all := func(ext string) func() string {
		return func() string {
			files, _ := filepath.Glob(filepath.Join(dir, "*"+ext))
			var b strings.Builder
			for _, f := range files {
				data, err := os.ReadFile(f)
				if err != nil {
					t.Error(err)
				}
				b.Write(data)
				b.WriteString("\n--\n")
			}
			return b.String()
		}
	}
	return gitcmd.Runner{Program: name}, all(".argv"), all(".env")
}

func TestTheCredentialIsNowhereButInTheEnvironmentOfTheTransfer(t *testing.T) {
	if _, err := os.Stat("/proc/self/cmdline"); err != nil {
		testenv.SkipOrFail(t, "there is no /proc")
	}
	git, argv, environ := recordingGit(t)
	var logs strings.Builder
	r := newRig(t, remotetest.Options{Username: "me", Password: secret, TLS: true}, transport.Options{})
	p := proxy(t, loopback(r.Host()))
	r.c = transport.New(transport.Options{Git: git, Egress: p, Logger: slog.New(slog.NewTextHandler(&logs, &slog.HandlerOptions{Level: slog.LevelDebug}))})
	defer r.c.Close()
	e := r.endpoint()
	e.Trusted = false
	e.Credential = space.Credential{Username: "me", Secret: secret}
	dir := repo(t)
	var told strings.Builder
	tell := func(s string) { told.WriteString(s + "\n") }

	var errs []error
	note := func(err error) {
		if err != nil {
			errs = append(errs, err)
		}
	}
	_, err := r.c.List(t.Context(), e)
	note(err)
	note(r.c.Fetch(t.Context(), e, dir, "main", "refs/remotes/origin/main", 0, tell))
	mine := space.CommitID(commit(t, dir, r.Head("notes", "main"), "b.md", "mine\n"))
	note(r.c.Push(t.Context(), e, dir, mine, "main", tell))
	if len(errs) != 0 {
		t.Fatal(errs)
	}
	if !strings.Contains(environ(), base64.StdEncoding.EncodeToString([]byte("me:"+secret))) {
		t.Error("the environment of git does not hold the credential: the test would prove nothing")
	}
	if !strings.Contains(environ(), "http."+e.URL+".extraHeader") || strings.Contains(environ(), "=http.extraHeader") {
		t.Error("the credential is not for the URL alone")
	}
	for _, program := range []string{"git-remote-https", "index-pack", "push", "fetch"} {
		if !strings.Contains(argv(), program) {
			t.Errorf("no argv of %s was seen: the test would prove nothing", program)
		}
	}
	// The remote repeats the credential in its messages and its body.
	r.Refuse("notes", "main", remotetest.Refusal{Text: "error: the token " + secret + " may not push\nerror: Authorization: Basic " + base64.StdEncoding.EncodeToString([]byte("me:"+secret)) + "\n"})
	note(r.c.Push(t.Context(), e, dir, space.CommitID(commit(t, dir, string(mine), "c.md", "again\n")), "main", tell))
	r.Refuse("notes", "main", remotetest.Refusal{})
	for _, status := range []int{401, 403, 404, 429, 500} {
		r.Inject(func(q remotetest.Request) remotetest.Fault {
			return remotetest.Status(status, "no: "+secret+" "+q.Header.Get("Authorization")+"\n")
		})
		_, err := r.c.List(t.Context(), e)
		note(err)
		note(r.c.Fetch(t.Context(), e, dir, "main", "refs/remotes/origin/main", 0, tell))
		note(r.c.Push(t.Context(), e, dir, mine, "main", tell))
	}
	if len(errs) != 16 {
		t.Fatalf("%d calls failed of 16", len(errs))
	}
	for _, err := range errs {
		show(t, "an error", err.Error()+fmt.Sprintf("%+v %#v", err, err), "me")
		te := fails(t, err, transport.ProblemOf(err))
		show(t, "an error's words", te.Public()+te.Remedy()+strings.Join(te.Said, "\n")+fmt.Sprint(te.Paths), "me")
		for _, path := range []string{dir, os.TempDir(), "/usr/lib"} {
			if strings.Contains(err.Error(), path) {
				t.Errorf("an error shows %s: %v", path, err)
			}
		}
	}
	show(t, "the progress", told.String(), "me")
	show(t, "the log", logs.String(), "me")
	if n := strings.Count(logs.String(), "A call to a git remote failed."); n != len(errs) {
		t.Errorf("%d failures were logged of %d", n, len(errs))
	}
	show(t, "an argv", argv(), "me")
	password, _ := p.URL().User.Password()
	for where, text := range map[string]string{"an argv": argv(), "the log": logs.String(), "the progress": told.String(), "an error": fmt.Sprint(errs)} {
		if strings.Contains(text, password) {
			t.Errorf("%s shows the proxy's credential", where)
		}
	}
	// The repository contains neither the credential nor the URL.
	err = filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		data, err := os.ReadFile(path)
		show(t, path, string(data), "me")
		if strings.Contains(string(data), r.Host()) {
			t.Errorf("%s names the remote", path)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

// Attack: a remote on the same server tries to get another remote's credential.
func TestACredentialIsForItsURLAlone(t *testing.T) {
	r := newRig(t, remotetest.Options{}, transport.Options{})
	other := remotetest.New(t, remotetest.Options{})
	other.Create("notes")
	e := r.endpoint()
	e.Credential = space.Credential{Secret: secret}
	for _, code := range []int{301, 302, 303, 307, 308} {
		r.Inject(func(q remotetest.Request) remotetest.Fault {
			return remotetest.Redirect(code, other.URL("notes")+"/info/refs?service="+q.Query.Get("service"))
		})
		_, err := r.c.List(t.Context(), e)
		fails(t, err, transport.Moved)
		fails(t, r.c.Fetch(t.Context(), e, repo(t), "main", "refs/heads/x", 0, nil), transport.Moved)
		dir := repo(t)
		fails(t, r.c.Push(t.Context(), e, dir, space.CommitID(commit(t, dir, "", "a", "b")), "main", nil), transport.Moved)
	}
	if n := len(other.Requests()); n != 0 {
		t.Errorf("%d requests reached the other server", n)
	}
	for _, q := range r.Requests() {
		if got := q.Header.Get("Authorization"); got != "Basic "+base64.StdEncoding.EncodeToString([]byte("x-access-token:"+secret)) {
			t.Errorf("a request has the authorization %q", got)
		}
	}
}
