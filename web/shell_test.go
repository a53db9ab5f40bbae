package web_test

import (
	"encoding/json"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"

	"satchel/internal/space"
	"satchel/web"
	"satchel/web/styleguide"
)

// The theme that a person chooses holds on every page of the browser, and the system's theme
// needs no cookie.
func TestTheme(t *testing.T) {
	w := newWorld(t)
	b := w.as(w.ada)
	scheme := func() string {
		_, rest, _ := strings.Cut(b.get("/account").body, `<meta name="color-scheme" content="`)
		out, _, _ := strings.Cut(rest, `"`)
		return out
	}
	for _, tt := range []struct{ theme, want string }{{"dark", "dark"}, {"light", "light"}, {"system", "light dark"}} {
		want(t, tt.theme, b.send("/theme", url.Values{"theme": {tt.theme}}), http.StatusSeeOther)
		if got := scheme(); got != tt.want {
			t.Errorf("after %s the page has the scheme %q", tt.theme, got)
		}
	}
	want(t, "another", b.send("/theme", url.Values{"theme": {`dark"><script>`}}), http.StatusBadRequest)
	b.cookies["__Host-satchel-theme"] = "dark light"
	if got := scheme(); got != "light dark" {
		t.Errorf("a planted cookie gives %q", got)
	}
}

// The form leads back to the page that it was sent from, and never away from the server.
func TestThemeLeadsBack(t *testing.T) {
	w := newWorld(t)
	b := w.as(w.ada)
	for from, to := range map[string]string{
		issuer + "/spaces/" + string(w.space.ID) + "/memory?q=x": "/spaces/" + string(w.space.ID) + "/memory?q=x",
		issuer + "/account/keys/none":                            "/",
		issuer + "/theme":                                        "/",
		"https://evil.test/account":                              "/",
		issuer + "//evil.test/":                                  "/",
		"":                                                       "/",
	} {
		a := b.send("/theme", url.Values{"theme": {"dark"}}, func(r *http.Request) { r.Header.Set("Referer", from) })
		if want(t, from, a, http.StatusSeeOther); a.location() != issuer+to {
			t.Errorf("from %q it leads to %s, want %s", from, a.location(), to)
		}
	}
}

// The navigation has a place for each subject, and marks the one that is shown.
func TestNavigation(t *testing.T) {
	w := newWorld(t)
	in := "/spaces/" + string(w.space.ID)
	for _, tt := range []struct{ page, here string }{
		{"/", `href="/"`}, {in + "/files/", `href="` + in + `/files/"`}, {in + "/search", `href="` + in + `/search"`}, {in + "/memory", `href="` + in + `/memory"`},
		{in + "/activity", `href="` + in + `/activity"`}, {"/library", `href="/library"`}, {"/connect", `href="/connect"`}, {in, `href="` + in + `"`}, {"/admin", `href="/admin"`},
	} {
		body := w.as(w.ada).get(tt.page).body
		_, nav, _ := strings.Cut(body, `<nav aria-label="Pages">`)
		nav, _, _ = strings.Cut(nav, "</nav>")
		if strings.Count(nav, "aria-current") != 1 || !strings.Contains(nav, "<a "+tt.here+` aria-current="page">`) {
			t.Errorf("%s: %s", tt.page, nav)
		}
	}
	if nav := w.as(w.bob).get("/").body; strings.Contains(nav, `href="/admin"`) {
		t.Error("the navigation leads bob to the pages for admins")
	}
}

// The palette finds files by the words in their paths, names first.
func TestJump(t *testing.T) {
	h := newHeld(t, "knowledge/deploy.md", "# A\n", "deploy/notes.md", "# B\n", "team.md", "# C\n", "knowledge/re-deploy.md", "# D\n")
	find := func(q string) (out []string) {
		t.Helper()
		a := h.as(h.ada).get(h.in("jump?q=%s", url.QueryEscape(q)))
		want(t, q, a, http.StatusOK)
		var found struct{ Files []struct{ Path, URL string } }
		must(t, json.Unmarshal([]byte(a.body), &found))
		for _, f := range found.Files {
			if f.URL != web.PageURL(space.SpaceID(h.space.ID), "files", space.Path(f.Path), "") {
				t.Errorf("%s leads to %s", f.Path, f.URL)
			}
			out = append(out, f.Path)
		}
		return out
	}
	for q, paths := range map[string][]string{
		"DEPLOY": {"knowledge/deploy.md", "knowledge/re-deploy.md", "deploy/notes.md"}, "knowledge re": {"knowledge/re-deploy.md"}, "none": nil, "": nil, " ": nil, "\x00": nil,
	} {
		if got := find(q); !slices.Equal(got, paths) {
			t.Errorf("%q finds %v, want %v", q, got, paths)
		}
	}
	want(t, "as eve", h.as(h.eve).get(h.in("jump?q=deploy")), http.StatusNotFound)
}

// The page of the parts keeps the rules of every page.
func TestStyleGuide(t *testing.T) {
	w := newWorld(t)
	must(t, styleguide.Register(w.server))
	a := w.as(w.ada).get("/styleguide")
	want(t, "the style guide", a, http.StatusOK)
	checkPage(t, "the style guide", a)
}

// Consent asks one question, so its page has no navigation.
func TestConsentHasNoNavigation(t *testing.T) {
	w := newWorld(t)
	if a := w.as(w.ada).get(request()); strings.Contains(a.body, "<nav") {
		t.Error("the page of consent has a navigation")
	}
}
