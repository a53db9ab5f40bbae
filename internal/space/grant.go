package space

import (
	"slices"
	"strings"
	"time"
)

// Role is what a member may do in a space.
type Role string

// The roles. Each includes those under it.
const (
	Owner  Role = "owner"
	Editor Role = "editor"
	Reader Role = "reader"
)

// Includes reports whether the role allows what the role least does. Every role
// includes the empty one.
func (r Role) Includes(least Role) bool {
	rank := map[Role]int{Reader: 1, Editor: 2, Owner: 3}
	return rank[r] >= rank[least]
}

// Scope is what a client was given.
type Scope string

// The scopes. ScopeWrite does not include ScopeRead: a grant lists both.
const (
	ScopeRead  Scope = "read"
	ScopeWrite Scope = "write"
)

// Grant is what one client was given: a user, one space, scopes. An API key is
// a grant too. It never holds the secret.
type Grant struct {
	ID     GrantID
	User   UserID
	Space  SpaceID
	Scopes []Scope
	// Name is what a person calls it ("laptop", "Claude").
	Name    string
	Created time.Time
	Expires time.Time // zero: never
	Revoked time.Time // zero: not revoked
	// LastUsed is kept to the minute; zero: never used.
	LastUsed time.Time
}

// Has reports whether the grant includes the scope.
func (g Grant) Has(s Scope) bool { return slices.Contains(g.Scopes, s) }

// ParseScopes reads a list of scopes separated by commas or spaces (RFC 6749
// section 3.3 uses spaces). ok is false if a scope is unknown or none is
// named; bad is then the first unknown one.
func ParseScopes(s string) (scopes []Scope, bad string, ok bool) {
	for _, f := range strings.FieldsFunc(s, func(r rune) bool { return r == ',' || r == ' ' }) {
		sc := Scope(f)
		if sc != ScopeRead && sc != ScopeWrite {
			return nil, f, false
		}
		if !slices.Contains(scopes, sc) {
			scopes = append(scopes, sc)
		}
	}
	return scopes, "", len(scopes) > 0
}
