package store_test

import (
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

// A visit counts before it is written. It extends the session up to the session's maximum
// lifetime.
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

// Attack (session fixation): somebody puts a secret into the browser before the person
// signs in.
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
		// Only one of two simultaneous rotations succeeds.
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

// Attack: a user passes another user's ids to every method that takes a user and an id.
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

// A user sees their browser's description of itself, cleaned and shortened.
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
