package signin

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"net/http"
	"net/mail"
	"net/url"
	"strings"
	"sync"
	"time"

	"satchel/auth/store"
	"satchel/internal/fault"
	"satchel/web"
)

const (
	// maxOutbox is how many mails wait at most, and mailers how many are sent at
	// a time.
	maxOutbox = 64
	mailers   = 2
	// mailPause is how long an address gets no second one, and maxRecent how many
	// addresses get one within that time.
	mailPause = time.Minute
	maxRecent = 1000
	// maxUsedLetters is how many letters of links that were used a person gets within
	// mailPause: one of each link, and no mailbox is filled.
	maxUsedLetters = 5
	// mailTimeout bounds one mail.
	mailTimeout = 30 * time.Second
	maxAddress  = 254 // RFC 5321 section 4.5.3.1.3
)

// letter is a sign-in link that somebody asked for, or what its user is to be told
// of one.
type letter struct {
	to, back string
	notice   *store.LinkNotice
}

// key is the same of letters of which one a while is enough: to an address, to a
// person of links that were made, or of one link that was used.
func (l letter) key() string {
	switch {
	case l.notice == nil:
		return strings.ToLower(l.to)
	case l.notice.Used.IsZero():
		return string(l.notice.User) + " made"
	}
	return l.usedKey() + l.notice.ID
}

// usedKey begins the keys of all letters to a person of links that were used.
func (l letter) usedKey() string { return string(l.notice.User) + " used " }

// used reports whether a letter is of a link that was used: somebody is inside.
func (l letter) used() bool { return l.notice != nil && !l.notice.Used.IsZero() }

// outbox sends mail in the background, so that how long an answer takes does not
// tell whether the address is known.
type outbox struct {
	mu     sync.Mutex
	closed bool
	queue  chan letter
	recent map[string]time.Time // when a key last got one
}

func newOutbox() *outbox {
	return &outbox{queue: make(chan letter, maxOutbox), recent: map[string]time.Time{}}
}

// fate is what becomes of a letter.
type fate int

const (
	waits    fate = iota
	repeated      // one of the same key, or enough of a person's, went within mailPause
	crowded       // too many wait, or the outbox is closed
)

// put takes a letter. A second one of the same key within mailPause is dropped: nobody
// can fill a mailbox from many addresses of the network. Letters of links that were
// made leave half of the room to those of links that were used.
func (o *outbox) put(l letter, now time.Time) fate {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.closed {
		return crowded
	}
	maps.DeleteFunc(o.recent, func(_ string, t time.Time) bool { return now.Sub(t) >= mailPause })
	key := l.key()
	if _, ok := o.recent[key]; ok {
		return repeated
	}
	waiting, recent := maxOutbox, maxRecent
	switch {
	case l.used():
		n := 0
		for k := range o.recent {
			if strings.HasPrefix(k, l.usedKey()) {
				n++
			}
		}
		if n >= maxUsedLetters {
			return repeated
		}
	case l.notice != nil:
		waiting, recent = waiting/2, recent/2
	}
	if len(o.recent) >= recent || len(o.queue) >= waiting {
		return crowded
	}
	o.queue <- l // has room: nothing else fills it
	o.recent[key] = now
	return waits
}

// close lets run end once everything was sent.
func (o *outbox) close() {
	o.mu.Lock()
	defer o.mu.Unlock()
	if !o.closed {
		o.closed = true
		close(o.queue)
	}
}

func (o *outbox) run(ctx context.Context, send func(context.Context, letter)) {
	for l := range o.queue {
		if ctx.Err() == nil {
			send(ctx, l)
		}
	}
}

// mailedPage says that a link may be on its way.
type mailedPage struct {
	Lifetime time.Duration
	Return   string // where to go on in this tab
}

// mailLink is POST /signin/mail. The answer is the same for everybody.
func (s *pages) mailLink(v *web.Visit) error {
	to := strings.TrimSpace(v.R.PostFormValue("email"))
	back := web.LocalPath(v.R.PostFormValue("return"))
	if a, err := mail.ParseAddress(to); err != nil || a.Address != to || len(to) > maxAddress || !strings.Contains(to, "@") {
		return s.askSignIn(v, http.StatusBadRequest, back, "That is no mail address.", "email")
	}
	if s.mail.put(letter{to: to, back: back}, s.Now()) == crowded {
		return &fault.Error{Code: fault.Limited, Public: "Too many people ask for mail at the moment. Try again in a minute.", RetryAfter: time.Minute}
	}
	return s.Page(v, http.StatusOK, "mailed", web.Page{Title: "Look into your mail", Body: mailedPage{s.LinkLifetime, back}})
}

// sendLink sends a link to who has the address, and nothing to others.
func (s *pages) sendLink(ctx context.Context, l letter) {
	ctx, cancel := context.WithTimeout(ctx, mailTimeout)
	defer cancel()
	if err := s.sendLinkTo(ctx, l); err != nil {
		s.Logger.ErrorContext(ctx, "a sign-in link could not be mailed", slog.Any("error", err))
	}
}

func (s *pages) sendLinkTo(ctx context.Context, l letter) error {
	u, err := s.Accounts.UserByEmail(ctx, l.to)
	if fault.CodeOf(err) == fault.NotFound {
		s.Logger.InfoContext(ctx, "a sign-in link was asked for by mail for an address of nobody")
		return nil
	}
	if err != nil {
		return err
	}
	secret, err := s.Accounts.CreateLink(ctx, store.Actor{User: u.ID, Via: "mail"}, u.ID, "mail", s.LinkLifetime)
	if fault.CodeOf(err) == fault.Limited {
		s.Logger.WarnContext(ctx, "a person has as many mailed links as may be open, and is sent no other", slog.String("user", u.Name))
		return nil
	}
	if err != nil {
		return err
	}
	link := s.URL("/signin/link/" + secret.Reveal())
	if l.back != "/" {
		link += "?return=" + url.QueryEscape(l.back)
	}
	text := fmt.Sprintf("Hello %s,\n\nthis link signs you in at %s, once and within %s:\n\n%s\n\nIf you did not ask for it, do nothing.\n",
		u.Name, s.Host(), web.Span(s.LinkLifetime), link)
	if err := s.Mail.Send(ctx, u.Email, "Sign in to Satchel", text); err != nil {
		return errors.Join(err, s.Accounts.EndLink(context.WithoutCancel(ctx), secret)) // it counts for nothing
	}
	return nil
}
