package store_test

import (
	"strings"
	"testing"
	"time"

	"satchel/auth"
	"satchel/auth/store"
)

// Tokens stay valid after a restart, and in another process on the same database.
func TestRestartKeepsEverything(t *testing.T) {
	each(t, func(t *testing.T, w *world) {
		ann, sp := w.user("ann", true)
		first := w.connect(ann, sp)
		second := w.refresh(renewal(first.Refresh))
		session, _, err := w.StartSession(t.Context(), store.NewSession{User: ann.ID, Method: "link"})
		if err != nil {
			t.Fatal(err)
		}
		flow, err := w.PutFlow(t.Context(), "oidc", []byte("nonce"), time.Minute)
		if err != nil {
			t.Fatal(err)
		}
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
		s := w.with(store.Options{})
		again, err := s.Refresh(t.Context(), renewal(first.Refresh))
		if err != nil || !samePair(again, second) {
			t.Errorf("Refresh after a restart: %v", err)
		}
		if _, err := s.VerifyAccess(t.Context(), second.Access.Reveal(), resource); err != nil {
			t.Errorf("VerifyAccess after a restart: %v", err)
		}
		if u, _, err := s.CheckSession(t.Context(), session.Reveal()); err != nil || u.ID != ann.ID {
			t.Errorf("CheckSession after a restart: %v, %v", u.ID, err)
		}
		if data, err := s.TakeFlow(t.Context(), "oidc", flow.Reveal()); err != nil || string(data) != "nonce" {
			t.Errorf("TakeFlow after a restart: %q, %v", data, err)
		}
	})
}

// There is a new salt each month. Families of old salts can still refresh. An old salt is
// deleted when no family needs it.
func TestTokenKeyRotation(t *testing.T) {
	each(t, func(t *testing.T, w *world) {
		ann, sp := w.user("ann", true)
		moving, staying := w.connect(ann, sp), w.connect(ann, sp)
		if n := w.count("auth_token_keys"); n != 1 {
			t.Fatalf("%d salts of one day", n)
		}
		w.pass(30 * day)
		old := moving
		moving = w.refresh(renewal(moving.Refresh))
		if n := w.count("auth_token_keys"); n != 2 {
			t.Fatalf("%d salts after 30 days", n)
		}
		if again := w.refresh(renewal(old.Refresh)); !samePair(again, moving) {
			t.Error("across the rotation the same token gives another pair")
		}
		for range 3 {
			if err := w.Sweep(t.Context()); err != nil {
				t.Fatal(err)
			}
			w.pass(25 * time.Hour)
		}
		if n := w.count("auth_token_keys"); n != 2 {
			t.Fatalf("%d salts while a family uses the first", n)
		}
		w.pass(30 * day)
		staying, before := w.refresh(renewal(staying.Refresh)), staying
		// The newest token is of a new salt. No family uses the salt of the generation
		// before it.
		for range 2 {
			if err := w.Sweep(t.Context()); err != nil {
				t.Fatal(err)
			}
			w.pass(10 * time.Minute)
			if w.count("auth_token_keys") != 3 {
				t.Fatal("a salt is gone that the window needs")
			}
		}
		_, err := w.Refresh(t.Context(), renewal(before.Refresh))
		wantCause(t, "Attack: reuse of a token of an old salt", err, auth.ErrInvalidGrant)
		if w.works(staying) {
			t.Error("the family outlives the reuse")
		}
		for range 3 {
			w.pass(25 * time.Hour)
			if err := w.Sweep(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		if n := w.count("auth_token_keys"); n != 2 {
			t.Errorf("%d salts are left, want that of the other family and the newest", n)
		}
		if moving = w.refresh(renewal(moving.Refresh)); !w.works(moving) {
			t.Error("a family of an old salt cannot go on")
		}
	})
}

// A server with another key logs nobody out. Clients then get tokens of the new key.
func TestAnotherServerKey(t *testing.T) {
	each(t, func(t *testing.T, w *world) {
		ann, sp := w.user("ann", true)
		first := w.connect(ann, sp)
		s := w.with(store.Options{TokenKey: []byte(strings.Repeat("k", 32))})
		if !w.works(first) {
			t.Error("the access token does not work")
		}
		second, err := s.Refresh(t.Context(), renewal(first.Refresh))
		if err != nil {
			t.Fatal(err)
		}
		if third, err := s.Refresh(t.Context(), renewal(second.Refresh)); err != nil || samePair(third, second) {
			t.Error(err)
		}
	})
}

// A server without a key returns no token that the next server could not repeat.
func TestNoServerKey(t *testing.T) {
	each(t, func(t *testing.T, w *world) {
		ann, sp := w.user("ann", true)
		code := w.code(consent(ann, sp))
		s := store.New(w.db, store.Options{Now: w.clock})
		defer s.Close()
		if _, err := s.Redeem(t.Context(), redemption(code)); err == nil {
			t.Error("a token was given without a key")
		}
		if _, err := w.Redeem(t.Context(), redemption(code)); err != nil {
			t.Errorf("the code was used up: %v", err)
		}
	})
}

// The database was restored to its state of an hour ago. The MAC proves the tokens that
// clients got since then.
func TestRefreshTokenOfAGenerationThatTheDatabaseLost(t *testing.T) {
	each(t, func(t *testing.T, w *world) {
		ann, sp := w.user("ann", true)
		first := w.connect(ann, sp)
		var hash []byte
		if err := w.db.Read(t.Context()).Raw("SELECT hash FROM auth_families").Row().Scan(&hash); err != nil {
			t.Fatal(err)
		}
		third := w.refresh(renewal(w.refresh(renewal(first.Refresh)).Refresh))
		if err := w.exec("UPDATE auth_families SET generation = 1, hash = ?", hash); err != nil {
			t.Fatal(err)
		}
		if err := w.exec("DELETE FROM auth_tokens WHERE generation > 1"); err != nil {
			t.Fatal(err)
		}
		w.pass(time.Hour)
		fourth := w.refresh(renewal(third.Refresh))
		if !w.works(fourth) || fourth.Refresh.Reveal() == third.Refresh.Reveal() {
			t.Error("the client cannot go on")
		}
	})
}
