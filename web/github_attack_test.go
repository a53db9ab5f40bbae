package web_test

import (
	"maps"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"testing"
	"time"

	"satchel/auth"
)

// Attack: the parameters of GitHub's setup page say whose installation it is, which other
// programs believed. With this browser's state, every number leads to the same place:
// GitHub is asked who the person is. None reaches GitHub or the App.
func TestAttackSpoofedInstallation(t *testing.T) {
	h := newHubWorld(t)
	for name, query := range map[string]string{
		"unclaimed":                  "installation_id=2",
		"claimed by another user":    "installation_id=1",
		"of another App":             "installation_id=999999",
		"non-numeric":                "installation_id=1+OR+1%3D1",
		"duplicated":                 "installation_id=1&installation_id=2",
		"negative":                   "installation_id=-1",
		"too large":                  "installation_id=99999999999999999999999999",
		"none":                       "",
		"with a code of its own":     "installation_id=2&code=eve",
		"setup_action=update":        "installation_id=2&setup_action=update",
		"setup_action=install twice": "installation_id=2&setup_action=install&setup_action=request",
		"an unknown setup_action":    "installation_id=2&setup_action=%3Cscript%3E",
	} {
		for _, path := range []string{"/github/setup?", "/github/callback?"} {
			t.Run(name+" "+path, func(t *testing.T) {
				b := h.as(h.ada)
				a := b.get(path + query + "&state=" + h.state(b, "/install"))
				want(t, name, a, http.StatusSeeOther)
				u := away(t, a)
				for k := range u.Query() {
					if strings.Contains(k, "install") {
						t.Errorf("it goes on with %s", u)
					}
				}
				h.untouched(name)
			})
		}
	}
}

// Attack: an approval comes back without a state, in any browser, and with any IDs.
// Nothing is written, and GitHub is not asked.
func TestAttackApprovalReturnWithoutState(t *testing.T) {
	sent := regexp.MustCompile(`\beve\b`) // a random token can contain the letters
	h := newHubWorld(t)
	for who, b := range map[string]*browser{"nobody": h.browser(), "the owner": h.as(h.ada), "a reader": h.as(h.bob), "a stranger": h.as(h.eve)} {
		for _, target := range []string{
			"/github/setup?installation_id=1&setup_action=install", "/github/setup?installation_id=1&setup_action=update", "/github/setup?setup_action=request",
			"/github/setup", "/github/callback?code=eve&installation_id=2&setup_action=install", "/github/callback?setup_action=request", "/github/callback?code=eve", "/github/callback",
		} {
			a := b.get(target)
			want(t, who+" "+target, a, http.StatusOK)
			if len(b.flows()) > 0 {
				t.Fatalf("%s %s: something was begun", who, target)
			}
			if leads.MatchString(a.body) || sent.MatchString(a.body) && who != "a stranger" {
				t.Errorf("%s %s: the page leads to GitHub, or repeats what it was sent", who, target)
			}
			h.untouched(who + " " + target)
		}
	}
	if a := h.as(h.ada).get("/github/setup?installation_id=1"); !strings.Contains(a.body, h.path+"/connect") {
		t.Error("the owner finds no button to go on")
	}
	if a := h.as(h.bob).get("/github/setup"); strings.Contains(a.body, h.path) {
		t.Error("a reader is offered the space")
	}
}

// A request for approval is recorded for the browser that made it, and connects nothing.
func TestRequestForApproval(t *testing.T) {
	for name, query := range map[string]string{
		"at the setup page":         "/github/setup?setup_action=request",
		"with a code":               "/github/setup?setup_action=request&code=ada",
		"at the callback":           "/github/callback?setup_action=request",
		"at the callback, and code": "/github/callback?setup_action=request&code=ada",
	} {
		h := newHubWorld(t)
		b := h.as(h.ada)
		a := b.get(query + "&state=" + h.state(b, "/install"))
		want(t, name, a, http.StatusSeeOther)
		if did := h.did(); a.location() != issuer+h.path || h.linked(h.space.ID).Repository != 0 || did != "" {
			t.Errorf("%s: %s %s", name, a.location(), did)
		}
		if page := b.get(h.path); heading(page.body) != "Waiting for approval at GitHub" {
			t.Errorf("%s: %s", name, heading(page.body))
		}
	}
}

// Attack: a state of another session or for another purpose. Each row tries to finish what
// ada began.
func TestAttackStates(t *testing.T) {
	for _, route := range []struct{ name, begin, finish string }{
		{"install", "/install", "/github/setup?setup_action=request&installation_id=1"},
		{"install, at the callback", "/install", "/github/callback?setup_action=request&code=ada"},
		{"connect", "/connect", "/github/callback?code=ada"},
		{"manifest", "", "/admin/github/created?code=good"},
	} {
		h := newHubWorld(t)
		if route.begin == "" {
			h.noApp()
		}
		for _, attack := range []struct {
			name string
			do   func(h *hubWorld, b *browser, state string) (*browser, string) // who comes back, with what
		}{
			{"missing", func(_ *hubWorld, b *browser, _ string) (*browser, string) { return b, "" }},
			{"empty", func(_ *hubWorld, b *browser, _ string) (*browser, string) { return b, "&state=" }},
			{"forged", func(_ *hubWorld, b *browser, _ string) (*browser, string) {
				return b, "&state=" + auth.NewSecret(auth.KindFlow).Reveal()
			}},
			{"malformed", func(_ *hubWorld, b *browser, _ string) (*browser, string) { return b, "&state=%27%3B--" }},
			{"duplicated", func(_ *hubWorld, b *browser, s string) (*browser, string) { return b, "&state=" + s + "&state=" + s }},
			{"a second one beside it", func(_ *hubWorld, b *browser, s string) (*browser, string) { return b, "&state=x&state=" + s }},
			{"expired", func(h *hubWorld, b *browser, s string) (*browser, string) {
				h.pass(time.Hour + time.Second)
				return b, "&state=" + s
			}},
			{"from another session of hers", func(h *hubWorld, _ *browser, s string) (*browser, string) { return h.as(h.ada), "&state=" + s }},
			{"of another user", func(h *hubWorld, _ *browser, s string) (*browser, string) { return h.as(h.eve), "&state=" + s }},
			{"of another user, an admin", func(h *hubWorld, _ *browser, s string) (*browser, string) {
				must(h.t, h.SetAdmin(h.t.Context(), cli, h.eve.ID, true))
				return h.as(h.eve), "&state=" + s
			}},
			{"another user in the same browser", func(h *hubWorld, b *browser, s string) (*browser, string) {
				o := h.as(h.eve)
				b.cookies["__Host-satchel"] = o.cookies["__Host-satchel"]
				return b, "&state=" + s
			}},
			{"signed out", func(_ *hubWorld, b *browser, s string) (*browser, string) {
				delete(b.cookies, "__Host-satchel")
				return b, "&state=" + s
			}},
			{"of the server's sign-in", func(_ *hubWorld, b *browser, _ string) (*browser, string) {
				return b, "&state=" + stateOf(b.w.t, b.get("/signin/github"))
			}},
		} {
			t.Run(route.name+", "+attack.name, func(t *testing.T) {
				b := h.as(h.ada)
				must(t, h.SetAdmin(t.Context(), cli, h.eve.ID, false))
				var state string
				if route.begin == "" {
					state = manifestState(t, b.send("/admin/github/manifest", nil))
				} else {
					state = h.state(b, route.begin)
				}
				o, query := attack.do(h, b, url.QueryEscape(state))
				a := o.get(route.finish + query)
				if a.StatusCode == http.StatusSeeOther && !strings.HasPrefix(a.location(), issuer+"/signin") {
					t.Errorf("it went on to %s", a.location())
				}
				if h.hasApp() != (route.begin != "") {
					t.Error("it was finished")
				}
				h.untouched(attack.name)
			})
		}
	}
}

// Attack: a state or code is used twice.
func TestAttackReplay(t *testing.T) {
	h := newHubWorld(t)
	b := h.as(h.ada)
	state := h.state(b, "/connect")
	flow := b.flows()
	want(t, "once", b.get("/github/callback?code=ada&state="+state), 303)
	h.did()
	maps.Copy(b.cookies, flow)
	want(t, "twice", b.get("/github/callback?code=ada&state="+state), 400)
	h.untouched("a replayed callback")

	state = h.state(b, "/install")
	want(t, "setup once", b.get("/github/setup?state="+state), 303)
	if a := b.get("/github/setup?state=" + state); a.StatusCode != http.StatusOK || leads.MatchString(a.body) {
		t.Error("a used state began a second visit")
	}

	h.choosing(b, "ada")
	flow = b.flows()
	want(t, "choose", b.send(h.path+"/pick", url.Values{"repository": {"11"}}), 303)
	h.did()
	must(t, h.UnlinkRepository(t.Context(), h.ada.ID, "test", h.space.ID))
	maps.Copy(b.cookies, flow)
	want(t, "choose again from a list that was used", b.send(h.path+"/pick", url.Values{"repository": {"12"}}), 400)
	h.untouched("a used list")
}

// Attack: a flow of one kind is used for another.
func TestAttackMixedFlows(t *testing.T) {
	h := newHubWorld(t)
	b := h.as(h.ada)
	h.noApp()
	manifest := manifestState(t, b.send("/admin/github/manifest", nil))
	h.setApp(func(*auth.GitHubApp) {})
	install := h.state(b, "/install")
	if a := b.get("/github/setup?setup_action=request&state=" + manifest); a.StatusCode != http.StatusOK || leads.MatchString(a.body) {
		t.Errorf("a manifest's state at the setup page: %d", a.StatusCode)
	}
	want(t, "a manifest's state at the callback", b.get("/github/callback?code=ada&state="+manifest), 400)
	h.noApp()
	want(t, "an installation's state for a manifest", b.get("/admin/github/created?code=good&state="+install), 400)
	h.untouched("mixed flows")
	h.setApp(func(*auth.GitHubApp) {})
	connect := h.state(b, "/connect")
	want(t, "a sign-in finished with it", b.get("/signin/github/callback?code=ada&state="+connect), 400)
	if len(b.flows()) == 0 {
		t.Error("a callback of the sign-in took the flow of a repository")
	}
}

// Attack: login CSRF. Another person's browser finishes a visit that the attacker began at
// GitHub, so that the person's space would go to the attacker's repository.
func TestAttackLoginCSRF(t *testing.T) {
	h := newHubWorld(t)
	eve, ada := h.as(h.eve), h.as(h.ada)
	evil := "/spaces/" + string(h.evil.ID) + "/github"
	state := away(t, eve.send(evil+"/connect", nil)).Query().Get("state")
	want(t, "ada follows eve's link", ada.get("/github/callback?code=eve&state="+state), 400)
	h.untouched("ada without a flow")
	// Ada is in the middle of her own visit.
	hers := h.state(ada, "/connect")
	want(t, "ada follows eve's link in her own visit", ada.get("/github/callback?code=eve&state="+state), 400)
	h.untouched("ada in a visit of hers")
	want(t, "hers goes on", ada.get("/github/callback?code=ada&state="+hers), 303)
	h.did()
	// Eve's cookie is planted by a page of the same site.
	maps.Copy(ada.cookies, eve.flows())
	want(t, "with eve's cookie", ada.get("/github/callback?code=eve&state="+state), 400)
	h.untouched("a planted cookie")
	// A link cannot begin a visit: a page that ada is sent to cannot begin one for her.
	for _, way := range []string{"/connect", "/install", "/create", "/disconnect", "/check"} {
		want(t, "GET "+way, ada.get(h.path+way), 404)
	}
}

// Attack: the form names something other than a number of the server's own list.
func TestAttackSelectRepository(t *testing.T) {
	for name, form := range map[string]url.Values{
		"none":                              {},
		"not in the list":                   {"repository": {"21"}},
		"only to be read":                   {"repository": {"13"}},
		"archived":                          {"repository": {"14"}},
		"duplicated":                        {"repository": {"11", "13"}},
		"non-numeric":                       {"repository": {"11 "}},
		"a name":                            {"repository": {"ada-l/notes"}},
		"too large":                         {"repository": {"92233720368547758080"}},
		"not in the list, with its details": {"repository": {"21"}, "installation_id": {"2"}, "installation": {"2"}, "full_name": {"eve/trap"}, "clone_url": {"https://evil.test/x.git"}, "push": {"true"}},
	} {
		h := newHubWorld(t)
		b := h.as(h.ada)
		h.choosing(b, "ada")
		h.did()
		a := b.send(h.path+"/pick", form)
		want(t, name, a, 400)
		h.untouched(name)
		// The list is still there for the right choice.
		if !strings.Contains(a.body, "ada-l/notes") {
			t.Errorf("%s: the list is gone", name)
		}
		want(t, name+", then a right one", b.send(h.path+"/pick", url.Values{"repository": {"11"}, "installation_id": {"2"}, "repository_id": {"21"}}), 303)
		if l := h.linked(h.space.ID); l.Repository != 11 || l.Installation != 1 {
			t.Errorf("%s: %+v", name, l)
		}
	}
}

// Attack: a list of another space, another session or another time.
func TestAttackListOfAnother(t *testing.T) {
	h := newHubWorld(t)
	second := h.newSpace(h.ada, "second")
	pick := url.Values{"repository": {"11"}}
	for name, tt := range map[string]struct {
		change func(b *browser) *browser
		path   string
	}{
		"of another space of hers": {func(b *browser) *browser { return b }, "/spaces/" + string(second.ID) + "/github/pick"},
		"in another session": {func(b *browser) *browser {
			o := h.as(h.ada)
			maps.Copy(o.cookies, b.flows())
			return o
		}, h.path + "/pick"},
		"after ten minutes": {func(b *browser) *browser { h.pass(10*time.Minute + time.Second); return b }, h.path + "/pick"},
		"without a cookie":  {func(b *browser) *browser { b.forget(); return b }, h.path + "/pick"},
	} {
		b := h.as(h.ada)
		h.choosing(b, "ada")
		h.did()
		want(t, name, tt.change(b).send(tt.path, pick), 400)
		h.untouched(name)
	}
	// Viewing the list does not extend its lifetime.
	b := h.as(h.ada)
	h.choosing(b, "ada")
	h.pass(9 * time.Minute)
	want(t, "nine minutes later", b.get(h.path+"/pick"), 200)
	h.pass(2 * time.Minute)
	a := b.get(h.path + "/pick")
	if a.StatusCode != http.StatusSeeOther || a.location() != issuer+h.path {
		t.Errorf("eleven minutes later: %d", a.StatusCode)
	}
}
