// Package signin serves the pages on which people sign in, accept an invitation, or let a
// client use a space.
package signin

import (
	"context"
	"embed"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"

	"satchel/web"
)

//go:embed templates
var templates embed.FS

type pages struct {
	*web.Site
	mail *outbox // sends the sign-in links that people request
	// notices is a separate outbox, so that requested links cannot delay notices.
	notices *outbox
}

// Register adds the pages to a site.
func Register(site *web.Site) error {
	s := &pages{Site: site}
	if err := s.AddTemplates(templates); err != nil {
		return err
	}
	s.startMail()
	s.NotifyOfLink = s.notifyOfLink
	s.Handle("GET /signin", web.LimitPage, web.Anyone, s.showSignIn)
	s.Handle("GET /signin/link/{token}", web.LimitPage, web.Anyone, s.showLink)
	s.Handle("POST /signin/link/{token}", web.LimitSignIn, web.Anyone, s.useLink)
	if s.Mail != nil {
		s.Handle("POST /signin/mail", web.LimitMail, web.Anyone, s.mailLink)
	}
	for _, p := range s.Providers() {
		s.Handle("GET /signin/"+p.Name, web.LimitSignIn, web.Anyone, s.beginSignIn(p))
		s.Handle("GET "+p.Callback(), web.LimitSignIn, web.Anyone, s.finishSignIn(p))
		s.Handle("POST /account/link/"+p.Name, web.LimitSignIn, web.SignedIn, s.beginLink(p))
		s.Handle("POST /invite/{token}/with/"+p.Name, web.LimitInvite, web.Anyone, s.beginJoin(p))
	}
	if s.Passkeys != nil {
		s.Handle("POST /signin/passkey/begin", web.LimitSignIn, web.Anyone, s.beginPasskey)
		s.Handle("POST /signin/passkey/finish", web.LimitSignIn, web.Anyone|web.ByCeremony, s.finishPasskey)
		s.Handle("POST /account/passkeys/begin", web.LimitSignIn, web.SignedIn, s.beginAddPasskey)
		s.Handle("POST /account/passkeys/finish", web.LimitSignIn, web.SignedIn|web.ByCeremony, s.finishAddPasskey)
	}

	if s.OAuth != nil {
		s.Handle("GET /oauth/authorize", web.LimitPage, web.Anyone, s.showConsent)
		s.Handle("POST /oauth/authorize", web.LimitPage, web.SignedIn, s.giveConsent)
	}

	s.Handle("GET /invite/{token}", web.LimitInvite, web.Anyone, s.showInvite)
	s.Handle("POST /invite/{token}", web.LimitInvite, web.Anyone, s.useInvite)
	s.Handle("GET /welcome", web.LimitPage, web.SignedIn, s.welcome)
	return nil
}

// startMail starts sending mail in the background. When the site closes, it waits up to ten
// seconds until all queued mails are sent.
func (s *pages) startMail() {
	if s.Mail == nil {
		return
	}
	ctx, stop := context.WithCancel(context.Background())
	s.mail, s.notices = newOutbox(), newOutbox()
	var work sync.WaitGroup
	for range mailers {
		work.Go(func() { s.mail.run(ctx, s.sendLink) })
	}
	work.Go(func() { s.notices.run(ctx, s.sendNotice) })
	s.OnClose(func() {
		s.mail.close()
		s.notices.close()
		end := time.AfterFunc(10*time.Second, stop)
		work.Wait()
		end.Stop()
		stop()
	})
}

// signInPage offers the ways to sign in that exist on this server.
type signInPage struct {
	Return       string
	Passkeys     bool   // whether anybody has a passkey
	GitHub, OIDC string // labels; empty if not configured
	Mail         bool
	// Waits is the client that waits for the sign-in. It is nil if there is none.
	Waits *clientName
}

// showSignIn handles GET /signin.
func (s *pages) showSignIn(v *web.Visit) error {
	back := web.LocalPath(v.R.URL.Query().Get("return"))
	if v.In {
		return s.See(v, back)
	}
	s.Remember(v, back)
	return s.askSignIn(v, http.StatusOK, back, "", "")
}

func (s *pages) askSignIn(v *web.Visit, status int, back, problem, field string) error {
	body := signInPage{Return: back, Mail: s.Mail != nil, Waits: s.waiting(v, back)}
	if s.Passkeys != nil {
		var err error
		if body.Passkeys, err = s.Accounts.HasPasskeys(v.R.Context()); err != nil {
			return err
		}
	}
	for _, p := range s.Offered() {
		switch p.Name {
		case "github":
			body.GitHub = p.Label()
		case "oidc":
			body.OIDC = p.Label()
		}
	}
	return s.Page(v, status, "signin", web.Page{Title: "Sign in", Script: body.Passkeys || body.Waits != nil, Body: body, Problem: problem, Field: field})
}

// waiting returns the client whose authorization request continues after the sign-in. It
// returns nil if there is no such client, or if the request is invalid. In the second case, the
// person sees the error after the sign-in.
func (s *pages) waiting(v *web.Visit, back string) *clientName {
	path, query, _ := strings.Cut(back, "?")
	if s.OAuth == nil || path != "/oauth/authorize" {
		return nil
	}
	q, err := url.ParseQuery(query)
	if err != nil {
		return nil
	}
	req, err := s.OAuth.Authorize(v.R.Context(), q)
	if err != nil {
		return nil
	}
	name := nameOf(req)
	return &name
}
