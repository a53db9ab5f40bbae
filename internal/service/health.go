package service

import (
	"context"
	"time"

	"satchel/auth"
	"satchel/internal/fault"
	"satchel/internal/space"
)

// Health is the state of the server.
type Health struct {
	Started time.Time     `json:"started"`
	Checks  []HealthCheck `json:"checks"`
	Totals  []HealthTotal `json:"totals"`
	Stored  int64         `json:"stored"` // bytes of all spaces, with their history
}

// HealthCheck is the state of one part of the server.
type HealthCheck struct {
	Name   string      `json:"name"`
	State  HealthState `json:"state"`
	Detail string      `json:"detail"` // what the check found
	Remedy string      `json:"remedy"` // what to do; empty if all is well
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
type HealthTotal struct {
	Name  string `json:"name"`
	Value string `json:"value"`
}

// Usage is what one person uses.
type Usage struct {
	User      space.UserID `json:"user"`
	Spaces    int          `json:"spaces"` // that the person owns
	Grants    int          `json:"grants"` // valid clients and keys
	Seen      time.Time    `json:"seen"`
	Commits   int          `json:"commits"`   // in the person's spaces, in 30 days
	More      bool         `json:"more"`      // there are more commits than were counted
	Sandboxes int          `json:"sandboxes"` // running
	Bytes     int64        `json:"bytes"`
}

// Access is who is allowed in by the configuration.
type Access struct {
	Allow         auth.AllowList `json:"allow"`
	MembersInvite bool           `json:"members_invite"`
	Issuer        string         `json:"issuer"`       // of an external authorization server; empty for the built-in one
	Registration  bool           `json:"registration"` // clients may register themselves
	Documents     bool           `json:"documents"`    // clients may use a client ID metadata document
	MailFrom      string         `json:"mail_from"`    // sender of sign-in links; empty if none are mailed
	File          string         `json:"file"`         // the configuration file; empty if there is none
}

// GetHealth runs the checks of the server that are quick.
func (s *Service) GetHealth(ctx context.Context, a Actor, _ None) (Health, error) {
	if err := s.authorize(a, "GetHealth"); err != nil {
		return Health{}, err
	}
	if s.running.Health == nil {
		return Health{}, errNotRunning
	}
	return s.running.Health(ctx)
}

// ListUsageInput selects people.
type ListUsageInput struct {
	People []space.UserID `json:"people"`
}

// ListUsage reports what people use, in the order of the input.
func (s *Service) ListUsage(ctx context.Context, a Actor, in ListUsageInput) ([]Usage, error) {
	if err := s.authorize(a, "ListUsage"); err != nil {
		return nil, err
	}
	if s.running.Usage == nil {
		return nil, errNotRunning
	}
	return s.running.Usage(ctx, in.People)
}

// GetAccess reports who is allowed in by the configuration.
func (s *Service) GetAccess(_ context.Context, a Actor, _ None) (Access, error) {
	if err := s.authorize(a, "GetAccess"); err != nil {
		return Access{}, err
	}
	out := s.running.Access
	out.Allow, out.MembersInvite = s.o.Allow, s.o.MembersInvite
	return out, nil
}

var errNotRunning = fault.New(fault.Unavailable, "Only a running server knows this.")
