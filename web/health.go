package web

import (
	"context"
	"time"

	"satchel/auth"
	"satchel/auth/store"
	"satchel/internal/space"
)

// Health reports the state of the server to admins, and who has access.
type Health interface {
	// Report runs the checks that are quick.
	Report(ctx context.Context) (HealthReport, error)
	// Usage reports what people use, with one entry for each of them.
	Usage(ctx context.Context, people []store.User) ([]Usage, error)
	// Access reports who is allowed in by the configuration.
	Access() Access
}

// HealthReport is the state of the server.
type HealthReport struct {
	Started time.Time
	Checks  []HealthCheck
	Totals  []HealthTotal
	Stored  int64 // bytes of all spaces, with their history
}

// HealthCheck is the state of one part of the server.
type HealthCheck struct {
	Name   string
	State  HealthState
	Detail string // what the check found
	Remedy string // what to do; empty if all is well
}

// HealthState is the state of a part.
type HealthState string

// The states.
const (
	HealthGood HealthState = "good"
	HealthOff  HealthState = "off"     // not used on this server
	HealthNote HealthState = "look"    // works, but somebody should look at it
	HealthBad  HealthState = "trouble" // something does not work
)

// Word returns a word for the state, for people who cannot see the colours.
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
	Spaces    int // that the person owns
	Grants    int // valid clients and keys
	Seen      time.Time
	Commits   int  // in the person's spaces, in 30 days
	More      bool // there are more commits than were counted
	Sandboxes int  // running
	Bytes     int64
}

// Access is who is allowed in.
type Access struct {
	Allow         auth.AllowList
	MembersInvite bool
	Issuer        string // of an external authorization server; empty for the built-in one
	Registration  bool   // clients may register themselves
	Documents     bool   // clients may use a client ID metadata document
	MailFrom      string // sender of sign-in links; empty if none are mailed
	File          string // the configuration file; empty if there is none
}
