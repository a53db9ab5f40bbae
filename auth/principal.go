package auth

import (
	"context"
	"slices"
	"strconv"
	"strings"
	"time"

	"satchel/internal/fault"
	"satchel/internal/space"
)

// Principal is who makes a request, through which grant, with what rights.
type Principal struct {
	User     space.UserID
	UserName string // unique among users; what commands call them
	Display  string // how a person would write it
	Email    string // may be empty
	Admin    bool
	// Space is the one space that the grant reaches, and Role is what the user
	// may do there.
	Space     space.SpaceID
	SpaceName string
	Role      space.Role
	// Grant is what the client was given, and Client what a person calls it.
	Grant  space.GrantID
	Client string
	// Scopes are in effect now: those of the grant, less what Role forbids.
	Scopes []space.Scope
	// Expires is when the bearer's time is over, by which what it opened must end;
	// zero for never.
	Expires time.Time
}

// Can reports whether the scope is in effect.
func (p Principal) Can(s space.Scope) bool { return slices.Contains(p.Scopes, s) }

// Require returns nil if the scope is in effect, else a fault.Forbidden for
// which ErrorCode answers insufficient_scope.
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
	return fault.Wrap(errScope, fault.Forbidden, "This needs the scope %q, and %s was given %s.", s, who, ScopeList(p.Scopes))
}

// Person is the author of what the principal commits. The address of a user
// without one ends in .invalid, which RFC 2606 keeps from ever existing.
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

// EffectiveScopes returns what remains of a grant's scopes for a member with
// the role: a reader only reads, and who has no role has nothing.
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

// ScopeList writes scopes as RFC 6749 does, separated by spaces.
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

// Verifier proves bearer tokens. Implementations check on every call that the
// token is genuine and current and that its user and grant still are allowed
// (DESIGN section 2, rule 5).
type Verifier interface {
	// Verify returns who holds the token. It returns fault.Unauthenticated for
	// a token that proves nobody, whose message may be shown to its bearer,
	// and any other code where the check itself could not be made.
	Verify(ctx context.Context, bearer string) (Principal, error)
}
