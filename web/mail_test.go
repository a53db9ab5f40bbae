package web_test

import (
	"context"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"satchel/web"
)

// The answer to a request for a link does not reveal whether the address is known.
func TestMailedLink(t *testing.T) {
	w := newWorld(t)
	ask := func(email string) answer {
		return w.browser().send("/signin/mail", url.Values{"email": {email}, "return": {"/account"}})
	}
	known, unknown := ask("ada@example.com"), ask("nobody@example.com")
	want(t, "known", known, http.StatusOK)
	if known.body != unknown.body || known.StatusCode != unknown.StatusCode {
		t.Error("the answers differ")
	}
	for _, bad := range []string{"", "ada", "Ada <ada@example.com>", "ada@example.com\r\nBcc: eve@example.com", "ada@example.com, eve@example.com", strings.Repeat("a", 300) + "@example.com"} {
		want(t, bad, ask(bad), http.StatusBadRequest)
	}
	letter := <-w.post.sent
	if !strings.HasPrefix(letter, "ada@example.com\nSign in to Satchel\n") {
		t.Fatalf("it was sent: %s", letter)
	}
	w.server.Close() // everything is sent after
	if len(w.post.sent) > 0 {
		t.Errorf("also sent: %s", <-w.post.sent)
	}
	i := strings.Index(letter, issuer+"/signin/link/")
	link, _, _ := strings.Cut(letter[i+len(issuer):], "\n")
	b := w.browser()
	a := b.get(link)
	want(t, "the link", a, http.StatusOK)
	path, _, _ := strings.Cut(link, "?")
	a = b.send(path, url.Values{"return": {"/account"}})
	if a.location() != issuer+"/account" || b.who() != "ada" || !strings.Contains(b.get("/account").body, "by mail") {
		t.Errorf("%q is at %s", b.who(), a.location())
	}
	want(t, "after the end", ask("ada@example.com"), http.StatusTooManyRequests)
}

// stuckMail accepts no letter until it is released.
type stuckMail struct{ began, release chan struct{} }

func (m stuckMail) Send(ctx context.Context, _, _, _ string) error {
	m.began <- struct{}{}
	select {
	case <-m.release:
	case <-ctx.Done():
	}
	return ctx.Err()
}

// Attack: the time of the answer reveals whether an address is known, or a slow mail
// server delays everybody.
func TestAnswerDoesNotWaitForMail(t *testing.T) {
	m := stuckMail{make(chan struct{}, 9), make(chan struct{})}
	w := newWorld(t, func(o *web.Options) { o.Mail = m })
	defer close(m.release)
	ask := func(email string) answer { return w.browser().send("/signin/mail", url.Values{"email": {email}}) }
	for _, u := range []string{"ada", "bob", "eve"} { // more than are sent at a time
		want(t, u, ask(u+"@example.com"), http.StatusOK)
	}
	<-m.began
}

// Attack: many requests send mail to one person.
func TestOneLetterAMinute(t *testing.T) {
	w := newWorld(t)
	ask := func(email string) answer { return w.browser().send("/signin/mail", url.Values{"email": {email}}) }
	first := ask("ada@example.com")
	for _, same := range []string{"ada@example.com", "ADA@example.com", "ada@EXAMPLE.com"} {
		if a := ask(same); a.body != first.body || a.StatusCode != http.StatusOK {
			t.Errorf("%s: another answer", same)
		}
	}
	<-w.post.sent
	w.pass(time.Minute)
	ask("ada@example.com")
	<-w.post.sent
	w.server.Close()
	if len(w.post.sent) > 0 {
		t.Error("more letters were sent")
	}
}
