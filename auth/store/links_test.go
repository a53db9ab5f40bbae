package store_test

import (
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"satchel/auth"
	"satchel/auth/store"
	"satchel/internal/fault"
)

func TestLinkIsUsedOnceOf20InParallel(t *testing.T) {
	each(t, func(t *testing.T, w *world) {
		ann, _ := w.user("ann", true)
		secret, err := w.CreateLink(t.Context(), cli, ann.ID, "mail", time.Hour)
		if err != nil {
			t.Fatal(err)
		}
		for range 3 {
			if u, method, err := w.PeekLink(t.Context(), secret.Reveal()); err != nil || u.ID != ann.ID || method != "mail" {
				t.Fatalf("PeekLink: %v, %q, %v", u.ID, method, err)
			}
		}
		release := w.holdUsers(5)
		var used atomic.Int32
		var wg sync.WaitGroup
		for range 20 {
			wg.Go(func() {
				u, method, err := w.UseLink(t.Context(), secret.Reveal())
				if err == nil {
					used.Add(1)
					if u.ID != ann.ID || method != "mail" {
						t.Errorf("UseLink: %v, %q", u.ID, method)
					}
				} else {
					wantCode(t, "a further use", err, fault.NotFound)
				}
			})
		}
		release()
		wg.Wait()
		if used.Load() != 1 || w.audited("link.use") != 1 {
			t.Errorf("used %d times", used.Load())
		}
		_, _, err = w.PeekLink(t.Context(), secret.Reveal())
		wantCode(t, "a look afterwards", err, fault.NotFound)
	})
}

// Attack: somebody requests so many mails to an address that they end the link for which
// its owner waits, or flood the owner.
func TestMailedLinksAreBounded(t *testing.T) {
	each(t, func(t *testing.T, w *world) {
		ann, _ := w.user("ann", true)
		first, err := w.CreateLink(t.Context(), cli, ann.ID, "mail", time.Hour)
		if err != nil {
			t.Fatal(err)
		}
		made := 1
		for range 20 {
			_, err := w.CreateLink(t.Context(), cli, ann.ID, "mail", time.Hour)
			if err == nil {
				made++
				continue
			}
			wantCode(t, "one too many", err, fault.Limited)
		}
		if made != 5 {
			t.Errorf("%d mails", made)
		}
		if _, _, err := w.UseLink(t.Context(), first.Reveal()); err != nil {
			t.Errorf("the link that the person waits for: %v", err)
		}
		w.pass(time.Hour)
		if _, err := w.CreateLink(t.Context(), cli, ann.ID, "mail", time.Hour); err != nil {
			t.Errorf("once they are over: %v", err)
		}
	})
}

func TestLinkThatDoesNotWork(t *testing.T) {
	each(t, func(t *testing.T, w *world) {
		w.user("ann", true)
		bob, _ := w.listed("bob")
		make := func(method string) string {
			t.Helper()
			secret, err := w.CreateLink(t.Context(), cli, bob.ID, method, time.Hour)
			if err != nil {
				t.Fatal(err)
			}
			return secret.Reveal()
		}
		refused := func(name, secret string, want fault.Code) {
			t.Helper()
			_, _, err := w.PeekLink(t.Context(), secret)
			wantCode(t, name+", looked at", err, want)
			_, _, err = w.UseLink(t.Context(), secret)
			wantCode(t, name+", used", err, want)
		}
		old, mail := make("link"), make("mail")
		newer := make("link")
		refused("a newer one was made", old, fault.NotFound)
		refused("unknown", auth.NewSecret(auth.KindLogin).Reveal(), fault.NotFound)
		refused("Attack: a key", auth.NewKey().Reveal(), fault.NotFound)
		refused("Attack: SQL", "' OR 1=1 --", fault.NotFound)
		for _, l := range []string{mail, newer} {
			if _, _, err := w.PeekLink(t.Context(), l); err != nil {
				t.Errorf("a link of another kind ended: %v", err)
			}
		}
		w.suspend(bob)
		refused("suspended", newer, fault.Forbidden)
		_, err := w.CreateLink(t.Context(), cli, bob.ID, "link", time.Hour)
		wantCode(t, "a link for a suspended user", err, fault.Forbidden)
		_, _, err = w.StartSession(t.Context(), store.NewSession{User: bob.ID, Method: "link"})
		wantCode(t, "a session of a suspended user", err, fault.Forbidden)
		if _, _, err := w.SuspendUnlisted(t.Context(), cli, func(string) bool { return true }); err != nil {
			t.Fatal(err)
		}
		w.pass(time.Hour)
		refused("expired to the millisecond", mail, fault.NotFound)
		last := make("link")
		if err := w.RemoveUser(t.Context(), cli, bob.ID); err != nil {
			t.Fatal(err)
		}
		refused("removed", last, fault.NotFound)
		_, err = w.CreateLink(t.Context(), cli, bob.ID, "link", time.Hour)
		wantCode(t, "a link for a removed user", err, fault.NotFound)
		if _, err := w.CreateLink(t.Context(), cli, bob.ID, "other", time.Hour); err == nil {
			t.Error("a link of an unknown method was made")
		}
	})
}

// Attack: somebody who is not an admin creates links for others, or keeps a link for the
// time when they are no longer an admin.
func TestLinkOfWhoIsNoAdmin(t *testing.T) {
	each(t, func(t *testing.T, w *world) {
		w.user("ann", true)
		bob, _ := w.user("bob", false)
		carl, _ := w.listed("carl")
		dora, _ := w.user("dora", true)
		for _, lost := range []struct {
			name       string
			user       store.User
			lose, gain func() error
		}{
			{"demoted", dora, func() error { return w.SetAdmin(t.Context(), cli, dora.ID, false) }, func() error { return w.SetAdmin(t.Context(), cli, dora.ID, true) }},
			{"suspended", carl, func() error { w.suspend(carl); return nil }, func() error {
				_, _, err := w.SuspendUnlisted(t.Context(), cli, func(string) bool { return true })
				return err
			}},
			{"removed", dora, func() error { return w.RemoveUser(t.Context(), cli, dora.ID) }, nil},
		} {
			must := func(err error) {
				t.Helper()
				if err != nil {
					t.Fatalf("%s: %v", lost.name, err)
				}
			}
			by := store.Actor{User: lost.user.ID, Via: "web"}
			must(w.SetAdmin(t.Context(), cli, lost.user.ID, true))
			link, err := w.CreateLink(t.Context(), by, bob.ID, "link", time.Hour)
			must(err)
			_, _, err = w.PeekLink(t.Context(), link.Reveal())
			must(err)
			must(lost.lose())
			_, _, err = w.PeekLink(t.Context(), link.Reveal())
			wantCode(t, lost.name+", the link looked at", err, fault.NotFound)
			_, _, err = w.UseLink(t.Context(), link.Reveal())
			wantCode(t, lost.name+", the link used", err, fault.NotFound)
			if n, ok, err := w.NoticeOf(t.Context(), link.Reveal()); err != nil || !ok || n.Expires.After(w.clock()) || !n.Used.IsZero() {
				t.Errorf("%s: it is told of as good: %+v, %v", lost.name, n, err)
			}
			_, err = w.CreateLink(t.Context(), by, bob.ID, "link", time.Hour)
			wantCode(t, lost.name+", another", err, fault.Forbidden)
			if lost.gain != nil {
				must(lost.gain())
				_, _, err := w.UseLink(t.Context(), link.Reveal())
				wantCode(t, lost.name+", and an admin again", err, fault.NotFound)
			}
		}
		_, err := w.CreateLink(t.Context(), store.Actor{User: bob.ID, Via: "web"}, dora.ID, "link", time.Hour)
		wantCode(t, "a member's for another", err, fault.Forbidden)
		_, err = w.CreateLink(t.Context(), store.Actor{User: bob.ID, Via: "web"}, bob.ID, "link", time.Hour)
		wantCode(t, "a member's for themselves", err, fault.Forbidden)
	})
}

func TestFlows(t *testing.T) {
	each(t, func(t *testing.T, w *world) {
		put := func(kind string, data []byte) string {
			t.Helper()
			secret, err := w.PutFlow(t.Context(), kind, data, 10*time.Minute)
			if err != nil {
				t.Fatal(err)
			}
			return secret.Reveal()
		}
		gone := func(name, kind, secret string) {
			t.Helper()
			_, err := w.TakeFlow(t.Context(), kind, secret)
			wantCode(t, name, err, fault.NotFound)
		}
		f := put("oidc", []byte("nonce"))
		gone("Attack: a flow of another kind", "github", f)
		var took atomic.Int32
		var wg sync.WaitGroup
		for range 20 {
			wg.Go(func() {
				if data, err := w.TakeFlow(t.Context(), "oidc", f); err == nil && string(data) == "nonce" {
					took.Add(1)
				}
			})
		}
		wg.Wait()
		if took.Load() != 1 {
			t.Errorf("taken %d times of 20 in parallel", took.Load())
		}
		gone("unknown", "oidc", auth.NewSecret(auth.KindFlow).Reveal())
		gone("nothing", "oidc", "")
		late := put("oidc", nil)
		w.pass(10 * time.Minute)
		gone("expired to the millisecond", "oidc", late)
		big := put("oidc", make([]byte, 64<<10))
		if data, err := w.TakeFlow(t.Context(), "oidc", big); err != nil || len(data) != 64<<10 {
			t.Errorf("64 KiB: %d, %v", len(data), err)
		}
		_, err := w.PutFlow(t.Context(), "oidc", make([]byte, 64<<10+1), time.Minute)
		wantCode(t, "over 64 KiB", err, fault.TooLarge)
		if data, err := w.TakeFlow(t.Context(), "oidc", put("oidc", nil)); err != nil || len(data) != 0 {
			t.Errorf("nothing to remember: %q, %v", data, err)
		}
	})
}

// Attack: somebody starts sign-ins without end. The newest ones can be finished.
func TestFlowsAreBounded(t *testing.T) {
	each(t, func(t *testing.T, w *world) {
		s := w.with(store.Options{MaxFlows: 5})
		var all []string
		for i := range 12 {
			w.pass(time.Second)
			secret, err := s.PutFlow(t.Context(), "oidc", []byte(fmt.Sprint(i)), time.Minute)
			if err != nil {
				t.Fatal(err)
			}
			all = append(all, secret.Reveal())
		}
		if n := w.count("auth_flows"); n != 5 {
			t.Errorf("%d flows are there", n)
		}
		for i, f := range all {
			data, err := s.TakeFlow(t.Context(), "oidc", f)
			if (err == nil) != (i >= 7) || err == nil && string(data) != fmt.Sprint(i) {
				t.Errorf("flow %d: %q, %v", i, data, err)
			}
		}
	})
}
