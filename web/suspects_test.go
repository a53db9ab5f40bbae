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

	"satchel/internal/fault"
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
	return &looks{found: web.Suspected{Places: []web.SuspectPlace{{Path: "notes/wifi.md", Line: 3}, {Path: "<script>\u202egpj.md", Line: 1}}, More: 4, Partly: true, Looked: 30, Files: 31}}
}

// keyPrint is of a secret that a space has.
const keyPrint = "00112233445566778899"

var sureField = regexp.MustCompile(`name="sure" value="([^"]+)"`)

// sureIn names the warning that a page is, for a form that goes on.
func sureIn(t *testing.T, a answer) string {
	t.Helper()
	m := sureField.FindStringSubmatch(a.body)
	if m == nil {
		t.Fatalf("nobody is asked: %s", heading(a.body))
	}
	return m[1]
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
	for _, s := range []string{"https://git.test/me.git", "wifi.md", "line 3", "and 4 more", "<strong>Not all files were looked at</strong>, but 30 of 31", `<button name="back" value="1">Go back`} {
		if !strings.Contains(res.body, s) {
			t.Errorf("it does not say %q", s)
		}
	}
	if strings.Contains(res.body, "canary-token") || strings.Contains(res.body, "<script>\u202e") || len(a.remotes.set) > 0 {
		t.Error("the token or markup is shown, or the remote is set")
	}
	if res = b.get(a.in("remote")); len(l.of) != 1 || len(a.remotes.set) > 0 {
		t.Error("a look at the page sets it, or looks through the space")
	}
	res = b.send(a.in("remote"), url.Values{"go": on["go"], "back": {"1"}})
	want(t, "go back", res, http.StatusOK)
	checkPage(t, "back", res)
	kept := keptField.FindStringSubmatch(res.body)
	if kept == nil || !strings.Contains(res.body, `value="https://git.test/me.git"`) || !strings.Contains(res.body, `value="notes"`) || strings.Contains(res.body, "canary-token") || len(a.remotes.set) > 0 {
		t.Error("going back loses what was given, shows the token, or sets it")
	}
	want(t, "go on after going back", b.send(a.in("remote"), on), http.StatusBadRequest)
	res = b.send(a.in("remote"), url.Values{"url": form["url"], "branch": form["branch"], "kept": {kept[1]}})
	want(t, "ask again", res, http.StatusOK)
	on = url.Values{"go": {goField.FindStringSubmatch(res.body)[1]}}
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

	*l = looks{}
	want(t, "nothing is found", b.send(a.in("remote"), form), http.StatusSeeOther)
	// Attack: an AI writes so much before a password that a look ends before it.
	for name, found := range map[string]struct {
		looks
		says string
	}{
		"there is too much":      {looks{found: web.Suspected{Partly: true, Looked: 3, Files: 14}}, "3 of 14 files were looked at"},
		"the look does not work": {looks{err: errors.New("disk")}, "The files could not be looked at"},
		"it fails in the middle": {looks{found: web.Suspected{Places: []web.SuspectPlace{{Path: "zz.md", Line: 1}}, Looked: 1, Files: 2}, err: errors.New("disk")}, "but 1 of 2"},
	} {
		*l = found.looks
		set := len(a.remotes.set)
		res, on := ask()
		checkPage(t, name, res)
		if !strings.Contains(res.body, found.says) || !strings.Contains(res.body, "Not all files were looked at") || len(a.remotes.set) != set {
			t.Errorf("%s: it does not say %q, or is set", name, found.says)
		}
		if want(t, name, b.send(a.in("remote"), on), http.StatusSeeOther); len(a.remotes.set) != set+1 {
			t.Errorf("%s: nobody can go on", name)
		}
	}
	*l = *suspicious()
	a.remotes.status = web.RemoteStatus{State: "pushed", URL: "https://git.test/me.git"}
	want(t, "another token for the same address", b.send(a.in("remote"), form), http.StatusSeeOther)
	form.Set("url", "https://git.test/me.git/")
	want(t, "a slash behind the same address", b.send(a.in("remote"), form), http.StatusSeeOther)
	if len(l.of) > 0 {
		t.Error("what is there already is looked through")
	}
	form.Set("url", "https://git.test/me") // another one on many servers
	ask()
}

var keptField = regexp.MustCompile(`name="kept" value="([^"]+)"`)

// Nobody is asked about what is refused anyway, and what they gave and said stays for
// another try with the same address, and for no other.
func TestRefusedBeforeTheWarning(t *testing.T) {
	l := suspicious()
	a := newActive(t, web.LiveOptions{}, func(o *web.Options) { o.Suspects = l.find })
	b := a.as(a.ada)
	a.remotes.err = fault.New(fault.Invalid, "That address leads to this machine.")
	form := url.Values{"url": {"https://git.test/me.git"}, "token": {"canary-token"}}
	again := func(name string, form url.Values, says string) url.Values {
		t.Helper()
		res := b.send(a.in("remote"), form)
		want(t, name, res, http.StatusBadRequest)
		checkPage(t, name, res)
		m := keptField.FindStringSubmatch(res.body)
		if !strings.Contains(res.body, says) || strings.Contains(res.body, "canary-token") || goField.MatchString(res.body) || m == nil {
			t.Fatalf("%s: %s", name, heading(res.body))
		}
		return url.Values{"url": {"https://git.test/me.git"}, "kept": {m[1]}}
	}
	ask := func(name string, form url.Values) url.Values {
		t.Helper()
		res := b.send(a.in("remote"), form)
		m := goField.FindStringSubmatch(res.body)
		if m == nil {
			t.Fatalf("%s: nobody is asked: %s", name, heading(res.body))
		}
		return url.Values{"go": {m[1]}}
	}
	set := func(name string, form url.Values, token string) {
		t.Helper()
		want(t, name, b.send(a.in("remote"), form), http.StatusSeeOther)
		if s := a.remotes.set; len(s) == 0 || s[len(s)-1].Token != token {
			t.Errorf("%s: it is set with another token", name)
		}
	}
	form = again("an address of this machine", form, "leads to this machine")
	a.remotes.err, a.remotes.found = nil, []web.FoundSecret{{Path: "key.md", Line: 1, Description: "a key", Fingerprint: keyPrint}}
	form = again("known secrets", form, "what looks like secrets")
	if len(l.of) > 0 {
		t.Error("a look for what is refused")
	}
	form.Set("secrets", keyPrint)
	on := ask("the token is kept", form)
	// What is refused once they are sure is not asked about again.
	a.remotes.err = fault.New(fault.Invalid, "The server shuts down.")
	form = again("refused once sure", on, "shuts down")
	a.remotes.err = nil
	form.Set("url", "https://git.test/me.git/")
	set("sure and kept", form, "canary-token")
	a.remotes.found = nil

	// Attack: what is kept goes to another address, to another space, twice or in another
	// session.
	kept := func() url.Values {
		t.Helper()
		a.remotes.err = nil
		on := ask("keep", url.Values{"url": {"https://git.test/me.git"}, "token": {"canary-token"}})
		a.remotes.err = fault.New(fault.Invalid, "No.")
		form := again("keep", on, "No.")
		a.remotes.err = nil
		return form
	}
	elsewhere := kept()
	elsewhere.Set("url", "https://evil.test/me.git")
	set("to another address", ask("to another address", elsewhere), "")
	own := kept()
	second, err := a.CreateSpace(t.Context(), cli, a.ada.ID, space.NewSpaceID(), "second")
	must(t, err)
	n := len(a.remotes.set)
	want(t, "to another space", b.send("/spaces/"+string(second.ID)+"/remote", own), http.StatusBadRequest)
	want(t, "in another session", a.as(a.ada).send(a.in("remote"), own), http.StatusBadRequest)
	want(t, "as if one had been asked", b.send(a.in("remote"), url.Values{"go": own["kept"]}), http.StatusBadRequest)
	if len(a.remotes.set) != n {
		t.Errorf("%+v", a.remotes.set[n:])
	}
	set("in its place", own, "canary-token")
	want(t, "twice", b.send(a.in("remote"), own), http.StatusBadRequest)
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
	res = b.send(h.path+"/pick", pick)
	pick.Set("sure", sureIn(t, res))
	want(t, "go on", b.send(h.path+"/pick", pick), http.StatusSeeOther)
	if h.app.links[h.space.ID].Repository != 12 {
		t.Errorf("%+v", h.app.links)
	}

	// Attack: an AI writes so much before a password that a look ends before it.
	must(t, h.app.Unlink(t.Context(), h.ada.ID, h.space.ID))
	l.found = web.Suspected{Partly: true, Looked: 3, Files: 14}
	h.choosing(b, "ada")
	res = b.send(h.path+"/pick", url.Values{"repository": {"12"}})
	if checkPage(t, "partly", res); !strings.Contains(res.body, "3 of 14 files were looked at") || len(h.app.links) > 0 {
		t.Errorf("nobody is asked to choose one: %s", heading(res.body))
	}
	res = b.send(h.path+"/create", url.Values{"owner": {"ada-l"}, "name": {"memory"}, "visibility": {"public"}})
	if !strings.Contains(res.body, "3 of 14 files were looked at") {
		t.Errorf("nobody is asked to make one: %s", heading(res.body))
	}
	*l = *suspicious()
	h.choosing(b, "ada")
	create := url.Values{"owner": {"ada-l"}, "name": {"memory"}, "visibility": {"private"}}
	res = b.send(h.path+"/create", create)
	want(t, "create", res, http.StatusOK)
	checkPage(t, "create", res)
	if !strings.Contains(res.body, "ada-l/memory") || !strings.Contains(res.body, `name="visibility" value="private"`) {
		t.Error("it does not say what is made, or forgets it")
	}
	create.Set("sure", sureIn(t, res))
	a := away(t, b.send(h.path+"/create", create))
	want(t, "made", b.get("/github/callback?code=ada&state="+a.Query().Get("state")), http.StatusSeeOther)
	if h.app.links[h.space.ID].FullName != "ada-l/memory" {
		t.Errorf("%+v", h.app.links)
	}
}
