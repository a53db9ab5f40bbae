package store_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"satchel/auth"
	"satchel/auth/store"
	"satchel/internal/fault"
	"satchel/internal/space"
)

// An access token that ends stops working at the next request, and the error says what to do.
func TestAccessTokenThatDoesNotWork(t *testing.T) {
	for _, tt := range []struct {
		name string
		do   func(t *testing.T, w *world, bob store.User, team store.Space, tok auth.Tokens) error
		why  string
	}{
		{"expired to the millisecond", func(t *testing.T, w *world, _ store.User, _ store.Space, _ auth.Tokens) error {
			w.pass(store.DefaultAccessLifetime)
			return nil
		}, "expired"},
		{"grant revoked", func(t *testing.T, w *world, bob store.User, _ store.Space, tok auth.Tokens) error {
			return w.RevokeGrant(t.Context(), cli, tok.Grant, bob.ID)
		}, "revoked"},
		{"token revoked by its client", func(t *testing.T, w *world, _ store.User, _ store.Space, tok auth.Tokens) error {
			return w.RevokeToken(t.Context(), "client-1", tok.Access.Reveal())
		}, "revoked"},
		{"refresh token revoked by its client", func(t *testing.T, w *world, _ store.User, _ store.Space, tok auth.Tokens) error {
			return w.RevokeToken(t.Context(), "client-1", tok.Refresh.Reveal())
		}, "revoked"},
		{"client deleted", func(t *testing.T, w *world, _ store.User, _ store.Space, _ auth.Tokens) error {
			return w.DeleteClient(t.Context(), cli, "client-1")
		}, "revoked"},
		{"user removed", func(t *testing.T, w *world, bob store.User, _ store.Space, _ auth.Tokens) error {
			return w.RemoveUser(t.Context(), cli, bob.ID)
		}, "removed"},
		{"user suspended", func(t *testing.T, w *world, bob store.User, _ store.Space, _ auth.Tokens) error {
			w.suspend(bob)
			return nil
		}, "no longer use this server"},
		{"membership ended", func(t *testing.T, w *world, bob store.User, team store.Space, _ auth.Tokens) error {
			return w.RemoveMember(t.Context(), cli, team.ID, bob.ID)
		}, "revoked"},
		{"Attack: membership ended behind the store's back", func(t *testing.T, w *world, bob store.User, team store.Space, _ auth.Tokens) error {
			return w.exec("DELETE FROM auth_members WHERE user_id = ? AND space_id = ?", string(bob.ID), string(team.ID))
		}, "no longer a member"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			each(t, func(t *testing.T, w *world) {
				ann, team := w.user("ann", true)
				bob, _ := w.listed("bob")
				if err := w.AddMember(t.Context(), cli, team.ID, bob.ID, space.Editor); err != nil {
					t.Fatal(err)
				}
				tok := w.connect(bob, team)
				c := consent(ann, team)
				c.Client = "client-2"
				r := redemption(w.code(c))
				r.Client = c.Client
				other, err := w.Redeem(t.Context(), r)
				if err != nil {
					t.Fatal(err)
				}
				if !w.works(tok) {
					t.Fatal("it does not work before")
				}
				if err := tt.do(t, w, bob, team, tok); err != nil {
					t.Fatal(err)
				}
				_, err = w.VerifyAccess(t.Context(), tok.Access.Reveal(), resource)
				wantCode(t, "after", err, fault.Unauthenticated)
				if !strings.Contains(fault.PublicOf(err), tt.why) || auth.ErrorCode(err) != "invalid_token" {
					t.Errorf("after: %v with %q; want it to say %q", err, auth.ErrorCode(err), tt.why)
				}
				if tt.why != "expired" && !w.works(other) {
					t.Error("another's token ended with it")
				}
			})
		})
	}
}

func TestUnknownAccessToken(t *testing.T) {
	each(t, func(t *testing.T, w *world) {
		ann, sp := w.user("ann", true)
		tok := w.connect(ann, sp)
		access := tok.Access.Reveal()
		session, _, err := w.StartSession(t.Context(), store.NewSession{User: ann.ID, Method: "link"})
		if err != nil {
			t.Fatal(err)
		}
		for name, tt := range map[string]struct{ bearer, resource string }{
			"empty":                           {"", resource},
			"of another server":               {auth.NewSecret(auth.KindAccess).Reveal(), resource},
			"Attack: for another resource":    {access, "https://other.example/mcp"},
			"Attack: for a resource below":    {access, resource + "/x"},
			"Attack: for no resource":         {access, ""},
			"Attack: a refresh token":         {tok.Refresh.Reveal(), resource},
			"Attack: a session":               {session.Reveal(), resource},
			"Attack: a key":                   {w.key(ann, sp, "read"), resource},
			"Attack: SQL":                     {"satchel_at_' OR 1=1 --", resource},
			"with a character more":           {access + "A", resource},
			"in other case":                   {strings.ToUpper(access), resource},
			"Attack: a JWT without signature": {"eyJhbGciOiJub25lIn0.eyJzdWIiOiJhbm4ifQ.", resource},
			"longer than the longest":         {strings.Repeat("a", auth.MaxBearerBytes*2), resource},
		} {
			p, err := w.VerifyAccess(t.Context(), tt.bearer, tt.resource)
			wantCode(t, name, err, fault.Unauthenticated)
			if p.User != "" {
				t.Errorf("%s: proves %s", name, p.User)
			}
		}
		_, err = w.Verify(t.Context(), access)
		wantCode(t, "Attack: an access token as a key", err, fault.Unauthenticated)
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		_, err = w.VerifyAccess(ctx, access, resource)
		wantCode(t, "a request that has ended", err, fault.Canceled)
	})
}

// Attack: an editor connects a client, and then becomes a reader.
func TestRoleLoweredToReaderLosesWriteAtOnce(t *testing.T) {
	each(t, func(t *testing.T, w *world) {
		_, team := w.user("ann", true)
		bob, _ := w.user("bob", false)
		set := func(r space.Role) {
			t.Helper()
			if err := w.AddMember(t.Context(), cli, team.ID, bob.ID, r); err != nil {
				t.Fatal(err)
			}
		}
		can := func(tok auth.Tokens) string {
			t.Helper()
			p, err := w.VerifyAccess(t.Context(), tok.Access.Reveal(), resource)
			if err != nil {
				t.Fatal(err)
			}
			return auth.ScopeList(p.Scopes)
		}
		set(space.Editor)
		tok := w.connect(bob, team)
		if got := can(tok); got != "read write" {
			t.Fatalf("an editor's client can %s", got)
		}
		set(space.Reader)
		next := w.refresh(renewal(tok.Refresh))
		if can(tok) != "read" || can(next) != "read" || auth.ScopeList(next.Scopes) != "read" {
			t.Errorf("a reader's client can %s, refreshed %s, told %s", can(tok), can(next), next.Scopes)
		}
		set(space.Editor)
		if got := can(next); got != "read write" {
			t.Errorf("an editor's client again can %s", got)
		}
	})
}

// RFC 7009: a client can end its own grant, but not another client's.
func TestRevokeToken(t *testing.T) {
	each(t, func(t *testing.T, w *world) {
		ann, sp := w.user("ann", true)
		first := w.connect(ann, sp)
		second := w.refresh(renewal(first.Refresh))
		for name, tt := range map[string]struct{ client, token string }{
			"Attack: another client's access token":  {"client-2", second.Access.Reveal()},
			"Attack: another client's refresh token": {"client-2", second.Refresh.Reveal()},
			"no client":                              {"", second.Refresh.Reveal()},
			"an unknown access token":                {"client-1", auth.NewSecret(auth.KindAccess).Reveal()},
			"an unknown refresh token":               {"client-1", auth.NewSecret(auth.KindRefresh).Reveal()},
			"a key":                                  {"client-1", w.key(ann, sp, "read")},
			"nothing":                                {"client-1", ""},
		} {
			if err := w.RevokeToken(t.Context(), tt.client, tt.token); err != nil {
				t.Errorf("%s: %v", name, err)
			}
		}
		if !w.works(second) {
			t.Fatal("the grant ended")
		}
		for range 2 { // the second call changes nothing
			if err := w.RevokeToken(t.Context(), "client-1", first.Refresh.Reveal()); err != nil {
				t.Fatal(err)
			}
		}
		if w.works(first) || w.works(second) || w.audited("grant.revoke") != 1 {
			t.Errorf("the grant did not end: %s", w.actions())
		}
	})
}

func TestGrants(t *testing.T) {
	each(t, func(t *testing.T, w *world) {
		ann, sp := w.user("ann", true)
		bob, _ := w.user("bob", false)
		key, err := w.Verify(t.Context(), w.key(ann, sp, "read"))
		if err != nil {
			t.Fatal(err)
		}
		w.pass(time.Second)
		tok := w.connect(ann, sp)
		w.pass(time.Second)
		link(t, w, ann, "https://issuer.example", "ann-1")
		ext, err := w.External(t.Context(), external("ann-1"))
		if err != nil {
			t.Fatal(err)
		}
		grants, err := w.Grants(t.Context(), ann.ID)
		if err != nil || len(grants) != 3 {
			t.Fatalf("Grants: %+v, %v", grants, err)
		}
		for i, want := range []store.GrantInfo{
			{Kind: "external", Client: "app", Issuer: "https://issuer.example", Grant: space.Grant{ID: ext.Grant, Name: "app"}},
			{Kind: "oauth", Client: "client-1", Grant: space.Grant{ID: tok.Grant, Name: "Claude"}},
			{Kind: "key", Grant: space.Grant{ID: key.Grant, Name: "laptop"}},
		} {
			g := grants[i]
			if g.Kind != want.Kind || g.Client != want.Client || g.Issuer != want.Issuer || g.ID != want.ID || g.Name != want.Name || g.SpaceName != "ann" || g.User != ann.ID {
				t.Errorf("grant %d is %+v, want %+v", i, g, want)
			}
			if g.Kind == "key" && g.LastUsed.IsZero() {
				t.Error("a use that is not yet written does not show")
			}
			wantCode(t, "Attack: another's grant", w.RevokeGrant(t.Context(), cli, g.ID, bob.ID), fault.NotFound)
			for range 2 {
				if err := w.RevokeGrant(t.Context(), cli, g.ID, ann.ID); err != nil {
					t.Error(err)
				}
			}
		}
		if left, err := w.Grants(t.Context(), ann.ID); err != nil || len(left) != 0 {
			t.Errorf("left: %+v, %v", left, err)
		}
		wantCode(t, "an unknown grant", w.RevokeGrant(t.Context(), cli, "g_x", ""), fault.NotFound)
		if w.audited("grant.revoke") != 2 || w.audited("key.revoke") != 1 {
			t.Errorf("the audit log has %s", w.actions())
		}
		if keys, _ := w.ListKeys(t.Context(), ""); len(keys) != 1 {
			t.Errorf("%d keys are listed: a client's grant is none", len(keys))
		}
		wantCode(t, "Attack: a grant ended as a key", w.RevokeKey(t.Context(), cli, tok.Grant, ""), fault.NotFound)
	})
}

func link(t *testing.T, w *world, u store.User, issuer, subject string) {
	t.Helper()
	if err := w.LinkIdentity(t.Context(), cli, store.Identity{User: u.ID, Issuer: issuer, Subject: subject, Label: u.Name}); err != nil {
		t.Fatal(err)
	}
}

func external(subject string) auth.External {
	return auth.External{Issuer: "https://issuer.example", Subject: subject, Client: "app", Scopes: []space.Scope{space.ScopeRead, space.ScopeWrite}}
}

func TestExternal(t *testing.T) {
	each(t, func(t *testing.T, w *world) {
		ann, annSpace := w.user("ann", true)
		bob, bobSpace := w.listed("bob")
		if err := w.AddMember(t.Context(), cli, annSpace.ID, bob.ID, space.Reader); err != nil {
			t.Fatal(err)
		}
		_, err := w.External(t.Context(), external("bob-1"))
		wantCode(t, "nobody has signed in so", err, fault.NotFound)
		link(t, w, bob, "https://issuer.example", "bob-1")
		link(t, w, ann, "https://other.example", "bob-1")

		p, err := w.External(t.Context(), external("bob-1"))
		if err != nil || p.User != bob.ID || p.Space != bobSpace.ID || p.SpaceName != "bob" || p.Role != space.Owner || p.Client != "app" || auth.ScopeList(p.Scopes) != "read write" {
			t.Fatalf("External: %+v, %v", p, err)
		}
		if again, err := w.External(t.Context(), external("bob-1")); err != nil || again.Grant != p.Grant || w.audited("grant.create") != 1 {
			t.Errorf("the second request: %+v, %v", again, err)
		}
		inTeam := external("bob-1")
		inTeam.Space = "ann/ann"
		q, err := w.External(t.Context(), inTeam)
		if err != nil || q.Space != annSpace.ID || q.Grant == p.Grant || auth.ScopeList(q.Scopes) != "read" {
			t.Errorf("as a reader of another space: %+v, %v", q, err)
		}
		for name, tt := range map[string]struct {
			wrong func(*auth.External)
			want  fault.Code
		}{
			"Attack: the subject at another issuer": {func(x *auth.External) { x.Issuer = "https://issuer.example/" }, fault.NotFound},
			"Attack: the subject in other case":     {func(x *auth.External) { x.Subject = "BOB-1" }, fault.NotFound},
			"a space that is not theirs":            {func(x *auth.External) { x.Space = "ann/other" }, fault.Forbidden},
			"no client":                             {func(x *auth.External) { x.Client = "" }, fault.Unauthenticated},
		} {
			x := external("bob-1")
			tt.wrong(&x)
			_, err := w.External(t.Context(), x)
			wantCode(t, name, err, tt.want)
		}
		less := external("bob-1")
		less.Scopes = []space.Scope{space.ScopeRead}
		if p, err := w.External(t.Context(), less); err != nil || auth.ScopeList(p.Scopes) != "read" {
			t.Errorf("a token for read alone: %v, %v", p.Scopes, err)
		}

		// A later token can have more scopes. The log says so once.
		wider := less
		wider.Client = "app-3"
		for _, scopes := range [][]space.Scope{{space.ScopeRead}, {space.ScopeRead, space.ScopeWrite}, {space.ScopeRead, space.ScopeWrite}} {
			wider.Scopes = scopes
			if _, err := w.External(t.Context(), wider); err != nil {
				t.Fatal(err)
			}
		}
		if n := w.audited("grant.widen"); n != 1 {
			t.Errorf("the log has %d wider grants", n)
		}

		// A revoked grant keeps out that client for good, but no other client.
		if err := w.RevokeGrant(t.Context(), cli, p.Grant, bob.ID); err != nil {
			t.Fatal(err)
		}
		w.pass(365 * day)
		if err := w.Sweep(t.Context()); err != nil {
			t.Fatal(err)
		}
		_, err = w.External(t.Context(), external("bob-1"))
		wantCode(t, "a revoked client", err, fault.Unauthenticated)
		other := external("bob-1")
		other.Client = "app-2"
		if _, err := w.External(t.Context(), other); err != nil {
			t.Errorf("another client: %v", err)
		}

		// A new membership lets the client in again.
		if err := w.RemoveMember(t.Context(), cli, annSpace.ID, bob.ID); err != nil {
			t.Fatal(err)
		}
		_, err = w.External(t.Context(), inTeam)
		wantCode(t, "no member any more", err, fault.Forbidden)
		if err := w.AddMember(t.Context(), cli, annSpace.ID, bob.ID, space.Editor); err != nil {
			t.Fatal(err)
		}
		if p, err := w.External(t.Context(), inTeam); err != nil || auth.ScopeList(p.Scopes) != "read write" {
			t.Errorf("a member again: %+v, %v", p, err)
		}

		w.suspend(bob)
		_, err = w.External(t.Context(), other)
		wantCode(t, "a suspended user", err, fault.Unauthenticated)
		if err := w.RemoveUser(t.Context(), cli, bob.ID); err != nil {
			t.Fatal(err)
		}
		_, err = w.External(t.Context(), other)
		wantCode(t, "a removed user", err, fault.NotFound)
	})
}

// If a client of another issuer asks for more scopes, its grant gets them, and the list
// shows all of them.
func TestExternalGrantIsWidened(t *testing.T) {
	each(t, func(t *testing.T, w *world) {
		ann, _ := w.user("ann", true)
		if err := w.LinkIdentity(t.Context(), cli, store.Identity{User: ann.ID, Issuer: "https://id.example", Subject: "a"}); err != nil {
			t.Fatal(err)
		}
		x := auth.External{Issuer: "https://id.example", Subject: "a", Client: "c", Scopes: []space.Scope{space.ScopeRead}}
		first, err := w.External(t.Context(), x)
		if err != nil {
			t.Fatal(err)
		}
		x.Scopes = []space.Scope{space.ScopeWrite}
		second, err := w.External(t.Context(), x)
		if err != nil || second.Grant != first.Grant || second.Can(space.ScopeRead) || !second.Can(space.ScopeWrite) {
			t.Fatalf("%+v, %v", second, err)
		}
		all, err := w.Grants(t.Context(), ann.ID)
		if err != nil || len(all) != 1 || !all[0].Has(space.ScopeRead) || !all[0].Has(space.ScopeWrite) {
			t.Errorf("%+v, %v", all, err)
		}
	})
}
