package auth

import (
	"cmp"
	"context"
	"slices"
	"strconv"
	"strings"
	"time"

	"satchel/internal/fault"
	"satchel/internal/space"
)

// Principal is the user that makes a request, with the grant they use and the rights it gives.
type Principal struct {
	User     space.UserID
	UserName string // unique among users; commands use it
	Display  string // the person's full name
	Email    string // may be empty
	Admin    bool
	// Space is the only space that the grant reaches. Role is the user's role there.
	Space     space.SpaceID
	SpaceName string
	Role      space.Role
	// Grant identifies the client's grant. Client is the person's name for the client.
	Grant  space.GrantID
	Client string
	// Scopes are the scopes in effect: those of the grant that Role allows.
	Scopes []space.Scope
	// Expires is when the token expires. Everything that was opened with the token must end by
	// then. Zero means never.
	Expires time.Time
}

// Can reports whether the scope is in effect.
func (p Principal) Can(s space.Scope) bool { return slices.Contains(p.Scopes, s) }

// Require returns nil if the scope is in effect. Otherwise it returns a fault.Forbidden for
// which ErrorCode returns insufficient_scope.
func (p Principal) Require(s space.Scope) error {
	if p.Can(s) {
		return nil
	}
	if p.Role == space.Reader && s == space.ScopeWrite {
		return fault.Wrap(errScope, fault.Forbidden, "%s is a reader of the space %s and may not change it.", p.UserName, p.SpaceName)
	}
	who := "this client"
	if p.Client != "" {
		who = strconv.Quote(p.Client)
	}
	return fault.Wrap(errScope, fault.Forbidden, "This needs the scope %q, and %s was given %s.", s, who, cmp.Or(ScopeList(p.Scopes), "no scope"))
}

// Person returns the author of the principal's commits. If the user has no email address, the author
// gets one that ends in .invalid, a domain that RFC 2606 reserves so that it never exists.
func (p Principal) Person() space.Person {
	who := space.Person{Name: p.Display, Email: p.Email}
	if who.Name == "" {
		who.Name = p.UserName
	}
	if who.Email == "" {
		who.Email = p.UserName + "@satchel.invalid"
	}
	return who
}

// EffectiveScopes returns the scopes of a grant that the user's role in the space allows. A reader
// can only read. Without a role, there are no scopes.
func EffectiveScopes(granted []space.Scope, role space.Role) []space.Scope {
	var out []space.Scope
	for _, s := range granted {
		switch {
		case s == space.ScopeRead && (role == space.Owner || role == space.Editor || role == space.Reader),
			s == space.ScopeWrite && (role == space.Owner || role == space.Editor):
			out = append(out, s)
		}
	}
	return out
}

// ScopeList writes scopes as in RFC 6749, separated by spaces.
func ScopeList(scopes []space.Scope) string {
	var b strings.Builder
	for i, s := range scopes {
		if i > 0 {
			b.WriteByte(' ')
		}
		b.WriteString(string(s))
	}
	return b.String()
}

// Verifier checks bearer tokens. On every call, implementations check that the token is
// genuine and current, and that its user and grant are still valid.
type Verifier interface {
	// Verify returns the principal of the token. If the token is not valid, the error is a
	// fault.Unauthenticated with a message for its bearer. The error has another code if
	// the check itself failed.
	Verify(ctx context.Context, bearer string) (Principal, error)
}
