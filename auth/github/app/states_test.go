package app_test

import (
	"context"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"

	"satchel/auth"
	"satchel/auth/github/app"
	"satchel/auth/github/apptest"
	"satchel/internal/fault"
)

// Access that ends at GitHub ends here, even with a cached token. It returns when GitHub
// restores it.
func TestStatesFollowGitHub(t *testing.T) {
	type step struct {
		name  string
		do    func(w *world, i int64)
		state auth.LinkState
	}
	for _, c := range []struct {
		name  string
		steps []step
	}{
		{"suspended, then unsuspended", []step{
			{"suspended", func(w *world, i int64) { w.gh.Suspend(i) }, auth.LinkSuspended},
			{"unsuspended", func(w *world, i int64) { w.gh.Unsuspend(i) }, auth.LinkConnected},
		}},
		{"deleted", []step{{"deleted", func(w *world, i int64) { w.gh.Uninstall(i) }, auth.LinkRemoved}}},
		{"the repository is taken away, and given back", []step{
			{"away", func(w *world, i int64) { w.gh.Choose(i, "ada/diary") }, auth.LinkRemoved},
			{"back", func(w *world, i int64) { w.gh.Choose(i, "ada/diary", "ada/notes") }, auth.LinkConnected},
		}},
		{"the repository is deleted", []step{{"deleted", func(w *world, _ int64) { w.gh.DeleteRepository("ada/notes") }, auth.LinkRemoved}}},
		{"the repository is given to another account", []step{{"moved", func(w *world, _ int64) { w.gh.TransferRepository("ada/notes", "acme") }, auth.LinkRemoved}}},
	} {
		for _, hooks := range []bool{true, false} {
			t.Run(fmt.Sprintf("%s, webhooks %v", c.name, hooks), func(t *testing.T) {
				w, i := withApp(t)
				w.connect(w.notes)
				if _, err := w.credential("ada/notes"); err != nil { // fills the cache
					t.Fatal(err)
				}
				if !hooks {
					w.gh.Behave(apptest.Behaviour{NoHooks: true})
				}
				for _, s := range c.steps {
					before := len(w.gh.Deliveries())
					s.do(w, i)
					// GitHub sends no event about a repository that the App can no longer
					// reach.
					if !hooks || len(w.gh.Deliveries()) == before {
						if err := w.RecheckAll(t.Context()); err != nil {
							t.Fatal(err)
						}
					} else {
						w.becomes(s.state)
					}
					if l, _, _ := w.Linked(t.Context(), w.annSpace); l.State != s.state {
						t.Fatalf("%s: %s, want %s", s.name, l.State, s.state)
					}
					_, err := w.credential("ada/notes")
					if want := s.state == auth.LinkConnected; (err == nil) != want || !want && fault.CodeOf(err) != fault.Unavailable {
						t.Errorf("%s: a token: %v", s.name, err)
					}
				}
			})
		}
	}
}

// A refused token causes a check that finds the new state of the link.
func TestARefusedTokenTellsWhy(t *testing.T) {
	for _, c := range []struct {
		name string
		do   func(w *world, i int64)
		want auth.LinkState
		says string
	}{
		{"suspended", func(w *world, i int64) { w.gh.Suspend(i) }, auth.LinkSuspended, "suspended at GitHub for ada"},
		{"deleted", func(w *world, i int64) { w.gh.Uninstall(i) }, auth.LinkRemoved, "can no longer reach ada/notes"},
		{"the repository is taken away", func(w *world, i int64) { w.gh.Choose(i, "ada/diary") }, auth.LinkRemoved, "Install the App again"},
		{"the App is deleted", func(w *world, _ int64) { w.gh.DeleteApp(w.slug()) }, auth.LinkConnected, "no longer knows this server's GitHub App"},
	} {
		t.Run(c.name, func(t *testing.T) {
			w, i := withApp(t)
			w.connect(w.notes)
			w.gh.Behave(apptest.Behaviour{NoHooks: true})
			c.do(w, i)
			w.Refused(repositoryAt(w.annSpace, "")) // remotes call this when a token does not work
			_, err := w.credential("ada/notes")
			l, _, _ := w.Linked(t.Context(), w.annSpace)
			if fault.CodeOf(err) != fault.Unavailable || !strings.Contains(fault.PublicOf(err), c.says) || l.State != c.want {
				t.Errorf("%v, %s", err, l.State)
			}
		})
	}
	t.Run("GitHub is down", func(t *testing.T) {
		w, _ := withApp(t)
		w.connect(w.notes)
		w.gh.Behave(apptest.Behaviour{Down: true})
		w.Refused(repositoryAt(w.annSpace, ""))
		_, err := w.credential("ada/notes")
		if l, _, _ := w.Linked(t.Context(), w.annSpace); err == nil || fault.CodeOf(err) != fault.Internal || l.State != auth.LinkConnected {
			t.Errorf("what passes by itself is a person's to mend: %v, %s", err, l.State)
		}
	})
}

// A new installation has a new id. It connects nothing until the person visits GitHub again.
func TestReinstalledWithANewID(t *testing.T) {
	w, i := withApp(t)
	old := w.connect(w.notes)
	w.gh.Uninstall(i)
	w.becomes(auth.LinkRemoved)
	again := w.install("ada", "ada/notes")
	w.gh.Idle()
	if err := w.RecheckAll(t.Context()); err != nil {
		t.Fatal(err)
	}
	if l, _, _ := w.Linked(t.Context(), w.annSpace); l.State != auth.LinkRemoved || l.Installation != old.Installation {
		t.Errorf("an installation connected itself: %+v", l)
	}
	if l := w.connect(w.notes); l.Installation != again || l.State != auth.LinkConnected {
		t.Errorf("%+v", l)
	}
	if _, err := w.credential("ada/notes"); err != nil {
		t.Error(err)
	}
}

// A person without the right to push cannot connect a repository, even if the App can reach
// it.
func TestAccessThatWasLost(t *testing.T) {
	w := newWorld(t)
	w.create(false)
	w.install("acme")
	w.gh.SetPermission("acme/wiki", "bob", "maintain")
	if _, err := w.Link(t.Context(), w.ann.ID, w.annSpace, w.find("bob"), w.wiki); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name string
		do   func()
		want auth.LinkState
	}{
		{"may read alone", func() { w.gh.SetPermission("acme/wiki", "bob", "read") }, auth.LinkLost},
		{"may push again", func() { w.gh.SetPermission("acme/wiki", "bob", "admin") }, auth.LinkConnected},
		{"is none there any more", func() { w.gh.SetPermission("acme/wiki", "bob", ""); w.gh.SetRole("acme", "bob", "") }, auth.LinkLost},
		{"has deleted the account", func() { w.gh.DeletePerson("bob") }, auth.LinkLost},
	} {
		c.do()
		l, err := w.Recheck(t.Context(), w.annSpace)
		if err != nil || l.State != c.want {
			t.Errorf("%s: %s, %v", c.name, l.State, err)
		}
		if _, err := w.credential("acme/wiki"); (err == nil) != (c.want == auth.LinkConnected) {
			t.Errorf("%s: a token: %v", c.name, err)
		}
	}
}

// OnState may wait for a sync that itself waits for its token, for example when a remote is
// changed.
func TestTokenIsRefusedWhileWhoIsToldWaits(t *testing.T) {
	entered, asked, told := make(chan struct{}, 9), make(chan struct{}), make(chan auth.LinkState, 9)
	var armed atomic.Bool
	w, i := withApp(t, func(o *app.Options) {
		o.OnState = func(ctx context.Context, l auth.RepositoryLink) error {
			if armed.Load() {
				entered <- struct{}{}
				select {
				case <-asked:
				case <-ctx.Done():
				}
				told <- l.State
			}
			return nil
		}
	})
	if _, err := w.Link(t.Context(), w.ann.ID, w.annSpace, w.find("ada"), w.notes); err != nil {
		t.Fatal(err)
	}
	w.gh.Behave(apptest.Behaviour{NoHooks: true})
	armed.Store(true)
	w.gh.RenameRepository("ada/notes", "journal")
	w.Refused(repositoryAt(w.annSpace, "")) // starts a check
	<-entered                               // OnState waits, and so no other check can start
	w.gh.Suspend(i)
	w.Refused(repositoryAt(w.annSpace, "")) // removes the token
	_, err := w.credential("ada/journal")
	if fault.CodeOf(err) != fault.Unavailable || !strings.Contains(fault.PublicOf(err), "suspended") {
		t.Errorf("a token of a suspended installation: %v", err)
	}
	close(asked)
	if one, other := <-told, <-told; one == other {
		t.Errorf("told %s twice", one)
	}
}
