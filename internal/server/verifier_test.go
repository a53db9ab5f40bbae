package server

import (
	"context"
	"sync"
	"testing"

	"satchel/auth"
	"satchel/auth/store"
	"satchel/internal/fault"
	"satchel/internal/service"
	"satchel/internal/space"
)

// anIssuer vouches for one person, whose bearer is their subject.
type anIssuer struct{ claimant auth.ExternalIdentity }

func (i anIssuer) Verify(_ context.Context, bearer string) (auth.External, auth.ExternalIdentity, error) {
	if bearer != i.claimant.Subject {
		return auth.External{}, auth.ExternalIdentity{}, fault.New(fault.Unauthenticated, "The token is not valid.")
	}
	c := i.claimant
	return auth.External{Issuer: c.Issuer, Subject: c.Subject, Email: c.Email, Client: "client", Scopes: []space.Scope{space.ScopeRead}}, c, nil
}

// Whom another issuer vouches for is a user from their first call, out while no
// entry of the allow list has them, and in again by another entry.
func TestPeopleOfAnotherIssuer(t *testing.T) {
	r := boot(t, settings(t))
	ctx := t.Context()
	v := r.verifier()
	admitting := func(a auth.AllowList) *service.Service {
		return service.New(service.Options{Accounts: r.Accounts, Git: r.Git, Allow: a})
	}
	v.issuer = anIssuer{auth.ExternalIdentity{Issuer: "https://id.example", Subject: "eve", Email: "eve@example.com"}}
	refused := func(what, bearer string, want fault.Code) {
		t.Helper()
		if p, err := v.Verify(ctx, bearer); fault.CodeOf(err) != want {
			t.Errorf("%s: %s, %v; want %s", what, p.UserName, err, want)
		}
	}
	refused("a token of nobody", "mallory", fault.Unauthenticated)
	refused("nobody let them in", "eve", fault.Forbidden)
	v.people = admitting(auth.AllowList{Domains: []string{"example.com"}})
	first, err := v.Verify(ctx, "eve")
	if err != nil || first.UserName != "eve" || first.Role != space.Owner {
		t.Fatalf("%+v, %v", first, err)
	}
	v.people = admitting(auth.AllowList{})
	if _, _, err := r.Accounts.SuspendUnlisted(ctx, store.Actor{Via: "test"}, auth.AllowList{}.Has); err != nil {
		t.Fatal(err)
	}
	refused("their entry is gone", "eve", fault.Unauthenticated)
	v.people = admitting(auth.AllowList{Emails: []string{"eve@example.com"}})
	if p, err := v.Verify(ctx, "eve"); err != nil || p.User != first.User {
		t.Errorf("by another entry: %+v, %v", p, err)
	}
	removeUser(t, r.Service, "eve")
	refused("ATTACK: who was removed and is listed still", "eve", fault.Forbidden)
	// An API key is good whoever the issuer is.
	if _, err := v.Verify(ctx, r.key); err != nil {
		t.Errorf("an API key: %v", err)
	}
}

// A client's first calls come in parallel, and make one user.
func TestFirstCallsAtOnceMakeOneUser(t *testing.T) {
	r := boot(t, settings(t))
	v := r.verifier()
	admitting := func(a auth.AllowList) *service.Service {
		return service.New(service.Options{Accounts: r.Accounts, Git: r.Git, Allow: a})
	}
	v.issuer = anIssuer{auth.ExternalIdentity{Issuer: "https://id.example", Subject: "eve", Email: "eve@example.com"}}
	v.people = admitting(auth.AllowList{Domains: []string{"example.com"}})
	var calls sync.WaitGroup
	for range 20 {
		calls.Go(func() {
			if p, err := v.Verify(t.Context(), "eve"); err != nil || p.UserName != "eve" {
				t.Errorf("%s, %v", p.UserName, err)
			}
		})
	}
	calls.Wait()
}
