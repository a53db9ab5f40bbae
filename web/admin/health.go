package admin

import (
	"net/http"
	"time"

	"satchel/internal/bytesize"
	"satchel/internal/service"
	"satchel/internal/space"
	"satchel/web"
)

// healthPage shows the health of the server and what each person uses.
type healthPage struct {
	web.HealthReport
	Version  string
	Up       time.Duration
	Troubles int // checks that failed or need attention
	People   []usageRow
	More     int
}

type usageRow struct {
	Name string
	web.Usage
}

// showHealth handles GET /admin/health.
func (s *pages) showHealth(v *web.Visit) error {
	if s.Health == nil {
		return web.ErrNoPage
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
	r.Totals = append(r.Totals, web.HealthTotal{Name: "Stored", Value: bytesize.Text(r.Stored)})
	body := healthPage{HealthReport: r, Version: s.Version}
	if !r.Started.IsZero() {
		body.Up = s.Now().Sub(r.Started).Truncate(time.Minute)
	}
	for _, c := range r.Checks {
		if c.State == web.HealthNote || c.State == web.HealthBad {
			body.Troubles++
		}
	}
	// The usage of each person costs some reads, so the page never reads all of them.
	shown, next := web.PartOf(v.R, people)
	body.More = next
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
	return s.Page(v, http.StatusOK, "health", web.Page{Title: "Health", Wide: true, Current: "/admin", Styles: []string{"admin.css"}, Body: body})
}

// Stored returns Bytes as text for people.
func (u usageRow) Stored() string { return bytesize.Text(u.Bytes) }
