package web

import (
	"context"
	"time"

	"satchel/auth"
	"satchel/auth/store"
	"satchel/internal/space"
)

// Health reports to admins how the server is, and who can come in.
type Health interface {
	// Report looks at everything that can be looked at quickly.
	Report(ctx context.Context) (HealthReport, error)
	// Usage reports what people use. Nobody is missing, who has nothing included.
	Usage(ctx context.Context, people []store.User) ([]Usage, error)
	// Access is who may come in, as it is configured.
	Access() Access
}

// HealthReport is how the server is.
type HealthReport struct {
	Started time.Time
	Checks  []HealthCheck
	Totals  []HealthTotal
	Stored  int64 // bytes of all spaces, with their history
}

// HealthCheck is one part of the server, and what to do about it.
type HealthCheck struct {
	Name   string
	State  HealthState
	Detail string // what was found, in words
	Remedy string // what to do; empty if all is well
}

// HealthState is how a part is.
type HealthState string

// The states.
const (
	HealthGood HealthState = "good"
	HealthOff  HealthState = "off"     // it is not used here
	HealthNote HealthState = "look"    // it works, and somebody should look at it
	HealthBad  HealthState = "trouble" // something does not work
)

// Word is the state in a word, for those who see no colours.
func (s HealthState) Word() string {
	switch s {
	case HealthGood:
		return "Works"
	case HealthOff:
		return "Off"
	case HealthNote:
		return "Look at it"
	}
	return "Trouble"
}

// HealthTotal is a figure of the whole server.
type HealthTotal struct{ Name, Value string }

// Usage is what one person uses.
type Usage struct {
	User      space.UserID
	Spaces    int // of their own
	Grants    int // clients and keys that are good
	Seen      time.Time
	Commits   int  // in their spaces, in 30 days
	More      bool // there are more of them than were counted
	Sandboxes int  // that run
	Bytes     int64
}

// Access is who may come in.
type Access struct {
	Allow         auth.AllowList
	MembersInvite bool
	Issuer        string // another authorization server's; empty: the built-in one
	Registration  bool   // clients may register themselves
	Documents     bool   // clients may name a document of theirs
	MailFrom      string // of links by mail; empty: there are none
	File          string // of the configuration; empty: there is none
}
