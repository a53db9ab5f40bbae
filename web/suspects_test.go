package web_test

import (
	"context"
	"errors"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"testing"
	"time"

	"satchel/internal/space"
	"satchel/web"
)

// looks is a look for passwords that a test decides.
type looks struct {
	found web.Suspected
	err   error
	of    []space.SpaceID
}

func (l *looks) find(_ context.Context, id space.SpaceID) (web.Suspected, error) {
	l.of = append(l.of, id)
	return l.found, l.err
}

func suspicious() *looks {
	return &looks{found: web.Suspected{Places: []web.SuspectPlace{{Path: "notes/wifi.md", Line: 3}, {Path: "<script>\u202egpj.md", Line: 1}}, More: 4, Partly: true}}
}

var goField = regexp.MustCompile(`name="go" value="([^"]+)"`)

// An owner is warned of what may be passwords before a remote is set, and goes on or
// back.
func TestWarnedBeforeARemoteIsSet(t *testing.T) {
	l := suspicious()
	a := newActive(t, web.LiveOptions{}, func(o *web.Options) { o.Suspects = l.find })
	b := a.as(a.ada)
	form := url.Values{"url": {"https://git.test/me.git"}, "token": {"canary-token"}, "branch": {"notes"}}
	ask := func() (answer, url.Values) {
		t.Helper()
		res := b.send(a.in("remote"), form)
		want(t, "ask", res, http.StatusOK)
		m := goField.FindStringSubmatch(res.body)
		if m == nil {
			t.Fatalf("nobody is asked: %s", heading(res.body))
		}
		return res, url.Values{"go": {m[1]}}
	}
	res, on := ask()
	checkPage(t, "warned", res)
	for _, s := range []string{"https://git.test/me.git", "wifi.md", "line 3", "and 4 more", "Not all files were looked at", `href="` + a.in("remote") + `">Go back`} {
		if !strings.Contains(res.body, s) {
			t.Errorf("it does not say %q", s)
		}
	}
	if strings.Contains(res.body, "canary-token") || strings.Contains(res.body, "<script>\u202e") || len(a.remotes.set) > 0 {
		t.Error("the token or markup is shown, or the remote is set")
	}
	if res = b.get(a.in("remote")); len(l.of) != 1 || len(a.remotes.set) > 0 {
		t.Error("going back sets it, or a look at the page looks through the space")
	}
	want(t, "go on", b.send(a.in("remote"), on), http.StatusSeeOther)
	if s := a.remotes.set; len(s) != 1 || s[0].URL != "https://git.test/me.git" || s[0].Token != "canary-token" || s[0].Branch != "notes" || s[0].Space != a.space.ID {
		t.Errorf("%+v", s)
	}
	want(t, "twice", b.send(a.in("remote"), on), http.StatusBadRequest)

	// Attack: what one was asked is confirmed by another session, for another space or late.
	_, on = ask()
	other := a.as(a.ada)
	want(t, "in another session", other.send(a.in("remote"), on), http.StatusBadRequest)
	second, err := a.CreateSpace(t.Context(), cli, a.ada.ID, space.NewSpaceID(), "second")
	must(t, err)
	want(t, "for another space", b.send("/spaces/"+string(second.ID)+"/remote", on), http.StatusBadRequest)
	want(t, "of nothing", b.send(a.in("remote"), url.Values{"go": {"x"}}), http.StatusBadRequest)
	a.pass(time.Hour)
	want(t, "late", b.send(a.in("remote"), on), http.StatusBadRequest)
	if len(a.remotes.set) != 1 {
		t.Errorf("%+v", a.remotes.set)
	}

	for name, found := range map[string]*looks{
		"nothing is found":        {},
		"the look does not work":  {err: errors.New("disk")},
		"it took more than there": {found: web.Suspected{Partly: true}},
	} {
		*l = *found
		res := b.send(a.in("remote"), form)
		want(t, name, res, http.StatusSeeOther)
		if partly := strings.HasSuffix(res.location(), "done=partly"); partly != found.found.Partly {
			t.Errorf("%s: it leads to %s", name, res.location())
		}
	}
	*l = *suspicious()
	a.remotes.status = web.RemoteStatus{State: "pushed", URL: "https://git.test/me.git"}
	want(t, "another token for the same address", b.send(a.in("remote"), form), http.StatusSeeOther)
	if len(l.of) > 0 {
		t.Error("what is there already is looked through")
	}
}

// An owner is warned before a repository at GitHub is connected or made.
func TestWarnedBeforeGitHubIsConnected(t *testing.T) {
	l := suspicious()
	h := newHubWorld(t, func(o *web.Options) { o.Suspects = l.find })
	b := h.as(h.ada)
	h.choosing(b, "ada")
	pick := url.Values{"repository": {"12"}}
	res := b.send(h.path+"/pick", pick)
	want(t, "choose", res, http.StatusOK)
	checkPage(t, "choose", res)
	for _, s := range []string{"ada-l/blog", "Everybody can read it there", "wifi.md", `name="repository" value="12"`, `href="` + h.path + `/pick">Go back`} {
		if !strings.Contains(res.body, s) {
			t.Errorf("it does not say %q", s)
		}
	}
	if len(h.app.links) > 0 {
		t.Fatal("it is connected")
	}
	want(t, "go back", b.get(h.path+"/pick"), http.StatusOK)
	res = b.send(h.path+"/pick", url.Values{"repository": {"11"}})
	if !strings.Contains(res.body, "Whoever can read that repository") {
		t.Error("a private one is said to be public")
	}
	pick.Set("sure", "1")
	want(t, "go on", b.send(h.path+"/pick", pick), http.StatusSeeOther)
	if h.app.links[h.space.ID].Repository != 12 {
		t.Errorf("%+v", h.app.links)
	}

	must(t, h.app.Unlink(t.Context(), h.ada.ID, h.space.ID))
	h.choosing(b, "ada")
	create := url.Values{"owner": {"ada-l"}, "name": {"memory"}, "visibility": {"private"}}
	res = b.send(h.path+"/create", create)
	want(t, "create", res, http.StatusOK)
	checkPage(t, "create", res)
	if !strings.Contains(res.body, "ada-l/memory") || !strings.Contains(res.body, `name="visibility" value="private"`) {
		t.Error("it does not say what is made, or forgets it")
	}
	create.Set("sure", "1")
	a := away(t, b.send(h.path+"/create", create))
	want(t, "made", b.get("/github/callback?code=ada&state="+a.Query().Get("state")), http.StatusSeeOther)
	if h.app.links[h.space.ID].FullName != "ada-l/memory" {
		t.Errorf("%+v", h.app.links)
	}
}
