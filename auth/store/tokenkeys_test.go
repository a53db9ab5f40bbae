package store_test

import (
	"strings"
	"testing"
	"time"

	"satchel/auth"
	"satchel/auth/store"
)

// A restart, or another process on the same database, changes nothing.
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

// Salts are made again each month; families of old ones refresh on, and old ones go
// once nobody needs them.
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
		// The newest token's generation before is of a salt that no family uses.
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

// A server that lost its key logs nobody out, and its clients get tokens of the
// new one.
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

// A server without a key tells nobody a token that the next one could not repeat.
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

// The database was put back to the state of an hour ago: what clients got since is
// known by its MAC.
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
