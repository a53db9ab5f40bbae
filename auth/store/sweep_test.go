package store_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"satchel/auth"
	"satchel/auth/store"
	"satchel/internal/database"
	"satchel/internal/space"
	"satchel/internal/testenv"
)

// tables returns the number of rows of each table except the audit log.
func (w *world) tables() map[string]int {
	w.t.Helper()
	list := "SELECT name FROM sqlite_master WHERE type = 'table'"
	if w.db.Kind() == database.Postgres {
		list = "SELECT table_name FROM information_schema.tables WHERE table_schema = 'public'"
	}
	var names []string
	if err := w.db.Read(w.t.Context()).Raw(list).Scan(&names).Error; err != nil {
		w.t.Fatal(err)
	}
	out := map[string]int{}
	for _, n := range names {
		if strings.HasPrefix(n, "auth_") && n != "auth_audit" {
			out[n] = w.count(n)
		}
	}
	return out
}

// removed creates and removes a user, so that only the rows that outlive a removal are left.
func (w *world) removed(name string) {
	w.t.Helper()
	u, _, err := w.CreateUser(w.t.Context(), cli, store.NewUser{Name: name, Email: name + "@example.com", Identity: &store.Identity{Issuer: "https://issuer.example", Subject: name}})
	if err != nil {
		w.t.Fatal(err)
	}
	if err := w.RemoveUser(w.t.Context(), cli, u.ID); err != nil {
		w.t.Fatal(err)
	}
}

// deleted creates and deletes a space of a user, so that only the rows that outlive a
// deletion are left.
func (w *world) deleted(u store.User) {
	w.t.Helper()
	if _, err := w.DeleteSpace(w.t.Context(), cli, w.second(u, "deleted").ID, u.ID); err != nil {
		w.t.Fatal(err)
	}
}

// Sweep deletes what its comment says, and nothing else.
func TestSweep(t *testing.T) {
	each(t, func(t *testing.T, w *world) {
		ann, sp := w.user("ann", true)
		for _, id := range []string{"client-1", "unused"} {
			if err := w.RegisterClient(t.Context(), auth.Client{ID: id}); err != nil {
				t.Fatal(err)
			}
		}
		if err := w.CreateClient(t.Context(), cli, auth.Client{ID: "preset"}); err != nil {
			t.Fatal(err)
		}
		must := func(_ any, err error) {
			t.Helper()
			if err != nil {
				t.Fatal(err)
			}
		}
		tok := w.connect(ann, sp)
		w.code(consent(ann, sp))
		w.session(ann)
		link(t, w, ann, "https://issuer.example", "ann-1")
		if err := w.AddPasskey(t.Context(), cli, passkey(ann, "one")); err != nil {
			t.Fatal(err)
		}
		must(w.CreateLink(t.Context(), cli, ann.ID, "link", 15*time.Minute))
		must(w.PutFlow(t.Context(), "oidc", nil, 10*time.Minute))
		must(w.External(t.Context(), external("ann-1")))
		w.invite(store.NewInvitation{By: ann.ID})
		w.key(ann, sp, "read")
		revoked, err := w.Verify(t.Context(), w.key(ann, sp, "read"))
		must(nil, err)
		must(nil, w.RevokeKey(t.Context(), cli, revoked.Grant, ""))
		_, _, err = w.CreateKey(t.Context(), cli, store.NewKey{User: ann.ID, Space: sp.ID, Scopes: []space.Scope{space.ScopeRead}, Expires: w.clock().Add(time.Hour)})
		must(nil, err)

		must(nil, w.SetGitHubApp(t.Context(), ann.ID, "web", githubApp(7)))
		must(nil, w.LinkRepository(t.Context(), ann.ID, "web", githubLink(ann, sp, 70)))
		must(nil, w.AskForApproval(t.Context(), sp.ID, ann.ID))
		must(nil, w.SetSetting(t.Context(), cli, "invite", "admins"))
		must(w.SeenDelivery(t.Context(), "11111111-aaaa"))

		w.removed("gone")
		w.deleted(ann)

		before := w.tables()
		for _, n := range before {
			if n == 0 {
				t.Fatalf("a table is empty before: %v", before)
			}
		}
		for _, step := range []struct {
			pass time.Duration // since the previous step
			gone map[string]int
		}{
			{0, nil},
			{10*time.Minute - time.Millisecond, nil},
			{time.Millisecond, map[string]int{"auth_flows": 1}},
			{5 * time.Minute, map[string]int{"auth_links": 1}},
			{day - 15*time.Minute, map[string]int{"auth_clients": 1}},                                          // the unused client
			{store.DefaultCodeLifetime, map[string]int{"auth_codes": 2}},                                       // a day after they expired
			{6*day - store.DefaultCodeLifetime, map[string]int{"auth_tokens": 1, "auth_github_deliveries": 1}}, // 7 days
			{23 * day, map[string]int{"auth_sessions": 1, "auth_github_requests": 1}},                          // 30 days
			{60*day - time.Millisecond, nil},                                                                   //
			{time.Millisecond, map[string]int{"auth_families": 1, "auth_grants": 1, "auth_clients": 1}},        // 90 days: the revoked key and client-1
			{7 * day, map[string]int{"auth_invitations": 1, "auth_link_notices": 1}},                           // 90 days after their end
			{83 * day, map[string]int{"auth_grants": 1}},                                                       // 90 days after the end of the client's grant
			{3650 * day, nil}, // keys, also expired ones, and ways to sign in stay
		} {
			w.pass(step.pass)
			if err := w.Sweep(t.Context()); err != nil {
				t.Fatal(err)
			}
			after := w.tables()
			for name, n := range before {
				if got, want := n-after[name], step.gone[name]; got != want {
					t.Errorf("%v later: %d rows of %s are gone, want %d", step.pass, got, name, want)
				}
			}
			before = after
		}
		if w.works(tok) {
			t.Error("the token works")
		}
	})
}

// A client whose person uses it every month is not idle, even if other people left it.
func TestSweepKeepsClientsThatAreUsed(t *testing.T) {
	each(t, func(t *testing.T, w *world) {
		ann, sp := w.user("ann", true)
		if err := w.RegisterClient(t.Context(), auth.Client{ID: "client-1"}); err != nil {
			t.Fatal(err)
		}
		w.pass(store.DefaultUnusedClient)
		code := w.code(consent(ann, sp)) // before the client redeems it
		sweep := func() {
			t.Helper()
			if err := w.Sweep(t.Context()); err != nil {
				t.Fatal(err)
			}
			if n := w.count("auth_clients"); n != 1 {
				t.Fatal("the client is gone")
			}
		}
		sweep()
		tok, err := w.Redeem(t.Context(), redemption(code))
		if err != nil {
			t.Fatal(err)
		}
		for range 4 {
			w.pass(80 * day)
			sweep()
			tok = w.refresh(renewal(tok.Refresh))
		}
		if err := w.RevokeGrant(t.Context(), cli, tok.Grant, ann.ID); err != nil {
			t.Fatal(err)
		}
		w.pass(store.DefaultIdleClient - time.Hour)
		sweep()
	})
}

// Expired rows are deleted in batches, and none remain.
func TestSweepOfMany(t *testing.T) {
	each(t, func(t *testing.T, w *world) {
		for i := range 1203 {
			if _, err := w.PutFlow(t.Context(), "oidc", []byte(fmt.Sprint(i)), time.Minute+time.Duration(i%2)*time.Hour); err != nil {
				t.Fatal(err)
			}
		}
		w.pass(time.Minute)
		if err := w.Sweep(t.Context()); err != nil {
			t.Fatal(err)
		}
		if n := w.count("auth_flows"); n != 601 {
			t.Errorf("%d flows are left, want 601", n)
		}
	})
}

// The store sweeps by itself until it is closed. goleak looks for leftover goroutines.
func TestSweepComesByItself(t *testing.T) {
	each(t, func(t *testing.T, w *world) {
		if _, err := w.PutFlow(t.Context(), "oidc", nil, time.Minute); err != nil {
			t.Fatal(err)
		}
		w.pass(time.Minute)
		w.with(store.Options{Sweep: time.Millisecond})
		testenv.WaitFor(t, "a sweep", func() bool { return w.count("auth_flows") == 0 })
	})
}
