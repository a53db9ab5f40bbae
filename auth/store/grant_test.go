package store_test

import (
	"crypto/sha256"
	"encoding/base64"
	"slices"
	"testing"

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

func renewal(refresh auth.Secret) auth.Renewal {
	return auth.Renewal{Refresh: refresh.Reveal(), Client: "client-1", Resource: resource}
}

func (w *world) code(c auth.Consent) auth.Secret {
	w.t.Helper()
	code, err := w.CreateCode(w.t.Context(), c)
	if err != nil {
		w.t.Fatal(err)
	}
	return code
}

// connect lets a client of the user have the space.
func (w *world) connect(u store.User, sp store.Space) auth.Tokens {
	w.t.Helper()
	t, err := w.Redeem(w.t.Context(), redemption(w.code(consent(u, sp))))
	if err != nil {
		w.t.Fatal(err)
	}
	return t
}

func (w *world) refresh(r auth.Renewal) auth.Tokens {
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

// listed makes a user whom an entry of the allow list let in.
func (w *world) listed(name string) (store.User, store.Space) {
	w.t.Helper()
	u, sp, err := w.CreateUser(w.t.Context(), cli, store.NewUser{Name: name, Admitted: entry})
	if err != nil {
		w.t.Fatal(err)
	}
	return u, sp
}

// suspend takes the entry from the allow list.
func (w *world) suspend(u store.User) {
	w.t.Helper()
	gone, _, err := w.SuspendUnlisted(w.t.Context(), cli, func(string) bool { return false })
	if err != nil || !slices.Contains(gone, u.ID) {
		w.t.Fatalf("suspended %v, %v", gone, err)
	}
}
