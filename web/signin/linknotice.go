package signin

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	"satchel/auth/store"
)

// notifyOfLink mails a person that somebody else created a sign-in link to their account, or
// that such a link was used. It does so only if mail is configured and the person's address is
// known. It does not wait for the mail. Callers need not check who created the link: notifyOfLink
// ignores links that the person created themself.
func (s *pages) notifyOfLink(ctx context.Context, link string) {
	if s.notices == nil {
		return
	}
	n, ok, err := s.Accounts.NoticeOf(ctx, link)
	switch {
	case err != nil:
		s.Logger.ErrorContext(ctx, "a person is not notified by mail of a sign-in link to their account", slog.Any("error", err))
	case ok && !n.Own:
		why := map[putResult]string{duplicate: "they were notified of another within a minute", full: "too many mails wait"}[s.notices.put(letter{notice: &n}, s.Now())]
		if why != "" {
			s.Logger.WarnContext(ctx, "a person is not notified by mail of a sign-in link to their account", slog.String("reason", why), slog.String("user", string(n.User)), slog.String("notice", n.ID), slog.Bool("used", !n.Used.IsZero()))
		}
	}
}

func (s *pages) sendNotice(ctx context.Context, l letter) {
	ctx, cancel := context.WithTimeout(ctx, mailTimeout)
	defer cancel()
	if err := s.sendNoticeOf(ctx, *l.notice); err != nil {
		s.Logger.ErrorContext(ctx, "a person could not be notified by mail of a sign-in link to their account", slog.Any("error", err))
	}
}

func (s *pages) sendNoticeOf(ctx context.Context, n store.LinkNotice) error {
	u, err := s.Accounts.User(ctx, n.User)
	if err != nil {
		return err
	}
	if u.Email == "" {
		return nil
	}
	maker := n.ByName
	if maker == "" {
		maker = "Somebody with the command line of the server"
	}
	subject, what := "A sign-in link to your Satchel account", fmt.Sprintf("The link works once, until %s. Anybody who has the link can sign in as you.", mailTime(n.Expires))
	if !n.Used.IsZero() {
		subject, what = "A sign-in link to your Satchel account was used", fmt.Sprintf("Somebody used the link on %s and is signed in as you.", mailTime(n.Used))
	}
	text := fmt.Sprintf("Hello %s,\n\n%s made a sign-in link to your account at %s on %s.\n\n%s\n\n"+
		"If you asked for the link, ignore this mail. Otherwise, open your account page and end the sessions that are not yours:\n\n%s\n\n"+
		"Then ask an admin of the server why the link was made.\n",
		u.Name, maker, s.Host(), mailTime(n.Created), what, s.URL("/account"))
	return s.Mail.Send(ctx, u.Email, subject, text)
}

// mailTime formats a time for people whose time zone is unknown.
func mailTime(t time.Time) string { return t.UTC().Format("2 January 2006, 15:04 UTC") }
