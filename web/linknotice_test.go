package web_test

import (
	"fmt"
	"log/slog"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"satchel/auth/store"
	"satchel/web"
)

// by returns a browser in which the user signed in with a method.
func (w *world) by(method string, u store.User) *browser {
	w.t.Helper()
	secret, _, err := w.StartSession(w.t.Context(), store.NewSession{User: u.ID, Method: method})
	must(w.t, err)
	b := w.browser()
	b.cookies["__Host-satchel"] = secret.Reveal()
	return b
}

const noticed = `<p class="note link-made">`

// For 30 days, a person sees that somebody else made or used a link to their account.
// Their account page lists it longer.
func TestAPersonSeesLinksThatOthersMade(t *testing.T) {
	w := newWorld(t)
	bob := w.by("passkey", w.bob)
	if a := bob.get("/"); strings.Contains(a.body, noticed) || strings.Contains(bob.get("/account").body, `id="links"`) {
		t.Error("there is a notice of nothing")
	}
	link := w.as(w.ada).makeLink(w.bob)
	page := bob.get("/")
	checkPage(t, "made", page)
	if !strings.Contains(page.body, noticed) || !strings.Contains(page.body, "made by <strong><bdi>ada</bdi></strong>") || !strings.Contains(page.body, "not used yet") {
		t.Error("the first page does not say that a link was made, and by whom")
	}
	if strings.Contains(w.by("passkey", w.eve).get("/").body, noticed) || strings.Contains(w.by("passkey", w.ada).get("/").body, noticed) {
		t.Error("somebody else is told")
	}
	w.pass(time.Minute)
	want(t, "the use", w.browser().send(link, nil), http.StatusSeeOther)
	if used := bob.get("/"); !strings.Contains(used.body, "<strong>used</strong>") {
		t.Error("the first page does not tell that it was used")
	}
	account := bob.get("/account")
	checkPage(t, "account", account)
	if _, list, ok := strings.Cut(account.body, `id="links"`); !ok || !strings.Contains(list, "Made by <strong>ada</strong>") || !strings.Contains(list, "<strong>used</strong>") {
		t.Error("it does not last on the account")
	}
	w.link(w.bob)
	if !strings.Contains(bob.get("/").body, `<a href="/account?all#links">`) || !strings.Contains(bob.get("/account").body, "Made on the server’s command line") {
		t.Error("one of the command line is not told of")
	}
	w.pass(time.Hour)
	if a := bob.get("/account"); !strings.Contains(a.body, "expired unused") {
		t.Error("it does not tell that it is over")
	}
	w.pass(30 * 24 * time.Hour)
	if strings.Contains(w.by("passkey", w.bob).get("/").body, noticed) {
		t.Error("it is on the first page for longer than 30 days")
	}
}

// Attack: an admin makes a link and signs in to another's account with it. No session can
// hide the notice, so the person sees it at their next sign-in.
func TestAttackWhoEntersByALinkCannotHideIt(t *testing.T) {
	w := newWorld(t)
	link := w.as(w.ada).makeLink(w.bob)
	inside := w.browser()
	want(t, "enter", inside.send(link, nil), http.StatusSeeOther)
	checkPage(t, "inside", inside.get("/"))
	want(t, "put away", inside.send("/account/links/seen", nil), http.StatusNotFound)
	if !strings.Contains(w.by("passkey", w.bob).get("/").body, "<strong>used</strong>") {
		t.Error("the person does not see it at their next sign-in")
	}
}

// Attack: an admin makes endless links, so that the used one is not shown or the page
// grows.
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
	if n := strings.Count(home.body, noticed); n != 1 || !strings.Contains(home.body, "<strong>used</strong>") || !strings.Contains(home.body, `<a href="/account?all#links">See all sign-in links</a>`) {
		t.Errorf("%d are shown", n)
	}
	_, list, _ := strings.Cut(bob.get("/account").body, `id="links"`)
	if n := strings.Count(list, "Made "); n != 30 || !strings.Contains(list, "<strong>used</strong>") || !strings.Contains(list, "Show 31 more") {
		t.Errorf("%d are on the account", n)
	}
}

// The account page says how many links it leaves out.
func TestMoreLinksThanAnAccountShows(t *testing.T) {
	w := newWorld(t)
	for range 502 {
		w.link(w.bob)
	}
	a := w.by("passkey", w.bob).get("/account?all")
	checkPage(t, "account", a)
	_, list, _ := strings.Cut(a.body, `id="links"`)
	if n := strings.Count(list, "Made "); n != 500 || !strings.Contains(list, "2 more are not shown") {
		t.Errorf("%d are on the account, or it does not say how many are left out", n)
	}
}

// The person is also mailed about links, at most once a minute.
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
	if letter = <-w.post.sent; !strings.Contains(letter, "was used") || !strings.Contains(letter, "used the link on 20 November 2026, 12:00 UTC") {
		t.Errorf("of the use: %s", letter)
	}
	ada.makeLink(w.bob) // within the minute
	s, err := w.CreateLink(t.Context(), cli, w.eve.ID, "link", time.Hour)
	must(t, err)
	w.server.NotifyOfLink(t.Context(), s.Reveal())
	if letter = <-w.post.sent; !strings.Contains(letter, "eve@example.com\n") || !strings.Contains(letter, "Somebody with the command line of the server made") {
		t.Errorf("of the command line: %s", letter)
	}
	w.server.NotifyOfLink(t.Context(), "garbage")
	w.server.Close()
	if len(w.post.sent) > 0 {
		t.Errorf("also sent: %s", <-w.post.sent)
	}
}

// Attack: a link is made and used shortly after the letter about another used link.
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
	if n := strings.Count(log.String(), "a person is not notified by mail"); n != 1 || !strings.Contains(log.String(), "used=false") || !strings.Contains(log.String(), string(w.bob.ID)) {
		t.Errorf("%d drops are logged: %s", n, log.String())
	}
}

// Attack: endless links fill a mailbox with letters, or letters about links that were made
// delay one about a used link.
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
		w.server.NotifyOfLink(t.Context(), s.Reveal())
		w.server.NotifyOfLink(t.Context(), s.Reveal()) // is one letter
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
		w.server.NotifyOfLink(t.Context(), s.Reveal())
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

// Attack: so many people request mail that a notice about a link has to wait. A mail
// server that does not answer delays no page.
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
