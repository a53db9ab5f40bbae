package service

import (
	"satchel/auth"
	"satchel/auth/store"
	"satchel/internal/space"
)

// An operation runs on behalf of an Actor, who came by one front. The zero Actor may do
// nothing.
type Actor struct {
	kind   actorKind
	user   space.UserID
	admin  bool
	space  space.SpaceID // of a client: the only space that its grant reaches
	scopes []space.Scope // of a client: those in effect
	via    string
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
	return Actor{kind: person, user: u.ID, admin: u.Admin, via: "web"}
}

// Client is a client, or the bearer of an API key, that calls with a person's grant.
// via names the front, such as "api".
func Client(p auth.Principal, via string) Actor {
	return Actor{kind: client, user: p.User, space: p.Space, scopes: p.Scopes, via: via}
}

// audit is the actor of an audit line.
func (a Actor) audit() store.Actor { return store.Actor{User: a.user, Via: a.via} }
