package store_test

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"gorm.io/gorm"

	"satchel/auth"
	"satchel/auth/store"
	"satchel/internal/database"
	"satchel/internal/database/databasetest"
	"satchel/internal/fault"
	"satchel/internal/space"
)

func (w *world) key(u store.User, sp store.Space, scopes string) string {
	w.t.Helper()
	list, _, _ := space.ParseScopes(scopes)
	_, k, err := w.CreateKey(w.t.Context(), cli, store.NewKey{User: u.ID, Space: sp.ID, Scopes: list, Name: "laptop"})
	if err != nil {
		w.t.Fatal(err)
	}
	return k.Reveal()
}

func TestKeys(t *testing.T) {
	each(t, func(t *testing.T, w *world) {
		ann, annSpace := w.user("ann", true)
		expires := w.clock().Add(90 * 24 * time.Hour)
		g, k, err := w.CreateKey(t.Context(), cli, store.NewKey{User: ann.ID, Space: annSpace.ID, Scopes: []space.Scope{space.ScopeRead, space.ScopeWrite}, Name: "laptop", Expires: expires})
		if err != nil {
			t.Fatal(err)
		}
		p, err := w.Verify(t.Context(), k.Reveal())
		if err != nil {
			t.Fatal(err)
		}
		want := auth.Principal{
			User: ann.ID, UserName: "ann", Admin: true, Space: annSpace.ID, SpaceName: "ann", Role: space.Owner,
			Grant: g.ID, Client: "laptop", Scopes: []space.Scope{space.ScopeRead, space.ScopeWrite},
			Expires: expires,
		}
		if fmt.Sprint(p) != fmt.Sprint(want) {
			t.Errorf("Verify:\ngot  %+v\nwant %+v", p, want)
		}
		keys, err := w.ListKeys(t.Context(), ann.ID)
		if err != nil || len(keys) != 1 || keys[0].ID != g.ID || keys[0].Name != "laptop" || keys[0].UserName != "ann" || keys[0].SpaceName != "ann" ||
			!keys[0].Expires.Equal(expires) || !keys[0].LastUsed.IsZero() || !keys[0].Revoked.IsZero() {
			t.Fatalf("ListKeys: %+v, %v", keys, err)
		}
		if err := w.Flush(t.Context()); err != nil {
			t.Fatal(err)
		}
		// The minute of the use began before the key was created.
		if keys, _ = w.ListKeys(t.Context(), ""); !keys[0].LastUsed.Equal(keys[0].Created) {
			t.Errorf("last used %v, made %v", keys[0].LastUsed, keys[0].Created)
		}
		if st, _ := w.Stats(t.Context()); st.Keys != 1 {
			t.Errorf("%d keys are in use, want 1", st.Keys)
		}
		// Attack: somebody uses a copy of the database.
		var rows []map[string]any
		if err := w.db.Read(t.Context()).Raw("SELECT * FROM auth_grants").Scan(&rows).Error; err != nil {
			t.Fatal(err)
		}
		if s := fmt.Sprint(rows); strings.Contains(s, k.Reveal()) || strings.Contains(s, fmt.Sprint([]byte(k.Reveal()))) {
			t.Error("the secret is in the database")
		}
		entries, _ := w.Audit(t.Context(), 0, 10)
		if s := fmt.Sprint(entries); strings.Contains(s, k.Reveal()[10:]) || !strings.Contains(s, "key.create") {
			t.Errorf("the audit log: %s", s)
		}
	})
}

// A key that ends stops working at the next request.
func TestKeyThatDoesNotWork(t *testing.T) {
	for _, tt := range []struct {
		name string
		do   func(t *testing.T, w *world, ann, bob store.User, team store.Space, id space.GrantID) error
		why  string
	}{
		{"revoked", func(t *testing.T, w *world, _, _ store.User, _ store.Space, id space.GrantID) error {
			return w.RevokeKey(t.Context(), cli, id, "")
		}, "revoked"},
		{"expired to the millisecond", func(t *testing.T, w *world, _, _ store.User, _ store.Space, _ space.GrantID) error {
			w.pass(time.Hour)
			return nil
		}, "expired"},
		{"user removed", func(t *testing.T, w *world, _, bob store.User, _ store.Space, _ space.GrantID) error {
			return w.RemoveUser(t.Context(), cli, bob.ID)
		}, "removed"},
		{"membership ended", func(t *testing.T, w *world, _, bob store.User, team store.Space, _ space.GrantID) error {
			return w.RemoveMember(t.Context(), cli, team.ID, bob.ID)
		}, "revoked"},
		{"Attack: membership ended behind the store's back", func(t *testing.T, w *world, _, bob store.User, team store.Space, _ space.GrantID) error {
			return w.db.Transact(t.Context(), func(tx *gorm.DB) error {
				return tx.Exec("DELETE FROM auth_members WHERE user_id = ? AND space_id = ?", string(bob.ID), string(team.ID)).Error
			})
		}, "no longer a member"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			each(t, func(t *testing.T, w *world) {
				ann, team := w.user("ann", true)
				bob, _ := w.user("bob", false)
				if err := w.AddMember(t.Context(), cli, team.ID, bob.ID, space.Editor); err != nil {
					t.Fatal(err)
				}
				g, k, err := w.CreateKey(t.Context(), cli, store.NewKey{User: bob.ID, Space: team.ID, Scopes: []space.Scope{space.ScopeRead}, Expires: w.clock().Add(time.Hour)})
				if err != nil {
					t.Fatal(err)
				}
				other := w.key(ann, team, "read")
				if _, err := w.Verify(t.Context(), k.Reveal()); err != nil {
					t.Fatalf("before: %v", err)
				}
				if err := tt.do(t, w, ann, bob, team, g.ID); err != nil {
					t.Fatal(err)
				}
				_, err = w.Verify(t.Context(), k.Reveal())
				wantCode(t, "after", err, fault.Unauthenticated)
				if !strings.Contains(fault.PublicOf(err), tt.why) || auth.ErrorCode(err) != "invalid_token" {
					t.Errorf("after: %v with %q; want it to say %q", err, auth.ErrorCode(err), tt.why)
				}
				if _, err := w.Verify(t.Context(), other); err != nil {
					t.Errorf("another's key: %v", err)
				}
			})
		})
	}
}

func TestUnknownKey(t *testing.T) {
	each(t, func(t *testing.T, w *world) {
		ann, sp := w.user("ann", true)
		k := w.key(ann, sp, "read")
		for name, bearer := range map[string]string{
			"empty":                   "",
			"of another server":       auth.NewKey().Reveal(),
			"its hash":                fmt.Sprintf("%x", auth.NewKey().Hash()),
			"with an SQL wildcard":    k[:len(k)-1] + "%",
			"Attack: SQL":             "satchel_' OR 1=1 --",
			"in other case":           strings.ToUpper(k),
			"a JWT":                   "eyJhbGciOiJub25lIn0.eyJzdWIiOiJhbm4ifQ.",
			"longer than the longest": strings.Repeat("a", auth.MaxBearerBytes*2),
		} {
			p, err := w.Verify(t.Context(), bearer)
			wantCode(t, name, err, fault.Unauthenticated)
			if p.User != "" {
				t.Errorf("%s: proves %s", name, p.User)
			}
		}
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		_, err := w.Verify(ctx, k)
		wantCode(t, "a request that has ended", err, fault.Canceled)
	})
}

// Attack: a reader keeps a key that was created while they could write.
func TestRoleLimitsScopes(t *testing.T) {
	each(t, func(t *testing.T, w *world) {
		_, team := w.user("ann", true)
		bob, _ := w.user("bob", false)
		if err := w.AddMember(t.Context(), cli, team.ID, bob.ID, space.Editor); err != nil {
			t.Fatal(err)
		}
		both, only := w.key(bob, team, "read write"), w.key(bob, team, "write")
		if err := w.AddMember(t.Context(), cli, team.ID, bob.ID, space.Reader); err != nil {
			t.Fatal(err)
		}
		p, err := w.Verify(t.Context(), both)
		if err != nil || p.Can(space.ScopeWrite) || !p.Can(space.ScopeRead) {
			t.Errorf("a reader with an editor's key: %+v, %v", p.Scopes, err)
		}
		_, err = w.Verify(t.Context(), only)
		wantCode(t, "a key of which nothing is left", err, fault.Unauthenticated)
		if err := w.AddMember(t.Context(), cli, team.ID, bob.ID, space.Editor); err != nil {
			t.Fatal(err)
		}
		if p, err := w.Verify(t.Context(), both); err != nil || !p.Can(space.ScopeWrite) {
			t.Errorf("an editor again: %+v, %v", p.Scopes, err)
		}
	})
}

func TestCreateKeyRefuses(t *testing.T) {
	each(t, func(t *testing.T, w *world) {
		ann, annSpace := w.user("ann", true)
		bob, bobSpace := w.user("bob", false)
		if err := w.AddMember(t.Context(), cli, annSpace.ID, bob.ID, space.Reader); err != nil {
			t.Fatal(err)
		}
		r, rw := []space.Scope{space.ScopeRead}, []space.Scope{space.ScopeRead, space.ScopeWrite}
		for _, tt := range []struct {
			name string
			n    store.NewKey
			want fault.Code
		}{
			{"no scope", store.NewKey{User: ann.ID, Space: annSpace.ID}, fault.Invalid},
			{"unknown scope", store.NewKey{User: ann.ID, Space: annSpace.ID, Scopes: []space.Scope{"admin"}}, fault.Invalid},
			{"two scopes in one", store.NewKey{User: bob.ID, Space: annSpace.ID, Scopes: []space.Scope{"read write"}}, fault.Invalid},
			{"write for a reader", store.NewKey{User: bob.ID, Space: annSpace.ID, Scopes: rw}, fault.Invalid},
			{"Attack: another's space", store.NewKey{User: ann.ID, Space: bobSpace.ID, Scopes: r}, fault.NotFound},
			{"unknown space", store.NewKey{User: ann.ID, Space: space.NewSpaceID(), Scopes: r}, fault.NotFound},
			{"unknown user", store.NewKey{User: "u_x", Space: annSpace.ID, Scopes: r}, fault.NotFound},
			{"expired", store.NewKey{User: ann.ID, Space: annSpace.ID, Scopes: r, Expires: w.clock()}, fault.Invalid},
			{"name with a control character", store.NewKey{User: ann.ID, Space: annSpace.ID, Scopes: r, Name: "a\tb"}, fault.Invalid},
		} {
			_, k, err := w.CreateKey(t.Context(), cli, tt.n)
			wantCode(t, tt.name, err, tt.want)
			if k.Reveal() != "" {
				t.Errorf("%s: a secret was made", tt.name)
			}
		}
		if st, _ := w.Stats(t.Context()); st.Keys != 0 {
			t.Errorf("%d keys were made", st.Keys)
		}
	})
}

func TestRevokeKey(t *testing.T) {
	each(t, func(t *testing.T, w *world) {
		ann, sp := w.user("ann", true)
		bob, _ := w.user("bob", false)
		k := w.key(ann, sp, "read")
		p, err := w.Verify(t.Context(), k)
		if err != nil {
			t.Fatal(err)
		}
		wantCode(t, "Attack: another's key", w.RevokeKey(t.Context(), cli, p.Grant, bob.ID), fault.NotFound)
		wantCode(t, "an unknown key", w.RevokeKey(t.Context(), cli, "g_x", ""), fault.NotFound)
		for range 2 { // the second call changes nothing
			if err := w.RevokeKey(t.Context(), cli, p.Grant, ann.ID); err != nil {
				t.Fatal(err)
			}
		}
		keys, err := w.ListKeys(t.Context(), ann.ID)
		if err != nil || len(keys) != 1 || !keys[0].Revoked.Equal(w.clock()) {
			t.Errorf("ListKeys: %+v, %v", keys, err)
		}
		if got := w.actions(); !strings.HasSuffix(got, "key.create key.revoke") {
			t.Errorf("the audit log has %s", got)
		}
	})
}

// A key that is created while its user is removed or leaves the space does not survive.
func TestKeyRace(t *testing.T) {
	each(t, func(t *testing.T, w *world) {
		_, team := w.user("ann", true)
		for i := range 10 {
			bob, _ := w.user(fmt.Sprint("bob", i), false)
			if err := w.AddMember(t.Context(), cli, team.ID, bob.ID, space.Reader); err != nil {
				t.Fatal(err)
			}
			var key auth.Secret
			var wg sync.WaitGroup
			wg.Go(func() {
				_, key, _ = w.CreateKey(t.Context(), cli, store.NewKey{User: bob.ID, Space: team.ID, Scopes: []space.Scope{space.ScopeRead}})
			})
			wg.Go(func() {
				if i%2 == 0 {
					w.RemoveUser(t.Context(), cli, bob.ID)
				} else {
					w.RemoveMember(t.Context(), cli, team.ID, bob.ID)
				}
			})
			wg.Wait()
			if _, err := w.Verify(t.Context(), key.Reveal()); fault.CodeOf(err) != fault.Unauthenticated {
				t.Fatalf("a key survived: %v", err)
			}
			keys, err := w.ListKeys(t.Context(), bob.ID)
			if err != nil || len(keys) > 0 && keys[0].Revoked.IsZero() {
				t.Fatalf("a key is not revoked: %+v, %v", keys, err)
			}
		}
	})
}

func TestLastUsedIsWrittenByClose(t *testing.T) {
	databasetest.Each(t, func(t *testing.T, db *database.DB) {
		w := newWorld(t, db)
		ann, sp := w.user("ann", true)
		k := w.key(ann, sp, "read")
		for range 3 {
			if _, err := w.Verify(t.Context(), k); err != nil {
				t.Fatal(err)
			}
			w.pass(time.Minute)
		}
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
		keys, err := w.ListKeys(t.Context(), "")
		if want := w.clock().Add(-time.Minute); err != nil || !keys[0].LastUsed.Equal(want) {
			t.Fatalf("last used %v, %v; want %v", keys[0].LastUsed, err, want)
		}
	})
}

// If Flush cannot write something, the next Flush writes it.
func TestFlushKeepsWhatItCouldNotWrite(t *testing.T) {
	each(t, func(t *testing.T, w *world) {
		ann, sp := w.user("ann", true)
		if _, err := w.Verify(t.Context(), w.key(ann, sp, "read")); err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		wantCode(t, "flush without time", w.Flush(ctx), fault.Canceled)
		if err := w.Flush(t.Context()); err != nil {
			t.Fatal(err)
		}
		if keys, err := w.ListKeys(t.Context(), ""); err != nil || keys[0].LastUsed.IsZero() {
			t.Fatalf("the use is lost: %+v, %v", keys, err)
		}
	})
}
