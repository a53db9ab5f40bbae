package server

import (
	"strings"
	"testing"
	"time"

	"satchel/auth"
	"satchel/gitstore/remotes"
	"satchel/internal/service"
	"satchel/internal/space"
)

// An admin is told of every part, in words, and nothing that is found leads to
// an error of the page.
func TestHealth(t *testing.T) {
	cfg := settings(t)
	cfg.Auth.AllowDomains = []string{"example.com"}
	r := boot(t, cfg)
	h := &health{s: r.Server, started: time.Now(), now: time.Now}
	report, err := h.Report(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]service.HealthState{
		"Database": service.HealthGood, "Sandboxes": service.HealthOff, "Search": service.HealthGood, "Sources": service.HealthOff, "Git remotes": service.HealthOff,
		"Certificate": service.HealthOff, "Git": service.HealthGood, "GitHub App": service.HealthOff,
	}
	for _, c := range report.Checks {
		if s, ok := want[c.Name]; ok && s != c.State || c.Detail == "" || strings.Contains(c.Detail, cfg.DataDir) {
			t.Errorf("%+v", c)
		}
		delete(want, c.Name)
	}
	if len(want) > 0 || report.Stored == 0 {
		t.Errorf("missing: %v; %d bytes stored", want, report.Stored)
	}
	people, err := r.Accounts.ListUsers(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	var ids []space.UserID
	for _, u := range people {
		ids = append(ids, u.ID)
	}
	used, err := h.Usage(t.Context(), ids)
	if err != nil || len(used) != 1 || used[0].Spaces != 1 || used[0].Grants == 0 || used[0].Commits == 0 || used[0].More || used[0].Bytes != report.Stored {
		t.Errorf("%+v %v", used, err)
	}
	if a, err := r.Service.GetAccess(t.Context(), service.Operator(), service.None{}); err != nil || len(a.Allow.Domains) != 1 || !a.Registration || a.Issuer != "" || a.MailFrom != "" {
		t.Errorf("%+v", a)
	}
}

// Connections that do not stand are no part that works, and are told in the words in
// which their owners read it; whose they are is not an admin's to see.
func TestHealthTellsOfConnectionsInTrouble(t *testing.T) {
	c := connect(t)
	h := &health{s: c.Server, started: time.Now(), now: time.Now}
	l, err := c.github.client.Load().Link(t.Context(), c.ann.ID, c.space, c.found, c.notes)
	if err != nil {
		t.Fatal(err)
	}
	if got := h.github(t.Context()); got.State != service.HealthGood {
		t.Errorf("connected: %+v", got)
	}
	now := l
	now.State = auth.LinkSuspended
	if _, err := c.Accounts.UpdateLink(t.Context(), l, now); err != nil {
		t.Fatal(err)
	}
	what, way := auth.RepositoryLink{State: auth.LinkSuspended}.Trouble(auth.AtGitHubTab)
	got := h.github(t.Context())
	if got.State != service.HealthNote || !strings.Contains(got.Detail, "1 space: "+what) || got.Remedy != way || strings.Contains(got.Detail+got.Remedy, "notes") {
		t.Errorf("suspended: %+v", got)
	}
	if text := failureText(remotes.NoAccess); strings.Contains(text, "_") || !strings.Contains(text, "GitHub App") {
		t.Errorf("a name for people: %q", text)
	}
}
