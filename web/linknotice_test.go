package web_test

import (
	"fmt"
	"log/slog"
	"net/http"
	"net/url"
	"regexp"
	"slices"
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

var seenField = regexp.MustCompile(`name="as-of" value="([^"]+)"`)

func asOf(ms string) url.Values { return url.Values{"as-of": {ms}} }

// forEver is what a form of an attacker's says.
const forEver = "99999999999999"

// seenForm is what the form of the first page sends.
func seenForm(a answer) url.Values {
	if m := seenField.FindStringSubmatch(a.body); m != nil {
		return asOf(m[1])
	}
	return nil
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
	if !strings.Contains(page.body, "If that was you, nothing is to be done: this can be put away from <time") || strings.Contains(page.body, putAway) {
		t.Error("it can be put away there, or does not say why not")
	}
	a := inside.send("/account/links/seen", asOf(forEver))
	want(t, "put away", a, http.StatusForbidden)
	if heading(a.body) != "This stays for now" || !strings.Contains(a.body, "one-time link") {
		t.Errorf("it says %s", heading(a.body))
	}
	for name, form := range map[string]url.Values{"nothing": nil, "no time": asOf("x"), "a time past all": asOf(strings.Repeat("9", 40))} {
		want(t, name, inside.send("/account/links/seen", form), http.StatusBadRequest)
	}
	// A second link, and a fresh secret of the session, change nothing.
	want(t, "a second", inside.send(w.as(w.ada).makeLink(w.bob), nil), http.StatusSeeOther)
	inside.script("/account/passkeys/begin", "{}")
	want(t, "after the second", inside.send("/account/links/seen", asOf(forEver)), http.StatusForbidden)

	bob := w.by("passkey", w.bob)
	if a := bob.get("/"); strings.Count(a.body, "<strong>used</strong>") != 2 || !strings.Contains(a.body, putAway) {
		t.Error("the person is not told at their next sign-in")
	}
	for name, b := range map[string]*browser{"the admin's own session": w.by("passkey", w.ada), "a stranger's": w.by("passkey", w.eve)} {
		b.send("/account/links/seen", asOf(forEver))
		if strings.Count(bob.get("/").body, "<strong>used</strong>") != 2 {
			t.Errorf("%s put it away", name)
		}
	}
	want(t, "without a token", bob.request("POST", "/account/links/seen", ""), http.StatusForbidden)
	want(t, "by GET", bob.get("/account/links/seen"), http.StatusNotFound)
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
	checkPage(t, "many", home)
	if n := strings.Count(home.body, "<li>Made "); n != 3 || !strings.Contains(home.body, "<strong>used</strong>") || !strings.Contains(home.body, `<a href="/account?all#links">and 58 more</a>`) {
		t.Errorf("%d are shown", n)
	}
	_, list, _ := strings.Cut(bob.get("/account").body, `id="links"`)
	if n := strings.Count(list, "Made "); n != 30 || !strings.Contains(list, "<strong>used</strong>") || !strings.Contains(list, "Show 31 more") {
		t.Errorf("%d are on the account", n)
	}
	want(t, "put all away", bob.send("/account/links/seen", seenForm(home)), http.StatusSeeOther)
	if strings.Contains(bob.get("/").body, noticed) {
		t.Error("one press does not put all away")
	}
}

// The page Account says how many it has no room for.
func TestMoreLinksThanAnAccountShows(t *testing.T) {
	w := newWorld(t)
	for range 502 {
		w.link(w.bob)
	}
	a := w.by("passkey", w.bob).get("/account?all")
	checkPage(t, "account", a)
	_, list, _ := strings.Cut(a.body, `id="links"`)
	if n := strings.Count(list, "Made "); n != 500 || !strings.Contains(list, "2 more are left out") {
		t.Errorf("%d are on the account, or it does not say how many are left out", n)
	}
}

// Attack: whoever used a link adds a passkey, or an account elsewhere, signs in with it
// and puts the notice away.
func TestAttackWhoEntersByALinkAddsAWayToSignIn(t *testing.T) {
	w := withGitHub(t)
	must(t, w.AddPasskey(t.Context(), cli, store.Passkey{ID: []byte("old"), User: w.bob.ID, Name: "old", Credential: []byte("credential old")}))
	w.pass(time.Minute)
	inside := w.browser()
	want(t, "enter", inside.send(w.as(w.ada).makeLink(w.bob), nil), http.StatusSeeOther)
	inside.script("/account/passkeys/begin", "{}")
	want(t, "add a passkey", inside.script(finishAdd, `{"response":"new","name":"new"}`), http.StatusOK)
	want(t, "link an account", inside.get(callback("grace", stateOf(t, inside.send("/account/link/github", nil)))), http.StatusSeeOther)
	by := func(key string) *browser {
		b := w.browser()
		b.script("/signin/passkey/begin", "{}")
		want(t, key, b.script(finishIn, `{"response":`+quote(key)+`}`), http.StatusOK)
		return b
	}
	hub := w.browser()
	want(t, "by the account", hub.get(callback("grace", stateOf(t, hub.get("/signin/github")))), http.StatusSeeOther)
	fresh := by("new")
	for name, b := range map[string]*browser{"the passkey": fresh, "the account": hub} {
		page := b.get("/")
		checkPage(t, name, page)
		if !strings.Contains(page.body, "You signed in with what was added after such a link was used") || strings.Contains(page.body, putAway) {
			t.Errorf("by %s it can be put away, or the page does not say why not", name)
		}
		if !strings.Contains(page.body, "20 Dec 2026, 12:01 UTC</time> on, or at once where you sign in with what you had before, if you had anything") {
			t.Errorf("by %s the page does not say from when on", name)
		}
		want(t, "by "+name, b.send("/account/links/seen", asOf(forEver)), http.StatusForbidden)
	}
	old := by("old")
	if page := old.get("/"); !strings.Contains(page.body, putAway) {
		t.Error("by what they had before it cannot be put away")
	}
	w.pass(30 * 24 * time.Hour)
	fresh = by("new")
	page := fresh.get("/")
	checkPage(t, "after a month", page)
	byLink := w.as(w.bob).get("/").body
	if !strings.Contains(page.body, putAway) || !strings.Contains(byLink, "I have seen those of more than 30 days ago") || strings.Contains(byLink, "can be put away from") {
		t.Error("who has nothing else cannot put it away after a month")
	}
	want(t, "after a month", fresh.send("/account/links/seen", seenForm(page)), http.StatusSeeOther)
	if strings.Contains(fresh.get("/").body, noticed) {
		t.Error("it stays after a month")
	}
}

// The person is told by mail, too, of links that are made once a minute.
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

// Attack: a link is made and used while the letter of another that was used is new.
func TestAttackASecondLinkIsUsedWithinTheMinute(t *testing.T) {
	var log strings.Builder
	w := newWorld(t, func(o *web.Options) { o.Logger = slog.New(slog.NewTextHandler(&log, nil)) })
	ada := w.as(w.ada)
	used := func() {
		t.Helper()
		want(t, "use", w.browser().send(ada.makeLink(w.bob), nil), http.StatusSeeOther)
	}
	used()
	used()
	w.server.Close()
	var got []string
	for len(w.post.sent) > 0 {
		_, letter, _ := strings.Cut(<-w.post.sent, "\n")
		subject, _, _ := strings.Cut(letter, "\n")
		got = append(got, subject)
	}
	const made, inside = "A sign-in link to your Satchel account", "A sign-in link to your Satchel account was used"
	if !slices.Equal(got, []string{made, inside, inside}) {
		t.Errorf("bob got %q", got)
	}
	if n := strings.Count(log.String(), "a person is not told by mail"); n != 1 || !strings.Contains(log.String(), "used=false") || !strings.Contains(log.String(), string(w.bob.ID)) {
		t.Errorf("%d drops are logged: %s", n, log.String())
	}
}

// Attack: a mailbox is filled with letters of links that are made and used without end,
// or those of links that are made hold back that of one that was used.
func TestAttackLettersWithoutEnd(t *testing.T) {
	var log strings.Builder
	m := stuckMail{make(chan struct{}, 99), make(chan struct{})}
	w := newWorld(t, func(o *web.Options) {
		o.Mail, o.Logger = m, slog.New(slog.NewTextHandler(&log, nil))
	})
	use := func(u store.User) {
		t.Helper()
		s, err := w.CreateLink(t.Context(), cli, u.ID, "link", time.Hour)
		must(t, err)
		_, _, err = w.UseLink(t.Context(), s.Reveal())
		must(t, err)
		w.server.TellOfLink(t.Context(), s.Reveal())
		w.server.TellOfLink(t.Context(), s.Reveal()) // is one letter
	}
	for range 9 {
		use(w.bob)
	}
	if n := strings.Count(log.String(), "within a minute"); n != 9+4 {
		t.Errorf("%d of 18 are dropped: %s", n, log.String())
	}
	log.Reset()
	for i := range 40 {
		u, _ := w.user(fmt.Sprintf("user%d", i), false)
		s, err := w.CreateLink(t.Context(), cli, u.ID, "link", time.Hour)
		must(t, err)
		w.server.TellOfLink(t.Context(), s.Reveal())
	}
	if n := strings.Count(log.String(), "too many mails wait"); n < 10 || n > 40-20 {
		t.Errorf("%d of 40 are dropped", n)
	}
	log.Reset()
	use(w.eve)
	if n := strings.Count(log.String(), "too many mails wait"); n > 0 {
		t.Errorf("a link that was used is not told of: %s", log.String())
	}
	w.pass(time.Minute)
	log.Reset()
	use(w.bob)
	if n := strings.Count(log.String(), "within a minute"); n != 1 {
		t.Errorf("after a minute: %s", log.String())
	}
	close(m.release)
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
