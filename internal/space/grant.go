package space

import (
	"slices"
	"strings"
	"time"
)

// Role is what a member may do in a space.
type Role string

// The roles. Each role includes the lower ones.
const (
	Owner  Role = "owner"
	Editor Role = "editor"
	Reader Role = "reader"
)

// Includes reports whether r allows everything that least allows. Every role includes the empty
// role.
func (r Role) Includes(least Role) bool {
	rank := map[Role]int{Reader: 1, Editor: 2, Owner: 3}
	return rank[r] >= rank[least]
}

// Scope is a permission of a client.
type Scope string

// The scopes. ScopeWrite does not include ScopeRead. A grant to read and write lists both.
const (
	ScopeRead  Scope = "read"
	ScopeWrite Scope = "write"
)

// Grant allows a client to use one space of a user, within some scopes. An API key is also a
// grant. A Grant never holds the secret.
type Grant struct {
	ID     GrantID
	User   UserID
	Space  SpaceID
	Scopes []Scope
	// Name is the name that people see, such as "laptop" or "Claude".
	Name    string
	Created time.Time
	Expires time.Time // zero: never
	Revoked time.Time // zero: not revoked
	// LastUsed is exact to the minute. It is zero if the grant was never used.
	LastUsed time.Time
}

// Has reports whether the grant includes the scope.
func (g Grant) Has(s Scope) bool { return slices.Contains(g.Scopes, s) }

// ParseScopes reads a list of scopes separated by commas or spaces (RFC 6749 section 3.3
// uses spaces). ok is false if the list is empty or contains an unknown scope. bad is the
// first unknown scope.
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
