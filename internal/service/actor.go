package service

import (
	"slices"

	"satchel/auth"
	"satchel/auth/store"
	"satchel/internal/space"
)

// An operation runs on behalf of an Actor, who came by one front. The zero Actor may do
// nothing.
type Actor struct {
	kind   actorKind
	user   space.UserID
	author space.Person // of the commits that the actor makes
	admin  bool
	via    string

	// Of a client:
	grant  space.GrantID
	label  string        // what the client calls itself
	space  space.SpaceID // the only space that the grant reaches
	name   string        // of that space
	role   space.Role    // of the user in it
	scopes []space.Scope // those in effect
}

type actorKind int

const (
	nobody actorKind = iota
	operator
	person
	client
)

// Operator is the person at the server's command line, who may do everything.
func Operator() Actor { return Actor{kind: operator, via: "command line"} }

// Person is somebody who is signed in on the pages.
func Person(u store.User) Actor {
	return Actor{kind: person, user: u.ID, author: authorOf(u), admin: u.Admin, via: "web"}
}

// authorOf is a user as the author of commits.
func authorOf(u store.User) space.Person {
	return auth.Principal{UserName: u.Name, Display: u.Display, Email: u.Email}.Person()
}

// Client is a client, or the bearer of an API key, that calls with a person's grant.
// via names the front, such as "api".
func Client(p auth.Principal, via string) Actor {
	return Actor{
		kind: client, user: p.User, author: p.Person(), via: via,
		grant: p.Grant, label: p.Client, space: p.Space, name: p.SpaceName, role: p.Role, scopes: p.Scopes,
	}
}

// Labelled is the client with the name that it gives itself ("claude-code/2.1"), which
// the commits that it makes carry.
func (a Actor) Labelled(label string) Actor {
	a.label = label
	return a
}

// Label is what a client calls itself.
func (a Actor) Label() string { return a.label }

// User is the person for whom the actor acts; empty for the operator.
func (a Actor) User() space.UserID { return a.user }

// Author is the author of what the actor commits.
func (a Actor) Author() space.Person { return a.author }

// Space is the space that a client's grant reaches.
func (a Actor) Space() SpaceRef { return SpaceRef{ID: a.space, Name: a.name} }

// Can reports whether a client has the scope.
func (a Actor) Can(scope space.Scope) bool { return slices.Contains(a.scopes, scope) }

// audit is the actor of an audit line.
func (a Actor) audit() store.Actor { return store.Actor{User: a.user, Via: a.via} }
