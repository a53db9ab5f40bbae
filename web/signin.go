package web

import (
	"net/http"
	"net/url"
	"strings"
)

// signInPage offers what is configured.
type signInPage struct {
	Return       string
	Passkeys     bool
	GitHub, OIDC string // labels; empty if not configured
	Mail         bool
	// Waits is the client that is to be connected once somebody is signed in; nil
	// where none waits.
	Waits *clientName
}

// showSignIn is GET /signin.
func (s *Server) showSignIn(v *visit) error {
	back := localPath(v.r.URL.Query().Get("return"))
	if v.in {
		return s.see(v, back)
	}
	s.remember(v, back)
	return s.askSignIn(v, http.StatusOK, back, "", "")
}

func (s *Server) askSignIn(v *visit, status int, back, problem, field string) error {
	body := signInPage{Return: back, Passkeys: s.o.Passkeys != nil, Mail: s.o.Mail != nil, Waits: s.waiting(v, back)}
	for _, p := range s.offered() {
		switch p.name {
		case "github":
			body.GitHub = p.Label()
		case "oidc":
			body.OIDC = p.Label()
		}
	}
	return s.page(v, status, "signin", page{Title: "Sign in", Script: body.Passkeys || body.Waits != nil, Body: body, Problem: problem, Field: field})
}

// waiting returns the client whose authorization request somebody comes back to;
// nil if it is none, or a wrong one, which is told once they are signed in.
func (s *Server) waiting(v *visit, back string) *clientName {
	path, query, _ := strings.Cut(back, "?")
	if s.o.OAuth == nil || path != "/oauth/authorize" {
		return nil
	}
	q, err := url.ParseQuery(query)
	if err != nil {
		return nil
	}
	req, err := s.o.OAuth.Authorize(v.r.Context(), q)
	if err != nil {
		return nil
	}
	name := nameOf(req)
	return &name
}
