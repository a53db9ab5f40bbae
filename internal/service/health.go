package service

import (
	"context"
	"time"

	"satchel/auth"
	"satchel/internal/fault"
	"satchel/internal/space"
	"satchel/internal/usage"
)

// Health describes the state of the server.
type Health struct {
	Started time.Time     `json:"started"`
	Checks  []HealthCheck `json:"checks"`
	Totals  []HealthTotal `json:"totals"`
	Stored  int64         `json:"stored"` // bytes of all spaces, with their history
}

// HealthCheck is the result of one check of the server.
type HealthCheck struct {
	Name   string      `json:"name"`
	State  HealthState `json:"state"`
	Detail string      `json:"detail"` // what the check found
	Remedy string      `json:"remedy"` // what to do; empty if all is well. Commands and settings are in backquotes
}

// HealthState is the state of a part of the server.
type HealthState string

const (
	HealthGood HealthState = "good"
	HealthOff  HealthState = "off"     // not used here
	HealthNote HealthState = "look"    // works, but needs attention
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
		return "Needs attention"
	}
	return "Problem"
}

// Trouble reports whether the state needs a person.
func (s HealthState) Trouble() bool { return s == HealthNote || s == HealthBad }

// HealthTotal is a figure of the whole server.
type HealthTotal struct {
	Name  string `json:"name"`
	Value string `json:"value"`
}

// Usage counts what a person uses.
type Usage struct {
	User      space.UserID `json:"user"`
	Spaces    int          `json:"spaces"` // number of owned spaces
	Grants    int          `json:"grants"` // number of valid grants of clients and keys
	Seen      time.Time    `json:"seen"`
	Commits   int          `json:"commits"`   // number of commits in owned spaces, in 30 days
	More      bool         `json:"more"`      // there are more commits than Commits says
	Sandboxes int          `json:"sandboxes"` // number of running sandboxes
	Bytes     int64        `json:"bytes"`
}

// Access describes whom the server lets in.
type Access struct {
	Allow         auth.AllowList `json:"allow"`
	MembersInvite bool           `json:"members_invite"`
	// ConfiguredInvite is what the configuration says about MembersInvite, and ChosenInvite
	// what an admin chose on the pages.
	ConfiguredInvite bool   `json:"configured_invite"`
	ChosenInvite     Choice `json:"chosen_invite"`
	Issuer           string `json:"issuer"`       // the external authorization server, or empty
	Registration     bool   `json:"registration"` // clients may register themselves
	Documents        bool   `json:"documents"`    // clients may use a client ID metadata document
	MailFrom         string `json:"mail_from"`    // sender of sign-in links; empty if none are mailed
	File             string `json:"file"`         // the configuration file; empty if there is none
}

// GetHealth runs the quick checks of the server.
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

// The default and the maximum of ListClientUsageInput.Days.
const (
	DefaultUsageDays = 30
	MaxUsageDays     = 365
)

// ListClientUsageInput selects the last days, including today.
type ListClientUsageInput struct {
	Days int `json:"days"` // default DefaultUsageDays, at most MaxUsageDays
}

// ListClientUsage lists what clients did on each day, the oldest first.
func (s *Service) ListClientUsage(ctx context.Context, a Actor, in ListClientUsageInput) ([]usage.Row, error) {
	if err := s.authorize(a, "ListClientUsage"); err != nil {
		return nil, err
	}
	if s.running.ClientUsage == nil {
		return nil, errNotRunning
	}
	if in.Days == 0 {
		in.Days = DefaultUsageDays
	}
	return s.running.ClientUsage(ctx, min(max(in.Days, 1), MaxUsageDays))
}

var errNotRunning = fault.New(fault.Unavailable, "Only a running server knows this.")
