package server

import (
	"strings"
	"testing"

	"satchel/auth"
	"satchel/auth/github/app"
	"satchel/auth/github/apptest"
	"satchel/auth/store"
	"satchel/gitstore/remotes"
	"satchel/internal/fault"
	"satchel/internal/service"
	"satchel/internal/space"
	"satchel/internal/testenv"
)

// connected is a server whose first person connected ada/notes to their space.
type connected struct {
	*running
	gh    *apptest.Server
	ann   store.User
	space space.SpaceID
	notes int64
	found app.Found
}

func connect(t *testing.T) *connected {
	t.Helper()
	c := &connected{gh: apptest.Start(t, apptest.Options{})}
	c.gh.AddPerson("ada")
	c.notes = c.gh.AddRepository(apptest.Repository{Owner: "ada", Name: "notes", Private: true})
	cfg := settings(t)
	cfg.Auth.GitHub.URL = c.gh.URL
	c.running = boot(t, cfg)
	ctx := t.Context()
	users, err := c.Accounts.ListUsers(ctx)
	if err != nil || len(users) != 1 {
		t.Fatal(users, err)
	}
	c.ann = users[0]
	spaces, err := c.Accounts.SpacesOf(ctx, c.ann.ID)
	if err != nil || len(spaces) != 1 {
		t.Fatal(spaces, err)
	}
	c.space = spaces[0].ID

	if c.signsIn() {
		t.Error("people are offered to sign in with an App that there is not")
	}
	gh := c.github.client.Load()
	if gh.Hooked() {
		t.Error("GitHub reaches a server on loopback")
	}
	action, manifest, err := gh.Manifest("state", app.NewApp{})
	if err != nil || strings.Contains(string(manifest), "hook") {
		t.Fatal(string(manifest), err)
	}
	back, err := c.gh.CreateApp("ada", action, manifest)
	if err != nil {
		t.Fatal(err)
	}
	a, err := gh.Create(ctx, c.ann.ID, back.Query().Get("code"))
	if err != nil {
		t.Fatal(err)
	}
	if !c.signsIn() {
		t.Error("nobody is offered to sign in with the App")
	}
	c.gh.Install(apptest.Installing{App: a.Slug, Account: "ada", By: "ada"})
	at := c.issuer + app.PathCallback
	location, flow, err := gh.Begin(ctx, at, "state")
	if err != nil {
		t.Fatal(err)
	}
	if back, err = c.gh.Authorize("ada", location); err != nil {
		t.Fatal(err)
	}
	if c.found, err = gh.Finish(ctx, at, flow, back.Query()); err != nil {
		t.Fatal(err)
	}
	if _, err = gh.Link(ctx, c.ann.ID, c.space, c.found, c.notes); err != nil {
		t.Fatal(err)
	}
	return c
}

// signsIn reports whether the App can be signed in with.
func (c *connected) signsIn() bool {
	p := &appSignIn{client: c.github.client.Load(), store: c.Accounts, url: c.gh.URL, log: c.Log}
	defer p.close()
	return p.Ready()
}

func (c *connected) linked() (auth.RepositoryLink, bool) {
	c.t.Helper()
	l, ok, err := c.github.client.Load().Linked(c.t.Context(), c.space)
	if err != nil {
		c.t.Fatal(err)
	}
	return l, ok
}

// Whoever connects a repository has their space pushed there at once, and it follows
// its new name.
func TestAConnectedSpaceIsPushed(t *testing.T) {
	c := connect(t)
	had, has, err := c.remotes.Get(t.Context(), c.space)
	if err != nil || !has || had.Kind != space.KindGitHub || had.URL != c.gh.URL+"/ada/notes.git" || !had.Trusted {
		t.Fatalf("%+v, %v, %v", had, has, err)
	}
	testenv.WaitFor(c.t, "pushed", func() bool { return c.remotes.State(c.space) == space.RemotePushed })
	if _, ok := c.gh.File("ada/notes", "resources/instructions.md"); !ok {
		t.Error("the repository lacks the space's files")
	}
	c.gh.RenameRepository("ada/notes", "journal")
	if _, err := c.github.client.Load().Recheck(t.Context(), c.space); err != nil {
		t.Fatal(err)
	}
	testenv.WaitFor(c.t, "renamed", func() bool {
		had, _, _ := c.remotes.Get(t.Context(), c.space)
		return had.URL == c.gh.URL+"/ada/journal.git" && c.remotes.State(c.space) == space.RemotePushed
	})
}

// The connection ends with the remote, and the remote with the connection.
func TestAConnectionAndItsRemoteEndTogether(t *testing.T) {
	isGitHub := func(c *connected) bool {
		had, has, _ := c.remotes.Get(c.t.Context(), c.space)
		return has && had.Kind == space.KindGitHub
	}
	for _, test := range []struct {
		name string
		end  func(c *connected) error
	}{
		{"disconnected", func(c *connected) error { return c.github.client.Load().Unlink(c.t.Context(), c.ann.ID, c.space) }},
		{"another remote by a command", func(c *connected) error {
			_, err := c.Service.SetRemote(c.t.Context(), service.Operator(), service.SetRemoteInput{Space: service.SpaceRef{User: "ann"}, URL: "https://git.invalid/x.git", Trusted: true})
			return err
		}},
		{"no remote by a command", func(c *connected) error {
			_, err := c.Service.RemoveRemote(c.t.Context(), service.Operator(), service.RemoveRemoteInput{Space: service.SpaceRef{User: "ann"}})
			return err
		}},
		{"the space is given away", func(c *connected) error {
			bob, _, err := c.Accounts.CreateUser(c.t.Context(), store.Actor{}, store.NewUser{Name: "bob"})
			if err != nil {
				return err
			}
			return c.Accounts.GiveSpace(c.t.Context(), store.Actor{}, c.space, bob.ID)
		}},
		{"the person is removed", func(c *connected) error {
			if _, _, err := c.Accounts.CreateUser(c.t.Context(), store.Actor{}, store.NewUser{Name: "bob", Admin: true}); err != nil {
				return err
			}
			return c.Accounts.RemoveUser(c.t.Context(), store.Actor{}, c.ann.ID)
		}},
		{"another process disconnects it", func(c *connected) error {
			return c.Accounts.UnlinkRepository(c.t.Context(), c.ann.ID, "web", c.space)
		}},
	} {
		t.Run(test.name, func(t *testing.T) {
			c := connect(t)
			if err := test.end(c); err != nil {
				t.Fatal(err)
			}
			testenv.WaitFor(c.t, "ended", func() bool { _, ok := c.linked(); return !ok && !isGitHub(c) })
		})
	}
}

// News of a connection may come after a command gave the space another remote, or
// none: what the command did stays, and the connection ends.
func TestLateNewsOfAConnectionUndoesNoCommand(t *testing.T) {
	for name, command := range map[string]func(c *connected) error{
		"another remote": func(c *connected) error {
			return c.remotes.Set(c.t.Context(), remotes.SetRequest{Space: c.space, URL: "https://git.invalid/x.git", Trusted: true})
		},
		"no remote": func(c *connected) error { return c.remotes.Remove(c.t.Context(), c.space) },
	} {
		t.Run(name, func(t *testing.T) {
			c := connect(t)
			if err := command(c); err != nil {
				t.Fatal(err)
			}
			want, had, _ := c.remotes.Get(t.Context(), c.space)
			c.remoteChanged(t.Context(), c.space)
			if got, has, _ := c.remotes.Get(t.Context(), c.space); has != had || got.URL != want.URL {
				t.Errorf("the remote is %q, not %q", got.URL, want.URL)
			}
			if l, ok := c.linked(); ok {
				t.Errorf("still connected: %+v", l)
			}
		})
	}
}

// News of a command may come after the space was connected again: it stays so.
func TestLateNewsOfACommandEndsNoNewerConnection(t *testing.T) {
	c := connect(t)
	ctx := t.Context()
	if err := c.github.client.Load().Unlink(ctx, c.ann.ID, c.space); err != nil {
		t.Fatal(err)
	}
	if err := c.remotes.Set(ctx, remotes.SetRequest{Space: c.space, URL: "https://git.invalid/x.git", Trusted: true}); err != nil {
		t.Fatal(err)
	}
	link, err := c.github.client.Load().Link(ctx, c.ann.ID, c.space, c.found, c.notes)
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Accounts.UnlinkRepository(ctx, c.ann.ID, "web", c.space); err != nil {
		t.Fatal(err)
	}
	// The row alone is there yet, as between its writing and what follows it.
	if err := c.remotes.Set(ctx, remotes.SetRequest{Space: c.space, URL: "https://git.invalid/x.git", Trusted: true}); err != nil {
		t.Fatal(err)
	}
	if err := c.Accounts.LinkRepository(ctx, c.ann.ID, "web", link); err != nil {
		t.Fatal(err)
	}
	c.remoteChanged(ctx, c.space)
	if _, ok := c.linked(); !ok {
		t.Error("disconnected by news of what was before")
	}
	if got, _, _ := c.remotes.Get(ctx, c.space); got.Kind != space.KindGitHub {
		t.Errorf("the remote is %+v", got)
	}
}

// A space that holds what looks like a secret is not connected: its first push would
// take it along.
func TestSecretsAreFoundBeforeTheyArePushed(t *testing.T) {
	c := connect(t)
	if err := c.github.client.Load().Unlink(t.Context(), c.ann.ID, c.space); err != nil {
		t.Fatal(err)
	}
	token := "ghp_" + strings.Repeat("aB3dE6gH9", 4)
	change := space.ChangeSet{Changes: []space.Change{{Path: "notes/token.md", Content: []byte("the token is " + token + "\n")}}}
	if _, err := c.Git.Commit(t.Context(), c.space, change, space.Meta{Author: space.Person{Name: "ann"}}); err != nil {
		t.Fatal(err)
	}
	_, err := c.github.client.Load().Link(t.Context(), c.ann.ID, c.space, c.found, c.notes)
	if fault.CodeOf(err) != fault.Conflict || !strings.Contains(fault.PublicOf(err), "notes/token.md:1") || strings.Contains(err.Error(), token) {
		t.Errorf("%v", err)
	}
	if _, ok := c.linked(); ok || c.remotes.Has(c.space) {
		t.Error("connected")
	}
}

// What changed while no server ran is settled at the start.
func TestConnectionsAreSettledAtTheStart(t *testing.T) {
	c := connect(t)
	testenv.WaitFor(c.t, "pushed", func() bool { return c.remotes.State(c.space) == space.RemotePushed })
	cfg := c.Config
	c.end()
	core, err := OpenCore(t.Context(), cfg, "test", c.Log)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := core.remotes.Sync(t.Context(), c.space, nil); err != nil {
		t.Error(err)
	}
	if err := core.remotes.Remove(t.Context(), c.space); err != nil {
		t.Fatal(err)
	}
	if err := core.Close(); err != nil {
		t.Fatal(err)
	}
	again := boot(t, cfg)
	c.running = again
	testenv.WaitFor(c.t, "disconnected", func() bool { _, ok := c.linked(); return !ok })
}

func TestReachable(t *testing.T) {
	for origin, want := range map[string]bool{
		"https://notes.example.com": true, "https://notes.example.com:8443": true, "https://203.0.113.7": true,
		"http://notes.example.com": false, "https://localhost": false, "https://notes": false, "https://127.0.0.1": false, "https://[::1]": false,
		"https://192.168.1.4": false, "https://10.0.0.1:8443": false, "https://notes.local": false, "https://a.internal": false, "": false,
	} {
		if got := reachable(origin); got != want {
			t.Errorf("%s: %v", origin, got)
		}
	}
}
