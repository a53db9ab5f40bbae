package signin

import (
	"context"
	"net/http"

	"satchel/internal/fault"
	"satchel/web"
)

// linkPage is the page of a one-time link. It shows which user the link signs in. Only its
// button uses up the link.
type linkPage struct {
	Name, Display string
	Action        string
	Return        string
	// Other is the name of another user who is signed in with this browser.
	Other string
}

// showLink handles GET /signin/link/{token}.
func (s *pages) showLink(v *web.Visit) error {
	token := v.R.PathValue("token")
	u, _, err := s.Accounts.PeekLink(v.R.Context(), token)
	if err != nil {
		return deadLink(err)
	}
	back := web.LocalPath(v.R.URL.Query().Get("return"))
	if back == "/" {
		back = s.Remembered(v.R)
	}
	body := linkPage{Name: u.Name, Display: u.Display, Action: "/signin/link/" + token, Return: back}
	if v.In && v.User.ID != u.ID {
		body.Other = v.User.Name
	}
	return s.Page(v, http.StatusOK, "link", web.Page{Title: "Sign in as " + u.Name, Body: body})
}

// useLink handles POST /signin/link/{token}.
func (s *pages) useLink(v *web.Visit) error {
	u, method, err := s.Accounts.UseLink(v.R.Context(), v.R.PathValue("token"))
	if err != nil {
		return deadLink(err)
	}
	s.NotifyOfLink(context.WithoutCancel(v.R.Context()), v.R.PathValue("token"))
	if err := s.SignIn(v, u.ID, method); err != nil {
		return err
	}
	return s.See(v, web.LocalPath(v.R.PostFormValue("return")))
}

// deadLink returns the error for a link that cannot be used. For an invalid link, it says what to
// do.
func deadLink(err error) error {
	switch fault.CodeOf(err) {
	case fault.Unauthenticated, fault.NotFound:
		return &web.PageError{Status: http.StatusNotFound, Title: "This link is no longer valid",
			Text: "A sign-in link works once, and only for a short time. Ask an admin of this server for a new link, or make one on the server’s command line."}
	}
	return err
}
