package store_test

import (
	"sync"
	"testing"
	"time"

	"gorm.io/gorm"

	"satchel/auth"
	"satchel/auth/store"
	"satchel/internal/space"
)

func samePair(a, b auth.Tokens) bool {
	return a.Access.Reveal() == b.Access.Reveal() && a.Refresh.Reveal() == b.Refresh.Reveal() && a.Grant == b.Grant
}

// Real clients refresh in parallel, and again after a lost answer.
func TestRefreshFiveTimesAtOnceAndAfterEightMinutes(t *testing.T) {
	each(t, func(t *testing.T, w *world) {
		ann, sp := w.user("ann", true)
		first := w.connect(ann, sp)
		w.pass(7 * day)
		release := w.holdUsers(5)
		got := make([]auth.Tokens, 5)
		var wg sync.WaitGroup
		for i := range got {
			wg.Go(func() {
				var err error
				if got[i], err = w.Refresh(t.Context(), renewal(first.Refresh)); err != nil {
					t.Error(err)
				}
			})
		}
		release()
		wg.Wait()
		w.pass(8 * time.Minute)
		got = append(got, w.refresh(renewal(first.Refresh)))
		for i, g := range got {
			if !samePair(g, got[0]) || !g.Expires.Equal(got[0].Expires) {
				t.Errorf("answer %d is another pair", i)
			}
		}
		if !w.works(got[0]) || w.audited("refresh.reuse")+w.audited("grant.revoke") != 0 {
			t.Error("somebody was logged out")
		}
		// All of them can continue.
		if next := w.refresh(renewal(got[0].Refresh)); !w.works(next) || samePair(next, got[0]) {
			t.Error("the successor has no successor")
		}
	})
}

// One of a client's processes is two generations behind. It gets the newest pair, and no
// process is logged out.
func TestRefreshOfTwoGenerationsAgo(t *testing.T) {
	each(t, func(t *testing.T, w *world) {
		ann, sp := w.user("ann", true)
		first := w.connect(ann, sp)
		second := w.refresh(renewal(first.Refresh))
		w.pass(5 * time.Minute)
		third := w.refresh(renewal(second.Refresh))
		w.pass(3 * time.Minute)
		if got := w.refresh(renewal(first.Refresh)); !samePair(got, third) {
			t.Error("within the window of its own rotation it gave another pair than the newest")
		}
		for _, tok := range []auth.Tokens{first, second, third} {
			if !w.works(tok) {
				t.Error("somebody was logged out")
			}
		}
		// The window is that of the token's own rotation, not of the newest one.
		w.pass(7 * time.Minute)
		_, err := w.Refresh(t.Context(), renewal(first.Refresh))
		wantCause(t, "after the window of its own rotation", err, auth.ErrInvalidGrant)
		if w.works(third) {
			t.Error("the family outlives the reuse")
		}
	})
}

// Attack: somebody uses a stolen refresh token after its owner, or before.
func TestRefreshReuseAfterTheWindowRevokesTheFamily(t *testing.T) {
	each(t, func(t *testing.T, w *world) {
		ann, sp := w.user("ann", true)
		first, other := w.connect(ann, sp), w.connect(ann, sp)
		second := w.refresh(renewal(first.Refresh))
		w.pass(store.DefaultRefreshReuse - time.Millisecond)
		if got := w.refresh(renewal(first.Refresh)); !samePair(got, second) {
			t.Error("a millisecond before its end the window is over")
		}
		w.pass(time.Millisecond)
		_, err := w.Refresh(t.Context(), renewal(first.Refresh))
		wantCause(t, "the used token", err, auth.ErrInvalidGrant)
		_, err = w.Refresh(t.Context(), renewal(second.Refresh))
		wantCause(t, "its successor", err, auth.ErrInvalidGrant)
		if w.works(first) || w.works(second) {
			t.Error("an access token outlives the family")
		}
		if !w.works(other) {
			t.Error("another family ended with it")
		}
		if w.audited("refresh.reuse") != 1 {
			t.Errorf("the audit log has %s", w.actions())
		}
	})
}

func TestRefreshWithoutAWindow(t *testing.T) {
	each(t, func(t *testing.T, w *world) {
		strict := w.with(store.Options{RefreshReuse: -1})
		ann, sp := w.user("ann", true)
		first := w.connect(ann, sp)
		if _, err := strict.Refresh(t.Context(), renewal(first.Refresh)); err != nil {
			t.Fatal(err)
		}
		_, err := strict.Refresh(t.Context(), renewal(first.Refresh))
		wantCause(t, "at once again", err, auth.ErrInvalidGrant)
	})
}

// A wrong request gets nothing, and logs the rightful client out of nothing.
func TestRefreshRefuses(t *testing.T) {
	each(t, func(t *testing.T, w *world) {
		ann, sp := w.user("ann", true)
		bob, bobSpace := w.user("bob", false)
		first, bobs := w.connect(ann, sp), w.connect(bob, bobSpace)
		current := w.refresh(renewal(first.Refresh))
		w.pass(time.Hour) // the window of first has ended; its own client would revoke the grant with it
		// forged returns another grant's token with some of the bytes of current's.
		forged := func(from, to int) string {
			_, b, err := auth.ParseSecret(auth.KindRefresh, bobs.Refresh.Reveal())
			if err != nil {
				t.Fatal(err)
			}
			_, mine, _ := auth.ParseSecret(auth.KindRefresh, first.Refresh.Reveal())
			copy(b[from:to], mine[from:to])
			return auth.SecretOf(auth.KindRefresh, b).Reveal()
		}
		for _, tt := range []struct {
			name  string
			wrong func(*auth.RefreshRequest)
			want  error
		}{
			{"Attack: another client", func(r *auth.RefreshRequest) { r.Client = "client-2" }, auth.ErrInvalidGrant},
			{"Attack: another client with a used one", func(r *auth.RefreshRequest) { *r = renewal(first.Refresh); r.Client = "client-2" }, auth.ErrInvalidGrant},
			{"no client", func(r *auth.RefreshRequest) { r.Client = "" }, auth.ErrInvalidGrant},
			{"Attack: another resource", func(r *auth.RefreshRequest) { r.Resource = "https://other.example/mcp" }, auth.ErrInvalidTarget},
			{"an unknown scope", func(r *auth.RefreshRequest) { r.Scopes = []space.Scope{"read", "admin"} }, auth.ErrInvalidScope},
			{"an access token", func(r *auth.RefreshRequest) { r.Refresh = current.Access.Reveal() }, auth.ErrInvalidGrant},
			{"an unknown token", func(r *auth.RefreshRequest) { r.Refresh = auth.NewSecret(auth.KindRefresh).Reveal() }, auth.ErrInvalidGrant},
			{"Attack: forged for another family", func(r *auth.RefreshRequest) { r.Refresh = forged(8, 24) }, auth.ErrInvalidGrant},
			{"Attack: forged with another's secret", func(r *auth.RefreshRequest) { r.Refresh = forged(32, 64) }, auth.ErrInvalidGrant},
			{"Attack: forged for a key that is not there", func(r *auth.RefreshRequest) {
				_, b, _ := auth.ParseSecret(auth.KindRefresh, first.Refresh.Reveal())
				b[0] = 0xff
				r.Refresh = auth.SecretOf(auth.KindRefresh, b).Reveal()
			}, auth.ErrInvalidGrant},
			{"Attack: a used one as one of a generation to come", func(r *auth.RefreshRequest) {
				_, b, _ := auth.ParseSecret(auth.KindRefresh, first.Refresh.Reveal())
				b[31] = 9
				r.Refresh = auth.SecretOf(auth.KindRefresh, b).Reveal()
			}, auth.ErrInvalidGrant},
			{"nothing", func(r *auth.RefreshRequest) { r.Refresh = "" }, auth.ErrInvalidGrant},
		} {
			r := renewal(current.Refresh)
			tt.wrong(&r)
			_, err := w.Refresh(t.Context(), r)
			wantCause(t, tt.name, err, tt.want)
		}
		if n := w.audited("refresh.reuse"); n != 0 || !w.works(current) {
			t.Errorf("a stranger logged the client out (%d reuses)", n)
		}
		if next := w.refresh(renewal(current.Refresh)); !w.works(next) {
			t.Error("the rightful client cannot go on")
		}
	})
}

func TestRefreshOfWhoIsGone(t *testing.T) {
	for _, tt := range []struct {
		name string
		do   func(t *testing.T, w *world, bob store.User, team store.Space, g space.GrantID) error
	}{
		{"away for the whole lifetime", func(t *testing.T, w *world, _ store.User, _ store.Space, _ space.GrantID) error {
			w.pass(store.DefaultRefreshLifetime)
			return nil
		}},
		{"user removed", func(t *testing.T, w *world, bob store.User, _ store.Space, _ space.GrantID) error {
			return w.RemoveUser(t.Context(), cli, bob.ID)
		}},
		{"user suspended", func(t *testing.T, w *world, bob store.User, _ store.Space, _ space.GrantID) error {
			w.suspend(bob)
			return nil
		}},
		{"membership ended", func(t *testing.T, w *world, bob store.User, team store.Space, _ space.GrantID) error {
			return w.RemoveMember(t.Context(), cli, team.ID, bob.ID)
		}},
		{"Attack: membership ended behind the store's back", func(t *testing.T, w *world, bob store.User, team store.Space, _ space.GrantID) error {
			return w.exec("DELETE FROM auth_members WHERE user_id = ? AND space_id = ?", string(bob.ID), string(team.ID))
		}},
		{"grant revoked", func(t *testing.T, w *world, bob store.User, _ store.Space, g space.GrantID) error {
			return w.RevokeGrant(t.Context(), cli, g, bob.ID)
		}},
		{"client deleted", func(t *testing.T, w *world, _ store.User, _ store.Space, _ space.GrantID) error {
			return w.DeleteClient(t.Context(), cli, "client-1")
		}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			each(t, func(t *testing.T, w *world) {
				_, team := w.user("ann", true)
				bob, _ := w.listed("bob")
				if err := w.AddMember(t.Context(), cli, team.ID, bob.ID, space.Editor); err != nil {
					t.Fatal(err)
				}
				tok := w.connect(bob, team)
				if err := tt.do(t, w, bob, team, tok.Grant); err != nil {
					t.Fatal(err)
				}
				_, err := w.Refresh(t.Context(), renewal(tok.Refresh))
				wantCause(t, "Refresh", err, auth.ErrInvalidGrant)
				if w.works(tok) {
					t.Error("the access token works on")
				}
				if n := w.audited("refresh.reuse"); n != 0 {
					t.Error("it was taken for a thief's")
				}
			})
		})
	}
}

func (w *world) exec(stmt string, args ...any) error {
	return w.db.Transact(w.t.Context(), func(tx *gorm.DB) error { return tx.Exec(stmt, args...).Error })
}

// The lifetime counts from the last use. A client that is used every month never has to ask
// the person again.
func TestRefreshLifetimeCountsFromLastUse(t *testing.T) {
	each(t, func(t *testing.T, w *world) {
		ann, sp := w.user("ann", true)
		tok := w.connect(ann, sp)
		for range 6 {
			w.pass(store.DefaultRefreshLifetime - time.Millisecond)
			if w.works(tok) {
				t.Fatal("the access token outlives its time")
			}
			if err := w.Sweep(t.Context()); err != nil {
				t.Fatal(err)
			}
			if tok = w.refresh(renewal(tok.Refresh)); !w.works(tok) {
				t.Fatal("the access token does not work")
			}
		}
		grants, err := w.Grants(t.Context(), ann.ID)
		if err != nil || len(grants) != 1 || !grants[0].Expires.Equal(w.clock().Add(store.DefaultRefreshLifetime)) {
			t.Errorf("Grants: %+v, %v", grants, err)
		}
	})
}

// A client may ask for fewer scopes (RFC 6749 section 6), and later for all of them again.
func TestRefreshForFewerScopes(t *testing.T) {
	each(t, func(t *testing.T, w *world) {
		ann, sp := w.user("ann", true)
		first := w.connect(ann, sp)
		less := renewal(first.Refresh)
		less.Scopes = []space.Scope{space.ScopeRead}
		narrow := w.refresh(less)
		p, err := w.VerifyAccess(t.Context(), narrow.Access.Reveal(), resource)
		if err != nil || auth.ScopeList(p.Scopes) != "read" || auth.ScopeList(narrow.Scopes) != "read" {
			t.Errorf("asked for read: %v, %v, %v", narrow.Scopes, p.Scopes, err)
		}
		// Parallel requests get the same refresh token, and each set of scopes has its own
		// access token.
		wide := w.refresh(renewal(first.Refresh))
		if wide.Refresh.Reveal() != narrow.Refresh.Reveal() || wide.Access.Reveal() == narrow.Access.Reveal() || auth.ScopeList(wide.Scopes) != "read write" {
			t.Errorf("asked for all at once: %v", wide.Scopes)
		}
		if again := w.refresh(less); !samePair(again, narrow) {
			t.Error("asked for read again: another pair")
		}
		if all := w.refresh(renewal(narrow.Refresh)); auth.ScopeList(all.Scopes) != "read write" {
			t.Errorf("the grant was narrowed to %v", all.Scopes)
		}
		more := consent(ann, sp)
		more.Scopes = []space.Scope{space.ScopeRead}
		only, err := w.Redeem(t.Context(), redemption(w.code(more)))
		if err != nil {
			t.Fatal(err)
		}
		r := renewal(only.Refresh)
		r.Scopes = []space.Scope{space.ScopeRead, space.ScopeWrite}
		_, err = w.Refresh(t.Context(), r)
		wantCause(t, "Attack: more than was granted", err, auth.ErrInvalidScope)
	})
}

// The server returns the pair again, although its access token has expired meanwhile.
func TestRefreshAgainWithAShortAccessLifetime(t *testing.T) {
	each(t, func(t *testing.T, w *world) {
		short := w.with(store.Options{AccessLifetime: time.Minute})
		ann, sp := w.user("ann", true)
		first := w.connect(ann, sp)
		second, err := short.Refresh(t.Context(), renewal(first.Refresh))
		if err != nil {
			t.Fatal(err)
		}
		w.pass(8 * time.Minute)
		if w.works(second) {
			t.Fatal("the access token outlives its minute")
		}
		if err := short.Sweep(t.Context()); err != nil {
			t.Fatal(err)
		}
		again, err := short.Refresh(t.Context(), renewal(first.Refresh))
		if err != nil || !samePair(again, second) || !w.works(again) || !again.Expires.Equal(w.clock().Add(time.Minute)) {
			t.Errorf("again: until %v, %v", again.Expires, err)
		}
		third, err := short.Refresh(t.Context(), renewal(second.Refresh))
		if err != nil {
			t.Fatal(err)
		}
		w.pass(2 * time.Minute)
		if err := short.Sweep(t.Context()); err != nil {
			t.Fatal(err)
		}
		if oldest, err := short.Refresh(t.Context(), renewal(first.Refresh)); err != nil || !samePair(oldest, third) {
			t.Errorf("two generations ago: %v", err)
		}
	})
}

// A client that refreshes without end does not fill the tables.
func TestRefreshWithoutEndIsBounded(t *testing.T) {
	each(t, func(t *testing.T, w *world) {
		ann, sp := w.user("ann", true)
		tok := w.connect(ann, sp)
		for range 60 {
			w.pass(time.Minute)
			tok = w.refresh(renewal(tok.Refresh))
		}
		if n := w.count("auth_tokens"); n > 20 {
			t.Errorf("%d access tokens of one grant are there", n)
		}
		if !w.works(tok) {
			t.Error("the newest does not work")
		}
	})
}

func (w *world) count(table string) (n int) {
	w.t.Helper()
	if err := w.db.Read(w.t.Context()).Raw("SELECT COUNT(*) FROM " + table).Scan(&n).Error; err != nil {
		w.t.Fatal(err)
	}
	return n
}

// with returns another store on the database, with other options.
func (w *world) with(o store.Options) *store.Store {
	o.Now, o.Flush = w.clock, time.Hour
	if o.TokenKey == nil {
		o.TokenKey = []byte(tokenKey)
	}
	s := store.New(w.db, o)
	w.t.Cleanup(func() {
		if err := s.Close(); err != nil {
			w.t.Error(err)
		}
	})
	return s
}
