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
	// maxOutbox is the maximum number of mails that wait in an outbox. mailers is how many mails
	// with sign-in links are sent at a time.
	maxOutbox = 64
	mailers   = 2
	// mailPause is the minimum time between two mails with the same key. maxRecent is the
	// maximum number of keys in that time.
	mailPause = time.Minute
	maxRecent = 1000
	// maxUsedLetters is the maximum number of letters about used links that a person gets within
	// mailPause. Each link causes at most one.
	maxUsedLetters = 5
	// mailTimeout is the maximum time to send a mail.
	mailTimeout = 30 * time.Second
	maxAddress  = 254 // RFC 5321 section 4.5.3.1.3
)

// letter is a mail with a sign-in link that somebody requested, or with a notice about a link.
type letter struct {
	to, back string
	notice   *store.LinkNotice
}

// key identifies letters that count as duplicates: the outbox accepts one letter for each key
// within mailPause. Duplicates are links for one address, notices to one person about new
// links, or notices about the use of one link.
func (l letter) key() string {
	switch {
	case l.notice == nil:
		return strings.ToLower(l.to)
	case l.notice.Used.IsZero():
		return string(l.notice.User) + " made"
	}
	return l.usedKey() + l.notice.ID
}

// usedKey returns the prefix of the keys of all letters to a person about used links.
func (l letter) usedKey() string { return string(l.notice.User) + " used " }

// used reports whether a letter is about the use of a link.
func (l letter) used() bool { return l.notice != nil && !l.notice.Used.IsZero() }

// outbox sends mail in the background, so that the time of an answer does not reveal
// whether an address is known.
type outbox struct {
	mu     sync.Mutex
	closed bool
	queue  chan letter
	recent map[string]time.Time // when a letter with the key was last accepted
}

func newOutbox() *outbox {
	return &outbox{queue: make(chan letter, maxOutbox), recent: map[string]time.Time{}}
}

// putResult says whether a letter was accepted.
type putResult int

const (
	queued    putResult = iota
	duplicate           // within mailPause, a letter with the same key was accepted, or maxUsedLetters letters about used links
	full                // too many letters wait, or the outbox is closed
)

// put queues a letter. It drops a second letter with the same key within mailPause, so that
// nobody can flood a mailbox, even from many network addresses. Notices about new links can fill
// only half of the queue, so that other letters still find room.
func (o *outbox) put(l letter, now time.Time) putResult {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.closed {
		return full
	}
	maps.DeleteFunc(o.recent, func(_ string, t time.Time) bool { return now.Sub(t) >= mailPause })
	key := l.key()
	if _, ok := o.recent[key]; ok {
		return duplicate
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
			return duplicate
		}
	case l.notice != nil:
		waiting, recent = waiting/2, recent/2
	}
	if len(o.recent) >= recent || len(o.queue) >= waiting {
		return full
	}
	o.queue <- l // does not block: only put sends, and there is room
	o.recent[key] = now
	return queued
}

// close refuses further letters. run returns when the queue is empty.
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

// mailedPage says that a link may be on its way. It is the same for a known and an unknown
// address.
type mailedPage struct {
	Lifetime time.Duration
	Return   string // where the tab that shows this page continues after the sign-in
}

// mailLink handles POST /signin/mail. The answer does not depend on whether a user
// has the address.
func (s *pages) mailLink(v *web.Visit) error {
	to := strings.TrimSpace(v.R.PostFormValue("email"))
	back := web.LocalPath(v.R.PostFormValue("return"))
	if a, err := mail.ParseAddress(to); err != nil || a.Address != to || len(to) > maxAddress || !strings.Contains(to, "@") {
		return s.askSignIn(v, http.StatusBadRequest, back, "That is not an email address.", "email")
	}
	if s.mail.put(letter{to: to, back: back}, s.Now()) == full {
		return &fault.Error{Code: fault.Limited, Public: "Too many people are requesting mail right now. Try again in a minute.", RetryAfter: time.Minute}
	}
	return s.Page(v, http.StatusOK, "mailed", web.Page{Title: "Check your mail", Body: mailedPage{s.LinkLifetime, back}})
}

// sendLink mails a link if a user has the address.
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
		s.Logger.InfoContext(ctx, "a sign-in link was requested for an address without a user")
		return nil
	}
	if err != nil {
		return err
	}
	secret, err := s.Accounts.CreateLink(ctx, store.Actor{User: u.ID, Via: "mail"}, u.ID, "mail", s.LinkLifetime)
	if fault.CodeOf(err) == fault.Limited {
		s.Logger.WarnContext(ctx, "sign-in link not mailed: the person has too many open links", slog.String("user", u.Name))
		return nil
	}
	if err != nil {
		return err
	}
	link := s.URL("/signin/link/" + secret.Reveal())
	if l.back != "/" {
		link += "?return=" + url.QueryEscape(l.back)
	}
	text := fmt.Sprintf("Hello %s,\n\nOpen this link to sign in at %s:\n\n%s\n\nThe link works once and expires after %s.\n\n"+
		"If you did not ask for the link, ignore this mail. Do not send the link to anybody.\n",
		u.Name, s.Host(), link, web.Span(s.LinkLifetime))
	if err := s.Mail.Send(ctx, u.Email, "Sign in to Satchel", text); err != nil {
		return errors.Join(err, s.Accounts.EndLink(context.WithoutCancel(ctx), secret)) // so that the link does not count as open
	}
	return nil
}
