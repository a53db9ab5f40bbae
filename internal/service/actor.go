package service

import (
	"slices"

	"satchel/auth"
	"satchel/auth/store"
	"satchel/internal/space"
)

// An Actor performs operations. The zero Actor can perform none.
type Actor struct {
	kind   actorKind
	user   space.UserID
	author space.Person // the author of the actor's commits
	admin  bool
	via    string

	// The fields below are set for clients only.
	grant  space.GrantID
	label  string        // what the client calls itself
	space  space.SpaceID // the only space that the grant reaches
	name   string        // the name of that space
	role   space.Role    // the user's role in that space
	scopes []space.Scope // the scopes that are in effect
}

type actorKind int

const (
	nobody actorKind = iota
	operator
	person
	client
)

// Operator returns the actor at the server's command line, who can do everything.
func Operator() Actor { return Actor{kind: operator, via: "command line"} }

// Configuration returns the operator as the actor of changes in the configuration file.
func Configuration() Actor { return Actor{kind: operator, via: "configuration"} }

// Person returns the actor for a user who is signed in on the pages.
func Person(u store.User) Actor {
	return Actor{kind: person, user: u.ID, author: authorOf(u), admin: u.Admin, via: "web"}
}

// authorOf returns a user as the author of commits.
func authorOf(u store.User) space.Person {
	return auth.Principal{UserName: u.Name, Display: u.Display, Email: u.Email}.Person()
}

// Client returns the actor for a client or an API key that uses a person's grant. via names the
// front (see the package comment) that received the request, such as "api".
func Client(p auth.Principal, via string) Actor {
	return Actor{
		kind: client, user: p.User, author: p.Person(), via: via,
		grant: p.Grant, label: p.Client, space: p.Space, name: p.SpaceName, role: p.Role, scopes: p.Scopes,
	}
}

// Labelled returns a copy of the client with the name that the client gives itself, such as
// "claude-code/2.1". The client's commits carry the name.
func (a Actor) Labelled(label string) Actor {
	a.label = label
	return a
}

// Label returns the name that a client gives itself.
func (a Actor) Label() string { return a.label }

// User returns the person for whom the actor acts. The result is empty for the operator.
func (a Actor) User() space.UserID { return a.user }

// Author returns the author of the actor's commits.
func (a Actor) Author() space.Person { return a.author }

// Space returns the space that a client's grant reaches.
func (a Actor) Space() SpaceRef { return SpaceRef{ID: a.space, Name: a.name} }

// Can reports whether a client has the scope.
func (a Actor) Can(scope space.Scope) bool { return slices.Contains(a.scopes, scope) }

// audit returns the actor of an audit entry.
func (a Actor) audit() store.Actor { return store.Actor{User: a.user, Via: a.via} }
