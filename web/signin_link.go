package web

import (
	"context"
	"net/http"

	"satchel/internal/fault"
)

// linkPage is the page of a one-time link: it says whom it signs in, and uses
// nothing up until its button is pressed.
type linkPage struct {
	Name, Display string
	Action        string
	Return        string
	// Other is who is signed in here, where that is somebody else.
	Other string
}

// showLink is GET /signin/link/{token}.
func (s *Server) showLink(v *visit) error {
	token := v.r.PathValue("token")
	u, _, err := s.o.Accounts.PeekLink(v.r.Context(), token)
	if err != nil {
		return deadLink(err)
	}
	back := localPath(v.r.URL.Query().Get("return"))
	if back == "/" {
		back = s.remembered(v.r)
	}
	body := linkPage{Name: u.Name, Display: u.Display, Action: "/signin/link/" + token, Return: back}
	if v.in && v.user.ID != u.ID {
		body.Other = v.user.Name
	}
	return s.page(v, http.StatusOK, "link", page{Title: "Sign in as " + u.Name, Body: body})
}

// useLink is POST /signin/link/{token}.
func (s *Server) useLink(v *visit) error {
	u, method, err := s.o.Accounts.UseLink(v.r.Context(), v.r.PathValue("token"))
	if err != nil {
		return deadLink(err)
	}
	s.TellOfLink(context.WithoutCancel(v.r.Context()), v.r.PathValue("token"))
	if err := s.signIn(v, u.ID, method); err != nil {
		return err
	}
	return s.see(v, localPath(v.r.PostFormValue("return")))
}

// deadLink says of a link that is over what to do.
func deadLink(err error) error {
	switch fault.CodeOf(err) {
	case fault.Unauthenticated, fault.NotFound:
		return &pageError{status: http.StatusNotFound, title: "This link is over",
			text: fault.PublicOf(err) + " A sign-in link works once and for a short time; an admin makes another one on the page People, or who runs the server with the command bin/satchel login-link."}
	}
	return err
}
