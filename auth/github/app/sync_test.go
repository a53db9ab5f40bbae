package app_test

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"satchel/auth"
	"satchel/auth/github/app"
	"satchel/auth/github/apptest"
	"satchel/gitstore"
	"satchel/gitstore/remotes"
	"satchel/gitstore/transport"
	"satchel/internal/fault"
	"satchel/internal/seal"
	"satchel/internal/space"
	"satchel/internal/testenv"
)

// synced is a space of ann that real git syncs with ada/notes.
type synced struct {
	*world
	installation int64
	remotes      *remotes.Manager
	git          *gitstore.Store
	args         string // file with the arguments of every git process
	errs         []error
}

func newSynced(t *testing.T) *synced {
	t.Helper()
	s := &synced{args: filepath.Join(t.TempDir(), "args")}
	real := testenv.NeedProgram(t, "git")
	bin := t.TempDir()
	script := fmt.Sprintf("#!/bin/sh\nfor a in \"$@\"; do printf '%%s\\n' \"$a\" >>'%s'; done\nexec '%s' \"$@\"\n", s.args, real)
	if err := os.WriteFile(filepath.Join(bin, "git"), []byte(script), 0o755); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", bin+string(os.PathListSeparator)+os.Getenv("PATH"))
	s.world, s.installation = withApp(t)
	log := slog.New(slog.NewTextHandler(s.log, &slog.HandlerOptions{Level: slog.LevelDebug}))
	client := transport.New(transport.Options{Logger: log})
	t.Cleanup(func() { client.Close() })
	var err error
	if s.git, err = gitstore.Open(gitstore.Options{Dir: filepath.Join(s.dir, "spaces"), Transport: client, Logger: log}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.git.Close() })
	if _, err := s.db.Migrate(t.Context(), remotes.Migrations()...); err != nil {
		t.Fatal(err)
	}
	box, err := seal.Load(filepath.Join(t.TempDir(), "server.key"))
	if err != nil {
		t.Fatal(err)
	}
	s.remotes = remotes.New(remotes.Options{DB: s.db, Git: s.git, Transport: client, Seal: box, Credentials: s.Client, Logger: log})
	t.Cleanup(func() { s.remotes.Close(context.WithoutCancel(t.Context())) })
	if err := s.remotes.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	initial := space.ChangeSet{Changes: []space.Change{{Path: "here.md", Content: []byte("here\n")}}}
	if _, err := s.git.Create(t.Context(), s.annSpace, initial, space.Meta{Author: space.Person{Name: "ann", Email: "ann@example.com"}}); err != nil {
		t.Fatal(err)
	}
	s.connect(s.notes)
	return s
}

func (s *synced) sync() space.RemoteStatus {
	s.t.Helper()
	st, err := s.remotes.SetAndSync(s.t.Context(), s.t.Context(), remotes.SetRequest{Space: s.annSpace, URL: s.CloneURL("ada/notes"), Kind: space.KindGitHub, Trusted: true}, nil)
	if err != nil {
		s.t.Fatal(err)
	}
	return st
}

// Real git pushes with a token that is valid only for the repository. The simulated GitHub
// refuses any other token.
func TestSyncsWithRealGit(t *testing.T) {
	s := newSynced(t)
	if st := s.sync(); st.State != space.RemotePushed {
		t.Fatalf("%+v", st)
	}
	if got, ok := s.gh.File("ada/notes", "here.md"); !ok || strings.TrimSpace(got) != "here" {
		t.Errorf("the repository has %q", got)
	}
	s.gh.Behave(apptest.Behaviour{NoHooks: true})
	s.gh.Suspend(s.installation)
	// The token is cached, and GitHub no longer accepts it.
	st, err := s.remotes.Sync(t.Context(), s.annSpace, nil)
	if err != nil || st.State != space.RemoteFailed || st.Problem != remotes.NoAccess || !strings.Contains(st.Detail+st.Remedy, "suspended") {
		t.Errorf("suspended: %+v, %v", st, err)
	}
	s.gh.Unsuspend(s.installation)
	if l, err := s.Recheck(t.Context(), s.annSpace); err != nil || l.State != auth.LinkConnected {
		t.Fatal(l, err)
	}
	if st, err := s.remotes.Sync(t.Context(), s.annSpace, nil); err != nil || st.State != space.RemotePushed {
		t.Errorf("unsuspended: %+v, %v", st, err)
	}
	s.gh.Choose(s.installation, "ada/diary")
	if st, err := s.remotes.Sync(t.Context(), s.annSpace, nil); err != nil || st.Problem != remotes.NoAccess {
		t.Errorf("taken away: %+v, %v", st, err)
	}
}

// Secrets exist only in memory. The test searches logs, errors, the database, the spaces
// with their git configuration, and the arguments of git for every token and client secret
// that GitHub sent.
func TestCanarySecretsAreNowhere(t *testing.T) {
	s := newSynced(t)
	s.sync()
	// GitHub's error messages can contain a secret from the request.
	canary := "ghs_canaryCanaryCanaryCanaryCanaryCanary"
	key := "-----BEGIN RSA PRIVATE KEY-----\ncanaryCanary"
	for _, path := range []string{"/login/oauth/access_token", "/user", "/user/installations", "/app/installations/*", "/repositories/*", "/applications/*"} {
		for _, status := range []int{400, 401, 403, 404, 422, 500} {
			flow, q := s.visit("ada")
			s.gh.Behave(apptest.Behaviour{NoHooks: true, Status: map[string]int{path: status}, Message: "bad credentials " + canary + " " + key})
			_, err := s.Finish(t.Context(), s.callback(), flow, q)
			_, err2 := s.Recheck(t.Context(), s.annSpace)
			s.Refused(repositoryAt(s.annSpace, ""))
			_, err3 := s.credential("ada/notes")
			s.errs = append(s.errs, err, err2, err3)
			s.gh.Behave(apptest.Behaviour{NoHooks: true})
			if _, err := s.Recheck(t.Context(), s.annSpace); err != nil {
				s.errs = append(s.errs, err)
			}
		}
	}
	_, err := s.Finish(t.Context(), s.callback(), nil, url.Values{"error": {canary}, "error_description": {canary}})
	_, err2 := s.Create(t.Context(), s.ann.ID, canary)
	s.errs = append(s.errs, err, err2)

	a := s.gh.App(s.slug())
	secrets := map[string]bool{canary: true, "canaryCanary": true, a.ClientSecret: true, a.Webhook: true, strings.Split(a.PrivateKey, "\n")[3]: true}
	s.seen.mu.Lock()
	for secret := range s.seen.secrets {
		secrets[secret] = true
	}
	s.seen.mu.Unlock()
	if len(secrets) < 20 {
		t.Fatalf("%d secrets were seen: the test would prove nothing", len(secrets))
	}
	places := map[string]string{"the log": s.log.String()}
	for i, err := range s.errs {
		if err != nil {
			places[fmt.Sprintf("error %d", i)] = err.Error() + fault.PublicOf(err) + fmt.Sprintf("%+v %#v", err, err) + unwrapped(err)
		}
	}
	args, err := os.ReadFile(s.args)
	if err != nil || !strings.Contains(string(args), "push") && !strings.Contains(string(args), "send-pack") {
		t.Fatalf("git was not called: %s, %v", args, err)
	}
	places["the arguments of git"] = string(args)
	files := 0
	err = filepath.WalkDir(s.dir, func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		b, err := os.ReadFile(name)
		files++
		places[strings.TrimPrefix(name, s.dir)] = string(b)
		return err
	})
	if err != nil || files < 5 {
		t.Fatal(files, err)
	}
	for place, text := range places {
		for secret := range secrets {
			if len(secret) > 8 && strings.Contains(text, secret) {
				t.Errorf("%s has a secret: %.12s…", place, secret)
			}
		}
	}
	if app, ok, err := s.App(t.Context()); err != nil || !ok || app.Secrets != (auth.GitHubSecrets{}) {
		t.Error("the App shows its secrets", err)
	}
}

func unwrapped(err error) string {
	text := ""
	for err != nil {
		text += err.Error()
		err = errors.Unwrap(err)
	}
	return text
}

var _ space.Credentials = (*app.Client)(nil)
