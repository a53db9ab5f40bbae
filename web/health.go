package web

import (
	"context"
	"net/http"
	"time"

	"satchel/auth"
	"satchel/auth/store"
	"satchel/internal/bytesize"
	"satchel/internal/service"
	"satchel/internal/space"
)

// Health tells an admin how the server is, and who may come in.
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

// routeHealth adds what an admin sees of the server: health, usage, who may come
// in; and what a person sees of their keys.
func (s *Site) routeHealth() {
	s.Handle("GET /admin/access", LimitPage, Admins, s.showAccess)
	s.Handle("POST /admin/clients/delete", LimitPage, Admins, s.deleteClient)
	s.Handle("GET /admin/health", LimitPage, Admins, s.showHealth)
}

// healthPage is how the server is, and what people use.
type healthPage struct {
	HealthReport
	Version  string
	Up       time.Duration
	Troubles int // and things to look at
	People   []usageRow
	More     int
}

type usageRow struct {
	Name string
	Usage
}

// showHealth is GET /admin/health.
func (s *Site) showHealth(v *Visit) error {
	if s.Health == nil {
		return ErrNoPage
	}
	ctx := v.R.Context()
	r, err := s.Health.Report(ctx)
	if err != nil {
		return err
	}
	people, err := s.Service.ListUsers(ctx, v.Actor(), service.None{})
	if err != nil {
		return err
	}
	r.Totals = append(r.Totals, HealthTotal{Name: "Stored", Value: bytesize.Text(r.Stored)})
	body := healthPage{HealthReport: r, Version: s.Version}
	if !r.Started.IsZero() {
		body.Up = s.Now().Sub(r.Started).Truncate(time.Minute)
	}
	for _, c := range r.Checks {
		if c.State == HealthNote || c.State == HealthBad {
			body.Troubles++
		}
	}
	// What is behind each person costs some reads, so that all are never looked at.
	from := min(PageFrom(v.R), max(0, len(people)-1))
	shown := people[from:min(from+MaxShown, len(people))]
	if n := from + len(shown); n < len(people) {
		body.More = n
	}
	used, err := s.Health.Usage(ctx, shown)
	if err != nil {
		return err
	}
	names := map[space.UserID]string{}
	for _, u := range shown {
		names[u.ID] = u.Name
	}
	for _, u := range used {
		body.People = append(body.People, usageRow{names[u.User], u})
	}
	return s.Page(v, http.StatusOK, "health", Page{Title: "Health", Wide: true, Current: "/admin", Styles: []string{"admin.css"}, Body: body})
}

// Stored is Bytes for people.
func (u usageRow) Stored() string { return bytesize.Text(u.Bytes) }
