package store_test

import (
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"satchel/auth"
	"satchel/auth/store"
	"satchel/internal/fault"
	"satchel/internal/space"
)

func (w *world) session(u store.User) (auth.Secret, store.Session) {
	w.t.Helper()
	secret, s, err := w.StartSession(w.t.Context(), store.NewSession{User: u.ID, Method: "passkey", Agent: "Firefox", Address: "192.0.2.1"})
	if err != nil {
		w.t.Fatal(err)
	}
	return secret, s
}

func (w *world) signedIn(secret auth.Secret) bool {
	w.t.Helper()
	_, _, err := w.CheckSession(w.t.Context(), secret.Reveal())
	if err != nil && fault.CodeOf(err) != fault.Unauthenticated {
		w.t.Error(err)
	}
	return err == nil
}

func TestSession(t *testing.T) {
	each(t, func(t *testing.T, w *world) {
		ann, _ := w.user("ann", true)
		began := w.clock().Truncate(time.Millisecond)
		secret, made := w.session(ann)
		w.pass(time.Hour)
		u, s, err := w.CheckSession(t.Context(), secret.Reveal())
		if err != nil || u.ID != ann.ID || u.Name != "ann" || !u.Admin || u.Admitted != "command" {
			t.Fatalf("CheckSession: %+v, %v", u, err)
		}
		if s != made || s.Method != "passkey" || s.Agent != "Firefox" || s.Address != "192.0.2.1" || !s.Created.Equal(began) || !s.Seen.Equal(began) ||
			!s.Expires.Equal(began.Add(store.DefaultSessionLifetime)) {
			t.Errorf("the session is %+v", s)
		}
		list, err := w.Sessions(t.Context(), ann.ID)
		if err != nil || len(list) != 1 || list[0].ID != s.ID || !list[0].Seen.Equal(began.Add(time.Hour)) {
			t.Errorf("Sessions before it is written: %+v, %v", list, err)
		}
		if err := w.Flush(t.Context()); err != nil {
			t.Fatal(err)
		}
		if list, err = w.with(store.Options{}).Sessions(t.Context(), ann.ID); err != nil || !list[0].Seen.Equal(began.Add(time.Hour)) {
			t.Errorf("Sessions after it was written: %+v, %v", list, err)
		}
	})
}

func TestSessionEnds(t *testing.T) {
	for _, tt := range []struct {
		name string
		do   func(t *testing.T, w *world, bob store.User, s store.Session) error
	}{
		{"not seen for the whole idle time", func(t *testing.T, w *world, _ store.User, _ store.Session) error {
			w.pass(store.DefaultSessionIdle)
			return nil
		}},
		{"over, though seen each day", func(t *testing.T, w *world, _ store.User, _ store.Session) error {
			return w.exec("UPDATE auth_sessions SET expires = ?", w.clock().UnixMilli())
		}},
		{"signed out", func(t *testing.T, w *world, bob store.User, s store.Session) error {
			return w.EndSession(t.Context(), cli, bob.ID, s.ID)
		}},
		{"signed out everywhere", func(t *testing.T, w *world, bob store.User, _ store.Session) error {
			n, err := w.EndOtherSessions(t.Context(), cli, bob.ID, "")
			if n != 1 {
				t.Errorf("%d sessions ended", n)
			}
			return err
		}},
		{"user removed", func(t *testing.T, w *world, bob store.User, _ store.Session) error {
			return w.RemoveUser(t.Context(), cli, bob.ID)
		}},
		{"user suspended", func(t *testing.T, w *world, bob store.User, _ store.Session) error {
			w.suspend(bob)
			return nil
		}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			each(t, func(t *testing.T, w *world) {
				w.user("ann", true)
				bob, _ := w.listed("bob")
				secret, s := w.session(bob)
				if !w.signedIn(secret) {
					t.Fatal("not signed in before")
				}
				if err := tt.do(t, w, bob, s); err != nil {
					t.Fatal(err)
				}
				if w.signedIn(secret) {
					t.Error("signed in after")
				}
				_, err := w.RotateSession(t.Context(), secret.Reveal())
				wantCode(t, "Attack: rotate it", err, fault.Unauthenticated)
			})
		})
	}
}

// A visit counts before it is written, and keeps the session up to its end.
func TestSessionStaysWhileItIsUsed(t *testing.T) {
	each(t, func(t *testing.T, w *world) {
		ann, _ := w.user("ann", true)
		secret, _ := w.session(ann)
		for i := range 6 {
			w.pass(store.DefaultSessionIdle - time.Millisecond)
			if got, want := w.signedIn(secret), i < 6; got != want {
				t.Fatalf("visit %d: signed in is %v", i, got)
			}
			if err := w.Sweep(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		w.pass(6 * time.Millisecond)
		if w.signedIn(secret) {
			t.Error("signed in for longer than a session lasts")
		}
	})
}

// Attack (session fixation): a secret that was put into the browser before the
// person signs in.
func TestSignInAlwaysMakesAFreshSecret(t *testing.T) {
	each(t, func(t *testing.T, w *world) {
		ann, _ := w.user("ann", true)
		eve, _ := w.user("eve", false)
		planted, _ := w.session(eve)
		fresh, _, err := w.StartSession(t.Context(), store.NewSession{User: ann.ID, Method: "link", Replaces: planted.Reveal()})
		if err != nil {
			t.Fatal(err)
		}
		if fresh.Reveal() == planted.Reveal() || w.signedIn(planted) || !w.signedIn(fresh) {
			t.Error("the planted secret is good after the sign-in")
		}
		for _, other := range []string{"", "garbage", auth.NewSecret(auth.KindSession).Reveal(), auth.NewKey().Reveal()} {
			if _, _, err := w.StartSession(t.Context(), store.NewSession{User: ann.ID, Method: "link", Replaces: other}); err != nil {
				t.Errorf("the browser had %q: %v", other, err)
			}
		}
	})
}

func TestRotationKillsTheOldSecret(t *testing.T) {
	each(t, func(t *testing.T, w *world) {
		ann, _ := w.user("ann", true)
		old, s := w.session(ann)
		// Of two at once one gets the session.
		var got [2]auth.Secret
		var won atomic.Int32
		var wg sync.WaitGroup
		for i := range got {
			wg.Go(func() {
				var err error
				if got[i], err = w.RotateSession(t.Context(), old.Reveal()); err == nil {
					won.Add(1)
				}
			})
		}
		wg.Wait()
		if won.Load() != 1 || w.signedIn(old) {
			t.Errorf("%d rotations succeeded; the old secret is good: %v", won.Load(), w.signedIn(old))
		}
		fresh := got[0]
		if fresh.Reveal() == "" {
			fresh = got[1]
		}
		_, now, err := w.CheckSession(t.Context(), fresh.Reveal())
		if err != nil || now.ID != s.ID || !now.Expires.Equal(s.Expires) {
			t.Errorf("after the rotation: %+v, %v", now, err)
		}
	})
}

func TestSessionsOfOneUserAreBounded(t *testing.T) {
	each(t, func(t *testing.T, w *world) {
		ann, _ := w.user("ann", true)
		bob, _ := w.user("bob", false)
		bobs, _ := w.session(bob)
		first, _ := w.session(ann)
		for range 99 {
			w.session(ann)
		}
		if !w.signedIn(first) {
			t.Fatal("the first of 100 ended")
		}
		w.pass(time.Minute)
		last, _ := w.session(ann)
		list, err := w.Sessions(t.Context(), ann.ID)
		if err != nil || len(list) != 100 || !w.signedIn(last) || !w.signedIn(bobs) {
			t.Errorf("%d sessions of one user; the last is good: %v, %v", len(list), w.signedIn(last), err)
		}
	})
}

// Attack: another user's ids, on everything that takes a user and an id.
func TestAnothersIDsAreNotFound(t *testing.T) {
	each(t, func(t *testing.T, w *world) {
		ann, annSpace := w.user("ann", true)
		eve, _ := w.user("eve", false)
		secret, s := w.session(ann)
		link(t, w, ann, "https://issuer.example", "ann-1")
		if err := w.AddPasskey(t.Context(), cli, passkey(ann, "cred")); err != nil {
			t.Fatal(err)
		}
		tok := w.connect(ann, annSpace)
		_, inv, err := w.CreateInvitation(t.Context(), cli, store.NewInvitation{By: ann.ID, Lifetime: time.Hour})
		if err != nil {
			t.Fatal(err)
		}
		by := store.Actor{User: eve.ID, Via: "web"}
		for name, err := range map[string]error{
			"end a session":         w.EndSession(t.Context(), by, eve.ID, s.ID),
			"end a session of none": w.EndSession(t.Context(), by, "", s.ID),
			"remove a passkey":      w.RemovePasskey(t.Context(), by, eve.ID, []byte("cred")),
			"unlink an identity":    w.UnlinkIdentity(t.Context(), by, eve.ID, "https://issuer.example", "ann-1"),
			"revoke a grant":        w.RevokeGrant(t.Context(), by, tok.Grant, eve.ID),
			"revoke a key":          w.RevokeKey(t.Context(), by, tok.Grant, eve.ID),
			"revoke an invitation":  w.RevokeInvitation(t.Context(), by, inv.ID, eve.ID),
			"invite to a space": func() error {
				_, _, err := w.CreateInvitation(t.Context(), by, store.NewInvitation{By: eve.ID, Space: annSpace.ID, Role: space.Editor, Lifetime: time.Hour})
				return err
			}(),
			"grant a space": func() error {
				_, err := w.CreateCode(t.Context(), consent(eve, annSpace))
				return err
			}(),
			"find a space": func() error {
				_, err := w.FindSpace(t.Context(), eve.ID, string(annSpace.ID))
				return err
			}(),
		} {
			wantCode(t, name, err, fault.NotFound)
		}
		if n, err := w.EndOtherSessions(t.Context(), by, eve.ID, s.ID); n != 0 || err != nil {
			t.Errorf("EndOtherSessions ended %d, %v", n, err)
		}
		if list, err := w.Invitations(t.Context(), eve.ID); err != nil || len(list) != 0 {
			t.Errorf("Invitations: %v, %v", list, err)
		}
		if list, err := w.Sessions(t.Context(), eve.ID); err != nil || len(list) != 0 {
			t.Errorf("Sessions: %v, %v", list, err)
		}
		if list, err := w.Grants(t.Context(), eve.ID); err != nil || len(list) != 0 {
			t.Errorf("Grants: %v, %v", list, err)
		}
		if !w.signedIn(secret) || !w.works(tok) {
			t.Error("something of another's ended")
		}
	})
}

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
		// Attack: mails are asked for without end.
		for range 30 {
			w.pass(time.Second)
			mail = make("mail")
		}
		if n := w.count("auth_links"); n > 11 {
			t.Errorf("%d links of one user are open", n)
		}
		if _, _, err := w.PeekLink(t.Context(), mail); err != nil {
			t.Errorf("the newest mail: %v", err)
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

// Attack: sign-ins are begun without end. The newest ones are those that can be
// finished.
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

// What a browser says of itself is shown to its user, and is bounded.
func TestSessionShowsNoControlCharacters(t *testing.T) {
	each(t, func(t *testing.T, w *world) {
		ann, _ := w.user("ann", true)
		_, s, err := w.StartSession(t.Context(), store.NewSession{
			User: ann.ID, Method: "link", Agent: "Fire\x00fox\u202e\xff" + strings.Repeat("x", 100_000), Address: strings.Repeat("1", 1000),
		})
		if err != nil || !strings.HasPrefix(s.Agent, "Firefoxxx") || len(s.Agent) > 200 || len(s.Address) > 64 {
			t.Errorf("got %.30q with %d bytes, %d, %v", s.Agent, len(s.Agent), len(s.Address), err)
		}
	})
}
