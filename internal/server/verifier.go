package server

import (
	"context"
	"strings"

	"satchel/auth"
	"satchel/auth/oidc/access"
	"satchel/auth/store"
	"satchel/internal/fault"
	"satchel/internal/service"
)

// verifier verifies the bearer tokens that the configuration allows: API keys always, and
// the tokens of one authorization server, either the built-in one or another issuer.
type verifier struct {
	accounts *store.Store
	resource string
	issuer   issuer // nil for the built-in authorization server
	people   *service.Service
}

// issuer verifies the tokens of another authorization server; see access.Verifier.
type issuer interface {
	Verify(ctx context.Context, bearer string) (auth.External, auth.ExternalIdentity, error)
}

var _ issuer = (*access.Verifier)(nil)

// verifier returns the verifier of tokens.
func (s *Server) verifier() verifier {
	v := verifier{accounts: s.Accounts, resource: s.resource(), people: s.Service}
	if s.access != nil {
		v.issuer = s.access
	}
	return v
}

// Verify implements auth.Verifier.
func (v verifier) Verify(ctx context.Context, bearer string) (auth.Principal, error) {
	switch {
	case strings.HasPrefix(bearer, string(auth.KindAccess)) && v.issuer == nil:
		return v.accounts.VerifyAccess(ctx, bearer, v.resource)
	case strings.HasPrefix(bearer, string(auth.KindKey)) || v.issuer == nil:
		return v.accounts.Verify(ctx, bearer)
	}
	who, claimant, err := v.issuer.Verify(ctx, bearer)
	if err != nil {
		return auth.Principal{}, err
	}
	p, err := v.accounts.External(ctx, who)
	if fault.CodeOf(err) == fault.NotFound || fault.CodeOf(err) == fault.Unauthenticated && v.suspended(ctx, claimant) {
		if _, err := v.people.Admit(ctx, claimant, "", ""); err != nil {
			return auth.Principal{}, err
		}
		p, err = v.accounts.External(ctx, who)
	}
	p.Expires = who.Expires
	return p, err
}

// suspended reports whether a person is suspended and an entry of the allow list may readmit
// them.
func (v verifier) suspended(ctx context.Context, c auth.ExternalIdentity) bool {
	u, err := v.accounts.UserByIdentity(ctx, c.Issuer, c.Subject)
	return err == nil && !u.Suspended.IsZero() && v.people.Allows(c)
}
