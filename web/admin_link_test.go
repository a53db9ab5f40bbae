package web_test

import (
	"net/http"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"satchel/auth/store"
)

var madeLink = regexp.MustCompile(`value="` + regexp.QuoteMeta(issuer) + `(/signin/link/[^"]+)"`)

func linkFor(u store.User) string { return "/admin/people/" + string(u.ID) + "/link" }

// makeLink makes a link for a user as an admin and returns its path.
func (b *browser) makeLink(u store.User) string {
	b.w.t.Helper()
	a := b.send(linkFor(u), nil)
	want(b.w.t, "make", a, http.StatusSeeOther)
	a = b.get(strings.TrimPrefix(a.location(), issuer))
	want(b.w.t, "show", a, http.StatusOK)
	checkPage(b.w.t, "show", a)
	m := madeLink.FindStringSubmatch(a.body)
	if m == nil {
		b.w.t.Fatal("the link is not shown")
	}
	return m[1]
}

// worthNothing checks that a link signs nobody in.
func (w *world) worthNothing(name, link string) {
	w.t.Helper()
	b := w.browser()
	want(w.t, name+", opened", b.get(link), http.StatusNotFound)
	want(w.t, name+", used", b.send(link, nil), http.StatusNotFound)
	if b.signedIn() {
		w.t.Errorf("%s: %q is signed in", name, b.who())
	}
}

func TestAdminMakesASignInLink(t *testing.T) {
	w := newWorld(t)
	ada := w.as(w.ada)
	page := ada.get("/admin")
	if !strings.Contains(page.body, `action="`+linkFor(w.bob)+`"`) || strings.Contains(page.body, `action="`+linkFor(w.ada)+`"`) {
		t.Error("the page offers no link for bob, or one for ada herself")
	}
	ada.send(linkFor(w.bob), nil)
	a := ada.get(ada.once)
	for _, s := range []string{"The first person who opens the link is signed in as bob", "works once, for 15 minutes", "shown only now"} {
		if !strings.Contains(a.body, s) {
			t.Errorf("the page does not say %q", s)
		}
	}
	older := madeLink.FindStringSubmatch(a.body)[1]
	link := ada.makeLink(w.bob)
	w.worthNothing("an older link", older)

	b := w.browser()
	want(t, "a look", b.get(link), http.StatusOK)
	want(t, "the button", b.send(link, nil), http.StatusSeeOther)
	if b.who() != "bob" {
		t.Errorf("%q is signed in", b.who())
	}
	w.worthNothing("a used link", link)
	late := ada.makeLink(w.bob)
	w.pass(15 * time.Minute)
	w.worthNothing("an expired link", late)

	entries, err := w.Audit(t.Context(), 0, 50)
	must(t, err)
	i := slices.IndexFunc(entries, func(e store.Entry) bool { return e.Action == "link.create" })
	if i < 0 || entries[i].Subject != string(w.bob.ID) || entries[i].Actor != (store.Actor{User: w.ada.ID, Via: "web"}) {
		t.Errorf("the audit log has %+v", entries)
	}
	for _, e := range entries {
		if strings.Contains(e.Detail, "satchel_") {
			t.Errorf("the audit log has a secret: %s", e.Detail)
		}
	}
}

// Attack: the page of a link is reloaded, requested with HEAD, or opened in another
// session or from the history.
func TestAttackSignInLinkShownAgain(t *testing.T) {
	w := newWorld(t)
	ada := w.as(w.ada)
	ada.send(linkFor(w.bob), nil)
	kept := ada.onlyFlow()
	hidden := func(name string, a answer) {
		t.Helper()
		want(t, name, a, http.StatusNotFound)
		if strings.Contains(a.body, "/signin/link/") {
			t.Errorf("%s: the link is shown", name)
		}
	}
	hidden("by HEAD", ada.request("HEAD", ada.once, ""))
	again := w.as(w.ada)
	for name := range ada.flows() {
		again.cookies[name] = kept
	}
	hidden("in another session of hers", again.get(ada.once))
	cookies := ada.flows()
	a := ada.get(ada.once)
	want(t, "once", a, http.StatusOK)
	if a.Header.Get("Cache-Control") != "no-store" {
		t.Error("the page may be kept")
	}
	hidden("loaded again", ada.get(ada.once))
	for name, secret := range cookies {
		ada.cookies[name] = secret
	}
	hidden("with the cookie of before", ada.get(ada.once))
}

// Attack: somebody who is not an admin, or no longer one, signs in as another person.
func TestAttackSignInLinkOfWhoIsNoAdmin(t *testing.T) {
	w := newWorld(t)
	carl, _ := w.user("carl", true)
	page, made, shown := w.as(carl), w.as(carl), w.as(carl)
	token := page.token()
	link := shown.makeLink(w.ada)
	made.send(linkFor(w.bob), nil)
	must(t, w.SetAdmin(t.Context(), cli, carl.ID, false))
	want(t, "by a form of a page from before", page.request("POST", linkFor(w.bob), "form="+token), http.StatusNotFound)
	want(t, "the page of a link that was made before", made.get(made.once), http.StatusNotFound)
	w.worthNothing("a link from before", link)
	must(t, w.SetAdmin(t.Context(), cli, carl.ID, true))
	link = w.as(carl).makeLink(w.ada)
	must(t, w.RemoveUser(t.Context(), cli, carl.ID))
	w.worthNothing("a link of who was removed", link)
}

// A link does not let in people who would not be let in otherwise.
func TestNoSignInLinkForWhoIsOut(t *testing.T) {
	w := newWorld(t)
	ada := w.as(w.ada)
	out, _, err := w.CreateUser(t.Context(), cli, store.NewUser{Name: "olga", Admitted: "email:olga@example.com"})
	must(t, err)
	link := ada.makeLink(out)
	_, _, err = w.SuspendUnlisted(t.Context(), cli, func(string) bool { return false })
	must(t, err)
	if strings.Contains(ada.get("/admin").body, linkFor(out)) {
		t.Error("a link is offered for who is suspended")
	}
	want(t, "for who is suspended", ada.send(linkFor(out), nil), http.StatusForbidden)
	b := w.browser()
	want(t, "one from before", b.send(link, nil), http.StatusForbidden)
	must(t, w.RemoveUser(t.Context(), cli, w.bob.ID))
	want(t, "for who was removed", ada.send(linkFor(w.bob), nil), http.StatusNotFound)
	if b.signedIn() {
		t.Error("somebody is signed in")
	}
}
