package web_test

import (
	"context"
	"encoding/csv"
	"encoding/json"
	"html"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"satchel/internal/service"
	"satchel/internal/space"
	"satchel/internal/usage"
)

var (
	entryText = regexp.MustCompile(`(?s)<div class="what"><p>(.*?)</p>`)
	tags      = regexp.MustCompile(`<[^>]*>`)
)

// entries returns the sentences of the audit log's page.
func entries(a answer) (out []string) {
	for _, m := range entryText.FindAllStringSubmatch(a.body, -1) {
		out = append(out, html.UnescapeString(tags.ReplaceAllString(m[1], "")))
	}
	return out
}

// What people do on the pages is in the log as sentences, with names in place of IDs.
func TestAuditLogTellsInSentences(t *testing.T) {
	w := newWorld(t)
	b := w.as(w.ada)
	b.send("/spaces/"+string(w.space.ID)+"/invite", url.Values{"role": {"reader"}, "note": {"grace@example.org"}})
	b.send("/admin/invite", url.Values{"admin": {"1"}})
	b.send("/admin/people/"+string(w.eve.ID)+"/admin", url.Values{"admin": {"1"}})
	b.send("/admin/people/"+string(w.eve.ID)+"/remove", nil)
	b.send("/admin/access", url.Values{"members_invite": {"no"}})
	a := b.get("/admin/audit?user=ada")
	got := entries(a)
	for _, sentence := range []string{
		"ada invited grace@example.org to " + w.space.Name + " as a reader", "ada invited a person to this server as an admin", "ada made eve an admin",
		"ada removed eve from this server", "ada changed who can invite new people: only admins",
	} {
		if !slices.Contains(got, sentence) {
			t.Errorf("%q is missing in %q", sentence, got)
		}
	}
}

// The filter applies to the page and to both exports.
func TestAuditLogIsFilteredAndExported(t *testing.T) {
	w := newWorld(t)
	must(t, w.Record(t.Context(), cli, "space.rename", string(w.space.ID), map[string]any{"to_name": "<b>new</b>"}))
	must(t, w.Record(t.Context(), cli, "key.create", string(w.ada.ID), map[string]any{"name": "=1+1"}))
	b := w.as(w.ada)
	a := b.get("/admin/audit?act=space.rename")
	want(t, "filtered", a, 200)
	contains(t, "filtered", a.body, "&lt;b&gt;new&lt;/b&gt;", "/admin/audit/export?act=space.rename")
	lacks(t, "filtered", a.body, "key.create", "<b>new")
	if got := entries(a); len(got) != 1 || got[0] != "The operator renamed the space ada/"+w.space.Name {
		t.Errorf("the entries are %q", got)
	}
	a = b.get("/admin/audit/export?format=jsonl&act=space.rename")
	var entry service.AuditEntry
	if err := json.Unmarshal([]byte(a.body), &entry); err != nil || entry.Action != "space.rename" {
		t.Errorf("JSON lines: %v, %s", err, a.body)
	}
	a = b.get("/admin/audit/export?format=csv&act=key.create")
	rows, err := csv.NewReader(strings.NewReader(a.body)).ReadAll()
	if err != nil || len(rows) != 2 || rows[1][3] != "key.create" {
		t.Errorf("CSV: %v, %q", err, rows)
	}
	for _, row := range rows {
		for _, cell := range row { // Attack: a name is a formula
			if strings.HasPrefix(cell, "=") {
				t.Errorf("a formula: %q", cell)
			}
		}
	}
	tomorrow := w.clock().AddDate(0, 0, 2).UTC().Format(time.DateOnly)
	lacks(t, "later", b.get("/admin/audit?since="+tomorrow).body, "key.create")
	for _, q := range []string{"since=x", "act=%00", "act=DROP", "user=nobody-here"} {
		want(t, q, b.get("/admin/audit?"+q), 400)
	}
	want(t, "no format", b.get("/admin/audit/export?format=xml"), 400)
	want(t, "no admin", w.as(w.eve).get("/admin/audit/export?format=csv"), 404)
}

// A choice on the page replaces the configuration's, at once.
func TestAdminsChooseWhoInvites(t *testing.T) {
	w := newWorld(t)
	w.healthy(new([][]space.UserID))
	b := w.as(w.ada)
	for choice, checked := range map[string]string{"no": "no", "yes": "", "": ""} { // "yes" is the default here
		if a := b.send("/admin/access", url.Values{"members_invite": {choice}}); a.StatusCode != 303 {
			t.Fatalf("%q: %d", choice, a.StatusCode)
		}
		contains(t, choice, b.get("/admin/access").body, `value="`+checked+`" checked`)
		got, err := w.service.GetAccess(t.Context(), service.Operator(), service.None{})
		if err != nil || string(got.ChosenInvite) != choice || choice != "" && got.MembersInvite != (choice == "yes") {
			t.Errorf("%q: %+v, %v", choice, got, err)
		}
	}
	want(t, "nonsense", b.send("/admin/access", url.Values{"members_invite": {"maybe"}}), 400)
}

// The charts have a table with the same figures.
func TestUsagePage(t *testing.T) {
	w := newWorld(t)
	w.attach(func(r *service.Running) {
		r.ClientUsage = func(context.Context, int) ([]usage.Row, error) {
			return []usage.Row{{Day: w.clock().UTC().Truncate(24 * time.Hour), Client: "<i>claude", Amounts: usage.Amounts{Calls: 7, Searches: 3, BashMS: 1500, Tokens: 4321}}}, nil
		}
	})
	a := w.as(w.ada).get("/admin/usage?days=7")
	want(t, "usage", a, 200)
	contains(t, "usage", a.body, "&lt;i&gt;claude", "<td>7</td>", "<td>3</td>", "<td>1.5 s</td>", "<td>4,321</td>", `class="series0"`)
	lacks(t, "usage", a.body, "<i>claude")
}

// A measure that is zero on all days has a text in place of a chart.
func TestUsageWithoutSearches(t *testing.T) {
	w := newWorld(t)
	w.attach(func(r *service.Running) {
		r.ClientUsage = func(context.Context, int) ([]usage.Row, error) {
			return []usage.Row{{Day: w.clock().UTC().Truncate(24 * time.Hour), Client: "claude", Amounts: usage.Amounts{Calls: 7, BashMS: 1500, Tokens: 4321}}}, nil
		}
	})
	a := w.as(w.ada).get("/admin/usage?days=7")
	if charts, none := strings.Count(a.body, `<rect class="series0"`), strings.Count(a.body, `class="none"`); charts != 3 || none != 1 {
		t.Errorf("%d charts, and %d texts", charts, none)
	}
}
