package store_test

import (
	"crypto/sha256"
	"encoding/base64"
	"slices"
	"testing"
	"time"

	"satchel/auth"
	"satchel/auth/store"
	"satchel/internal/space"
)

const (
	resource = "https://satchel.example/mcp"
	redirect = "http://localhost:4711/callback"
	verifier = "a-verifier-of-forty-three-characters-or-more.~_"
)

func challenge(v string) string {
	sum := sha256.Sum256([]byte(v))
	return base64.RawURLEncoding.EncodeToString(sum[:])
}

func consent(u store.User, sp store.Space) auth.Consent {
	return auth.Consent{
		Client: "client-1", Name: "Claude", User: u.ID, Space: sp.ID, Scopes: []space.Scope{space.ScopeWrite, space.ScopeRead},
		Resource: resource, RedirectURI: redirect, Challenge: challenge(verifier),
	}
}

func redemption(code auth.Secret) auth.Redemption {
	return auth.Redemption{Code: code.Reveal(), Client: "client-1", RedirectURI: redirect, Verifier: verifier, Resource: resource}
}

func renewal(refresh auth.Secret) auth.RefreshRequest {
	return auth.RefreshRequest{Refresh: refresh.Reveal(), Client: "client-1", Resource: resource}
}

func (w *world) code(c auth.Consent) auth.Secret {
	w.t.Helper()
	code, err := w.CreateCode(w.t.Context(), c)
	if err != nil {
		w.t.Fatal(err)
	}
	return code
}

// connect gives a client of the user access to the space.
func (w *world) connect(u store.User, sp store.Space) auth.Tokens {
	w.t.Helper()
	t, err := w.Redeem(w.t.Context(), redemption(w.code(consent(u, sp))))
	if err != nil {
		w.t.Fatal(err)
	}
	return t
}

func (w *world) refresh(r auth.RefreshRequest) auth.Tokens {
	w.t.Helper()
	t, err := w.Refresh(w.t.Context(), r)
	if err != nil {
		w.t.Fatal(err)
	}
	return t
}

func TestClientConnects(t *testing.T) {
	each(t, func(t *testing.T, w *world) {
		ann, sp := w.user("ann", true)
		first := w.connect(ann, sp)
		p, err := w.VerifyAccess(t.Context(), first.Access.Reveal(), resource)
		if err != nil {
			t.Fatal(err)
		}
		if p.User != ann.ID || p.Space != sp.ID || p.Grant != first.Grant || p.Client != "Claude" || auth.ScopeList(p.Scopes) != "read write" {
			t.Errorf("VerifyAccess: %+v", p)
		}
		second := w.refresh(renewal(first.Refresh))
		if second.Access.Reveal() == first.Access.Reveal() || second.Refresh.Reveal() == first.Refresh.Reveal() || second.Grant != first.Grant {
			t.Errorf("Refresh gave the same pair")
		}
		for _, tok := range []auth.Tokens{first, second} {
			if _, err := w.VerifyAccess(t.Context(), tok.Access.Reveal(), resource); err != nil {
				t.Error(err)
			}
		}
	})
}

const entry = "domain:example.com"

// listed creates a user whom an entry of the allow list admits.
func (w *world) listed(name string) (store.User, store.Space) {
	w.t.Helper()
	u, sp, err := w.CreateUser(w.t.Context(), cli, store.NewUser{Name: name, Admitted: entry})
	if err != nil {
		w.t.Fatal(err)
	}
	return u, sp
}

// suspend removes the entry from the allow list.
func (w *world) suspend(u store.User) {
	w.t.Helper()
	gone, _, err := w.SuspendUnlisted(w.t.Context(), cli, func(string) bool { return false })
	if err != nil || !slices.Contains(gone, u.ID) {
		w.t.Fatalf("suspended %v, %v", gone, err)
	}
}

// LastKeys returns the last used key of each name, also if it has ended. It returns no key
// of another user and no other key.
func TestLastKeys(t *testing.T) {
	each(t, func(t *testing.T, w *world) {
		ann, sp := w.user("ann", true)
		bob, theirs := w.user("bob", false)
		use := func(u store.User, id space.SpaceID, name string, ended, used bool) space.GrantID {
			t.Helper()
			g, secret, err := w.CreateKey(t.Context(), cli, store.NewKey{User: u.ID, Space: id, Scopes: []space.Scope{space.ScopeRead}, Name: name})
			if err != nil {
				t.Fatal(err)
			}
			w.pass(time.Minute)
			if used {
				if _, err := w.Verify(t.Context(), secret.Reveal()); err != nil {
					t.Fatal(err)
				}
			}
			if ended {
				if err := w.RevokeKey(t.Context(), cli, g.ID, ""); err != nil {
					t.Fatal(err)
				}
			}
			return g.ID
		}
		use(ann, sp.ID, "run on a", true, true)
		a := use(ann, sp.ID, "run on a", true, true)
		use(ann, sp.ID, "run on a", true, false)
		b := use(ann, sp.ID, "run on b", false, true)
		use(ann, sp.ID, "Run on c", true, true)
		use(ann, sp.ID, "a run on d", true, true)
		use(bob, theirs.ID, "run on e", true, true)
		for _, written := range []bool{false, true} {
			if written {
				if err := w.Flush(t.Context()); err != nil {
					t.Fatal(err)
				}
			}
			got, err := w.LastKeys(t.Context(), ann.ID, "run on ")
			if err != nil || len(got) != 2 || got[0].ID != b || got[1].ID != a || got[1].Revoked.IsZero() || got[0].SpaceName != sp.Name {
				t.Errorf("written: %t: %+v, %v", written, got, err)
			}
		}
	})
}
