package web_test

import (
	"context"
	"net/url"
	"strings"
	"testing"
	"time"

	"satchel/auth"
	"satchel/auth/store"
	"satchel/internal/service"
	"satchel/internal/service/servicetest"
	"satchel/internal/space"
	"satchel/internal/usage"
)

// healthy is a server with a check in every state. asked gets the people whose usage is
// read.
func (w *world) healthy(asked *[][]space.UserID) {
	w.attach(func(r *service.Running) {
		r.Health = func(context.Context) (service.Health, error) {
			return service.Health{
				Started: time.Date(2026, 11, 20, 9, 0, 0, 0, time.UTC),
				Checks: []service.HealthCheck{
					{Name: "Database", State: service.HealthGood, Detail: "sqlite answers."},
					{Name: "Disk", State: service.HealthBad, Detail: "<b>full</b>", Remedy: "Run `df <i>`."},
					{Name: "Search", State: service.HealthNote, Detail: "behind", Remedy: "Wait."},
					{Name: "GitHub App", State: service.HealthOff, Detail: "none", Remedy: "Set it up."},
				},
				Totals: []service.HealthTotal{{Name: "People", Value: "3"}},
			}, nil
		}
		r.Usage = func(_ context.Context, people []space.UserID) ([]service.Usage, error) {
			*asked = append(*asked, people)
			var out []service.Usage
			for _, p := range people {
				out = append(out, service.Usage{User: p, Spaces: 2, Commits: 1000, More: true, Bytes: 1_500_000})
			}
			return out, nil
		}
		r.ClientUsage = func(context.Context, int) ([]usage.Row, error) { return nil, nil }
		r.Access = service.Access{Registration: true, File: "/etc/satchel.yaml"}
	})
}

func TestHealthPage(t *testing.T) {
	var asked [][]space.UserID
	w := newWorld(t)
	w.healthy(&asked)
	a := w.as(w.ada).get("/admin/health")
	want(t, "health", a, 200)
	for _, text := range []string{
		"2 checks need attention", "started <time", "Problem</span>", "Needs attention</span>", "Works</span>", "Off</span>", "Run <code>df &lt;i&gt;</code>.", `Set it up.</bdi> <a href="/admin/github">Open the tab GitHub</a>`,
		"&lt;b&gt;full&lt;/b&gt;", "1.5 MB", "1,000+", `aria-current="page">Health`, ">ada<", ">eve<",
	} {
		if !strings.Contains(a.body, text) {
			t.Errorf("the page has no %q", text)
		}
	}
	// If there are many people, a page shows some, and the next page the others.
	for i := range 40 {
		w.user("user"+strings.Repeat("x", i+1), false)
	}
	asked = nil
	if a = w.as(w.ada).get("/admin/health"); !strings.Contains(a.body, "/admin/health?from=30#usage") || len(asked[0]) != 30 {
		t.Errorf("%d people were looked at", len(asked[0]))
	}
	if a = w.as(w.ada).get("/admin/health?from=30"); strings.Contains(a.body, "?from=") || len(asked[1]) != 13 {
		t.Errorf("then %d", len(asked[1]))
	}
	for _, from := range []string{"-1", "x", "99999999999999999999", "1000"} {
		want(t, "from "+from, w.as(w.ada).get("/admin/health?from="+from), 200)
	}
}

func TestAccessPage(t *testing.T) {
	w := newWorldOf(t, servicetest.Setup{Service: func(o *service.Options) {
		o.Allow = auth.AllowList{Emails: []string{"x@<i>.test"}, Domains: []string{"Example.com"}}
	}})
	w.healthy(new([][]space.UserID))
	for _, admitted := range []string{"domain:example.com", "email:gone@example.com"} {
		_, _, err := w.CreateUser(t.Context(), cli, store.NewUser{Name: "by" + admitted[:5], Admitted: admitted})
		must(t, err)
	}
	must(t, w.RegisterClient(t.Context(), auth.Client{ID: "evil", Kind: auth.ClientRegistered, Name: `<script>alert(1)</script>`, RedirectURIs: []string{"https://evil.test/cb"}, Created: w.clock()}))
	a := w.as(w.ada).get("/admin/access")
	want(t, "access", a, 200)
	for _, text := range []string{
		"x@&lt;i&gt;.test", "Example.com", "1 person joined", "No longer on the list", "gone@example.com", "evil.test", "&lt;script&gt;alert(1)", "claraapp", "Registered itself", "/etc/satchel.yaml", `aria-current="page">Access`,
	} {
		if !strings.Contains(a.body, text) {
			t.Errorf("the page has no %q", text)
		}
	}
	if strings.Contains(a.body, "<script>alert") {
		t.Error("script in a client's name")
	}
}

func TestAnAdminDeletesAClient(t *testing.T) {
	w := newWorld(t)
	w.healthy(new([][]space.UserID))
	b := w.as(w.ada)
	if a := b.send("/admin/clients/delete", url.Values{"id": {"client"}}); a.StatusCode != 303 || !strings.HasSuffix(a.location(), "/admin/access#clients") || len(w.ended) == 0 {
		t.Errorf("%d %s %v", a.StatusCode, a.location(), w.ended)
	}
	want(t, "again", b.send("/admin/clients/delete", url.Values{"id": {"client"}}), 404)
	if strings.Contains(b.get("/admin/access").body, "Clara") {
		t.Error("it is still there")
	}
}

func TestKeysPage(t *testing.T) {
	w := newWorld(t)
	b := w.as(w.bob)
	want(t, "none", b.get("/account/keys"), 200)
	_, secret, err := w.CreateKey(t.Context(), cli, store.NewKey{User: w.bob.ID, Space: w.space.ID, Scopes: []space.Scope{space.ScopeRead}, Name: `<script>backup`, Expires: w.clock().AddDate(0, 1, 0)})
	must(t, err)
	_, _, err = w.CreateKey(t.Context(), cli, store.NewKey{User: w.eve.ID, Space: w.evil.ID, Scopes: []space.Scope{space.ScopeRead}, Name: "eves own"})
	must(t, err)
	a := b.get("/account/keys")
	for _, text := range []string{"&lt;script&gt;backup", "expires <time", "20 Dec 2026", issuer + "/api/sandbox/search", "not used yet"} {
		if !strings.Contains(a.body, text) {
			t.Errorf("the page has no %q", text)
		}
	}
	for _, text := range []string{"eves own", secret.Reveal(), "<script>backup"} {
		if strings.Contains(a.body, text) {
			t.Errorf("the page has %q", text)
		}
	}
	a = b.send("/account/keys", url.Values{"name": {""}, "days": {"30"}, "space": {string(w.space.ID)}})
	if a.StatusCode != 400 || heading(a.body) != "Keys" || !strings.Contains(a.body, `aria-invalid="true"`) {
		t.Errorf("a key without a name: %d %s", a.StatusCode, heading(a.body))
	}
	a = b.send("/account/keys", url.Values{"name": {"new"}, "days": {"30"}, "space": {string(w.space.ID)}})
	if a = b.get(strings.TrimPrefix(a.location(), issuer)); a.StatusCode != 200 || !strings.Contains(a.body, "satchel_") {
		t.Errorf("a key: %d %s", a.StatusCode, heading(a.body))
	}
	want(t, "anothers", b.send("/account/grants/revoke", url.Values{"from": {"keys"}, "id": {"g_none"}}), 404)
}
