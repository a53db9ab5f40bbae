package admin

import (
	"net/http"

	"satchel/internal/bytesize"
	"satchel/internal/service"
	"satchel/internal/space"
	"satchel/web"
)

// healthPage shows the health of the server and the usage of each person.
type healthPage struct {
	service.Health
	Checks   []healthCheck
	Version  string
	Troubles int // number of checks that failed or need attention
	People   []usageRow
	More     int
}

type healthCheck struct {
	service.HealthCheck
	Kind string   // the kind of its badge
	Link web.Link // the page where an admin does what the remedy says; empty if there is none
}

// pageOf returns the page where an admin does what the remedy of a check says.
func pageOf(check string) web.Link {
	switch check {
	case "Sources":
		return web.Link{Name: "Open Sources", URL: "/library"}
	case "GitHub App":
		return web.Link{Name: "Open the tab GitHub", URL: "/admin/github"}
	}
	return web.Link{}
}

type usageRow struct {
	Name string
	service.Usage
}

// showHealth handles GET /admin/health.
func (s *pages) showHealth(v *web.Visit) error {
	ctx := v.R.Context()
	r, err := s.Service.GetHealth(ctx, v.Actor(), service.None{})
	if err != nil {
		return err
	}
	people, err := s.Service.ListUsers(ctx, v.Actor(), service.None{})
	if err != nil {
		return err
	}
	r.Totals = append(r.Totals, service.HealthTotal{Name: "Stored", Value: bytesize.Text(r.Stored)})
	body := healthPage{Health: r, Version: s.Version}
	for _, state := range []struct {
		state service.HealthState
		kind  string
	}{{service.HealthBad, "bad"}, {service.HealthNote, "warn"}, {service.HealthGood, "good"}, {service.HealthOff, ""}} {
		for _, c := range r.Checks {
			if c.State == state.state {
				body.Checks = append(body.Checks, healthCheck{c, state.kind, pageOf(c.Name)})
			}
		}
	}
	for _, c := range r.Checks {
		if c.State.Trouble() {
			body.Troubles++
		}
	}
	// Reading a person's usage is slow, so the page reads only the people that it shows.
	shown, next := web.PartOf(v.R, people)
	body.More = next
	var ids []space.UserID
	for _, u := range shown {
		ids = append(ids, u.ID)
	}
	used, err := s.Service.ListUsage(ctx, v.Actor(), service.ListUsageInput{People: ids})
	if err != nil {
		return err
	}
	for i, u := range used {
		body.People = append(body.People, usageRow{shown[i].Name, u})
	}
	return s.Page(v, http.StatusOK, "health", web.Page{Title: "Health", Current: "/admin", Styles: []string{"admin.css"}, Body: body})
}

// Stored returns Bytes as text for people.
func (u usageRow) Stored() string { return bytesize.Text(u.Bytes) }
