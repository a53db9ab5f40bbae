package web_test

import (
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"satchel/auth/github/app"
	"satchel/internal/fault"
	"satchel/internal/space"
	"satchel/web"
)

// Attack: an AI writes a password between the warning and the going on. The owner is asked
// again about what they were not told of, and about nothing else, so that who writes all
// the time keeps nobody from connecting.
func TestAttackPasswordBehindTheWarning(t *testing.T) {
	l := &looks{found: web.Suspected{Places: []web.SuspectPlace{{Path: "wifi.md", Line: 3, Print: "one"}}, Files: 9, Looked: 9}}
	a := newActive(t, web.LiveOptions{}, func(o *web.Options) { o.Suspects = l.find })
	b := a.as(a.ada)
	ask := func(name string, form url.Values, says ...string) url.Values {
		t.Helper()
		res := b.send(a.in("remote"), form)
		want(t, name, res, http.StatusOK)
		checkPage(t, name, res)
		m := goField.FindStringSubmatch(res.body)
		if m == nil || len(a.remotes.set) > 0 {
			t.Fatalf("%s: nobody is asked: %s", name, heading(res.body))
		}
		for _, s := range says {
			if !strings.Contains(res.body, s) {
				t.Errorf("%s: it does not say %q", name, s)
			}
		}
		return url.Values{"go": {m[1]}}
	}
	on := ask("first", url.Values{"url": {"https://git.test/me.git"}, "token": {"canary-token"}})
	// So many that the new one is not among those that a warning names, but for being new.
	var many []web.SuspectPlace
	for i := range 40 {
		many = append(many, web.SuspectPlace{Path: space.Path(fmt.Sprintf("a%02d.md", i)), Line: 1, Print: fmt.Sprint("many", i)})
	}
	l.found.Places = append(many, l.found.Places...)
	a.by("ai", "more", "more.md", "x\n")
	on = ask("more", on, "has changed since you were asked", "a00.md", "and 21 more")
	l.found.Places = append(l.found.Places, web.SuspectPlace{Path: "zz.md", Line: 1, Print: "two"})
	a.by("ai", "behind", "zz.md", "x\n")
	on = ask("behind them", on, "zz.md")
	l.found.Partly, l.found.Looked = true, 3
	a.by("ai", "too much", "much.md", "x\n")
	on = ask("too much to look at", on, "Not all files were looked at")

	// What they were told of elsewhere, less of it, and a look that the head does not need.
	for i := range l.found.Places {
		l.found.Places[i].Path, l.found.Places[i].Line = "moved.md", i+1
	}
	l.found.Places = l.found.Places[3:]
	a.by("ai", "moved", "moved.md", "x\n")
	a.remotes.err = fault.New(fault.Invalid, "The server shuts down.")
	res := b.send(a.in("remote"), on)
	want(t, "refused", res, http.StatusBadRequest)
	a.remotes.err = nil
	kept := url.Values{"url": {"https://git.test/me.git"}, "kept": {keptField.FindStringSubmatch(res.body)[1]}}
	l.found.Places = append(l.found.Places, web.SuspectPlace{Path: "kept.md", Line: 1, Print: "three"})
	a.by("ai", "behind what is kept", "kept.md", "x\n")
	on = ask("behind what is kept", kept, "kept.md")
	n := len(l.of)
	want(t, "go on", b.send(a.in("remote"), on), http.StatusSeeOther)
	if len(a.remotes.set) != 1 || len(l.of) != n {
		t.Errorf("%d set, %d looks of a space that did not move", len(a.remotes.set), len(l.of)-n)
	}
}

// An AI that writes all the time, and no password, asks nobody again.
func TestGoingOnWhileAnAIWrites(t *testing.T) {
	l := suspicious()
	a := newActive(t, web.LiveOptions{}, func(o *web.Options) { o.Suspects = l.find })
	b := a.as(a.ada)
	res := b.send(a.in("remote"), url.Values{"url": {"https://git.test/me.git"}})
	a.by("ai", "write", "x.md", "x\n")
	want(t, "go on", b.send(a.in("remote"), url.Values{"go": {goField.FindStringSubmatch(res.body)[1]}}), http.StatusSeeOther)
	if len(a.remotes.set) != 1 || len(l.of) != 2 {
		t.Errorf("%d set, %d looks", len(a.remotes.set), len(l.of))
	}
}

// Attack: the same with a repository at GitHub; one that is public by now is connected by
// a warning that called it private; and a password is written during the visit to GitHub
// at whose end a repository is made.
func TestAttackPasswordBehindTheChoice(t *testing.T) {
	l := &looks{found: web.Suspected{Places: []web.SuspectPlace{{Path: "wifi.md", Line: 3}}}}
	h := newHubWorld(t, func(o *web.Options) { o.Suspects = l.find })
	b := h.as(h.ada)
	more := func(name string) {
		l.found.Places = append(l.found.Places, web.SuspectPlace{Path: space.Path(name), Line: 1})
	}
	send := func(name, path string, form url.Values, says string) {
		t.Helper()
		res := b.send(h.path+path, form)
		want(t, name, res, http.StatusOK)
		checkPage(t, name, res)
		if !strings.Contains(res.body, says) || len(h.app.links) > 0 {
			t.Errorf("%s: it does not say %q, or is connected", name, says)
		}
		form.Set("sure", sureIn(t, res))
	}
	h.choosing(b, "ada")
	pick := url.Values{"repository": {"11"}, "sure": {"1"}}
	send("nobody was asked", "/pick", pick, "Whoever can read that repository")
	other := url.Values{"repository": {"12"}, "sure": pick["sure"]}
	send("asked about another", "/pick", other, "Everybody can read it there")
	send("and about that no more", "/pick", pick, "Whoever can read that repository")
	more("late.md")
	send("behind the warning", "/pick", pick, "late.md")

	f := h.app.people["ada"]
	f.Repositories = append([]app.Repository{}, f.Repositories...)
	f.Repositories[0].Private = false
	h.app.people["ada"] = f
	h.choosing(b, "ada")
	send("public by now", "/pick", pick, "Everybody can read it there")
	want(t, "go on", b.send(h.path+"/pick", pick), http.StatusSeeOther)
	if h.app.links[h.space.ID].Repository != 11 {
		t.Fatalf("%+v", h.app.links)
	}

	must(t, h.app.Unlink(t.Context(), h.ada.ID, h.space.ID))
	h.choosing(b, "ada")
	create := url.Values{"owner": {"ada-l"}, "name": {"memory"}, "visibility": {"private"}}
	send("make", "/create", create, "late.md")
	create.Set("visibility", "public")
	send("make a public one", "/create", create, "Everybody can read it there")
	u := away(t, b.send(h.path+"/create", create))
	more("visit.md")
	a := b.get("/github/callback?code=ada&state=" + u.Query().Get("state"))
	want(t, "during the visit", a, http.StatusSeeOther)
	if a.location() != issuer+h.path+"/pick" || len(h.app.links) > 0 {
		t.Fatalf("%s, %+v", a.location(), h.app.links)
	}
	a = b.get(h.path + "/pick")
	want(t, "the list", a, http.StatusOK)
	if !strings.Contains(a.body, "nothing was sent there") || !strings.Contains(a.body, "ada-l/memory") {
		t.Error("nobody is told what became of the repository")
	}
	pick = url.Values{"repository": {"99"}}
	send("the new one", "/pick", pick, "visit.md")
	want(t, "go on with it", b.send(h.path+"/pick", pick), http.StatusSeeOther)
	if h.app.links[h.space.ID].FullName != "ada-l/memory" {
		t.Errorf("%+v", h.app.links)
	}
}
