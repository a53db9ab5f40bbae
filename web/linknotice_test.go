package web_test

import (
	"fmt"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"testing"
	"time"

	"satchel/auth/store"
	"satchel/web"
)

// by is a browser in which the user signed in by the method.
func (w *world) by(method string, u store.User) *browser {
	w.t.Helper()
	secret, _, err := w.StartSession(w.t.Context(), store.NewSession{User: u.ID, Method: method})
	must(w.t, err)
	b := w.browser()
	b.cookies["__Host-satchel"] = secret.Reveal()
	return b
}

const (
	noticed = "Somebody else made"
	putAway = `action="/account/links/seen"`
)

var seenField = regexp.MustCompile(`name="seen" value="([^"]+)"`)

// seenForm is what the form of the first page sends.
func seenForm(a answer) url.Values {
	form := url.Values{}
	for _, m := range seenField.FindAllStringSubmatch(a.body, -1) {
		form.Add("seen", m[1])
	}
	return form
}

// A person sees that somebody else made a link to their account, and that it was
// used, until they put each away; it lasts on their account.
func TestAPersonSeesLinksThatOthersMade(t *testing.T) {
	w := newWorld(t)
	bob := w.by("passkey", w.bob)
	if a := bob.get("/"); strings.Contains(a.body, noticed) || strings.Contains(bob.get("/account").body, `id="links"`) {
		t.Error("there is a notice of nothing")
	}
	link := w.as(w.ada).makeLink(w.bob)
	page := bob.get("/")
	checkPage(t, "made", page)
	if !strings.Contains(page.body, noticed) || !strings.Contains(page.body, "Made by <strong>ada</strong>") || !strings.Contains(page.body, "not used so far") || !strings.Contains(page.body, putAway) {
		t.Error("the first page does not tell that a link was made, by whom, or not how it is put away")
	}
	if strings.Contains(w.by("passkey", w.eve).get("/").body, noticed) || strings.Contains(w.by("passkey", w.ada).get("/").body, noticed) {
		t.Error("somebody else is told")
	}
	want(t, "put away", bob.send("/account/links/seen", seenForm(page)), http.StatusSeeOther)
	if strings.Contains(bob.get("/").body, noticed) {
		t.Error("it is shown again")
	}
	w.pass(time.Minute)
	want(t, "the use", w.browser().send(link, nil), http.StatusSeeOther)
	if used := bob.get("/"); !strings.Contains(used.body, "<strong>used</strong>") {
		t.Error("the first page does not tell that it was used")
	}
	bob.send("/account/links/seen", seenForm(page))
	if !strings.Contains(bob.get("/").body, noticed) {
		t.Error("a page of before the use put the use away")
	}
	bob.send("/account/links/seen", seenForm(bob.get("/")))
	if strings.Contains(bob.get("/").body, noticed) {
		t.Error("the use is shown again")
	}
	account := bob.get("/account")
	checkPage(t, "account", account)
	if _, list, ok := strings.Cut(account.body, `id="links"`); !ok || !strings.Contains(list, "Made by <strong>ada</strong>") || !strings.Contains(list, "<strong>used</strong>") {
		t.Error("it does not last on the account")
	}
	w.link(w.bob)
	if a := bob.get("/"); !strings.Contains(a.body, "Made on the server’s command line") {
		t.Error("one of the command line is not told of")
	}
	w.pass(time.Hour)
	if a := bob.get("/"); !strings.Contains(a.body, "nobody used it, and it is over") {
		t.Error("it does not tell that it is over")
	}
}

// Attack: an admin makes a link, enters another's account by it and puts the notice
// away; the person still sees it at their next sign-in.
func TestAttackWhoEntersByALinkPutsTheNoticeAway(t *testing.T) {
	w := newWorld(t)
	link := w.as(w.ada).makeLink(w.bob)
	inside := w.browser()
	want(t, "enter", inside.send(link, nil), http.StatusSeeOther)
	page := inside.get("/")
	checkPage(t, "inside", page)
	if !strings.Contains(page.body, "so this stays until you sign in another way") || strings.Contains(page.body, putAway) {
		t.Error("it can be put away there, or does not say why not")
	}
	all, err := w.UnseenLinks(t.Context(), w.bob.ID, 9)
	must(t, err)
	for name, form := range map[string]url.Values{
		"as it is":   {"seen": {all[0].ID + ":used"}},
		"as made":    {"seen": {all[0].ID + ":made"}},
		"without id": nil,
	} {
		a := inside.send("/account/links/seen", form)
		want(t, name, a, http.StatusForbidden)
		if heading(a.body) != "This stays for now" || !strings.Contains(a.body, "one-time link") {
			t.Errorf("%s: %s", name, heading(a.body))
		}
	}
	// A second link, and a fresh secret of the session, change nothing.
	want(t, "a second", inside.send(w.as(w.ada).makeLink(w.bob), nil), http.StatusSeeOther)
	inside.script("/account/passkeys/begin", "{}")
	want(t, "after the second", inside.send("/account/links/seen", url.Values{"seen": {all[0].ID + ":used"}}), http.StatusForbidden)

	bob := w.by("passkey", w.bob)
	if a := bob.get("/"); strings.Count(a.body, "<strong>used</strong>") != 2 || !strings.Contains(a.body, putAway) {
		t.Error("the person is not told at their next sign-in")
	}
	for name, b := range map[string]*browser{"the admin's own session": w.by("passkey", w.ada), "a stranger's": w.by("passkey", w.eve)} {
		b.send("/account/links/seen", url.Values{"seen": {all[0].ID + ":used"}})
		if strings.Count(bob.get("/").body, "<strong>used</strong>") != 2 {
			t.Errorf("%s put it away", name)
		}
	}
	want(t, "without a token", bob.request("POST", "/account/links/seen", ""), http.StatusForbidden)
	want(t, "by GET", bob.get("/account/links/seen"), http.StatusNotFound)
	many := url.Values{}
	for i := range 21 {
		many.Add("seen", fmt.Sprintf("ln_%d:used", i))
	}
	want(t, "more than a page shows", bob.send("/account/links/seen", many), http.StatusBadRequest)
}

// Attack: an admin makes links without end, so that the one that was used is not
// among those that are shown, or the page grows.
func TestAttackManyLinksHideTheOneThatWasUsed(t *testing.T) {
	w := newWorld(t)
	ada := w.as(w.ada)
	want(t, "enter", w.browser().send(ada.makeLink(w.bob), nil), http.StatusSeeOther)
	for range 60 {
		w.link(w.bob)
	}
	bob := w.by("passkey", w.bob)
	home := bob.get("/")
	if n := strings.Count(home.body, `name="seen"`); n != 3 || !strings.Contains(home.body, "<strong>used</strong>") {
		t.Errorf("%d are shown", n)
	}
	_, list, _ := strings.Cut(bob.get("/account").body, `id="links"`)
	if n := strings.Count(list, "Made "); n != 30 || !strings.Contains(list, "<strong>used</strong>") || !strings.Contains(list, "Show 31 more") {
		t.Errorf("%d are on the account", n)
	}
}

// The person is told by mail, too, once of each event a minute.
func TestLetterOfALinkThatOthersMade(t *testing.T) {
	w := newWorld(t)
	ada := w.as(w.ada)
	link := ada.makeLink(w.bob)
	letter := <-w.post.sent
	for _, s := range []string{"bob@example.com\nA sign-in link to your Satchel account\n", "ada made a sign-in link to your account", "until 20 November 2026, 12:15 UTC", issuer + "/account"} {
		if !strings.Contains(letter, s) {
			t.Errorf("it does not say %q: %s", s, letter)
		}
	}
	if strings.Contains(letter, "satchel_") || strings.Contains(letter, "/signin/link/") {
		t.Errorf("it has the link: %s", letter)
	}
	want(t, "use", w.browser().send(link, nil), http.StatusSeeOther)
	if letter = <-w.post.sent; !strings.Contains(letter, "was used") || !strings.Contains(letter, "It was used at 20 November 2026, 12:00 UTC") {
		t.Errorf("of the use: %s", letter)
	}
	ada.makeLink(w.bob) // within the minute
	s, err := w.CreateLink(t.Context(), cli, w.eve.ID, "link", time.Hour)
	must(t, err)
	w.server.TellOfLink(t.Context(), s.Reveal())
	if letter = <-w.post.sent; !strings.Contains(letter, "eve@example.com\n") || !strings.Contains(letter, "Somebody with the command line of the server made") {
		t.Errorf("of the command line: %s", letter)
	}
	w.server.TellOfLink(t.Context(), "garbage")
	w.server.Close()
	if len(w.post.sent) > 0 {
		t.Errorf("also sent: %s", <-w.post.sent)
	}
}

// Attack: so many ask for mail that the letter which tells a person of a link waits
// behind theirs; and a mail server that answers nobody keeps no page waiting.
func TestAttackLettersOfStrangersHoldNoNoticeBack(t *testing.T) {
	m := stuckMail{make(chan struct{}, 99), make(chan struct{})}
	w := newWorld(t, func(o *web.Options) { o.Mail = m })
	defer close(m.release)
	for _, u := range []string{"ada", "eve"} {
		want(t, u, w.browser().send("/signin/mail", url.Values{"email": {u + "@example.com"}}), http.StatusOK)
	}
	<-m.began
	<-m.began // both who send those are busy
	w.as(w.ada).makeLink(w.bob)
	<-m.began
}
