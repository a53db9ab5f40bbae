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
func (s *Site) showSignIn(v *Visit) error {
	back := LocalPath(v.R.URL.Query().Get("return"))
	if v.In {
		return s.See(v, back)
	}
	s.Remember(v, back)
	return s.askSignIn(v, http.StatusOK, back, "", "")
}

func (s *Site) askSignIn(v *Visit, status int, back, problem, field string) error {
	body := signInPage{Return: back, Passkeys: s.Passkeys != nil, Mail: s.Mail != nil, Waits: s.waiting(v, back)}
	for _, p := range s.Offered() {
		switch p.Name {
		case "github":
			body.GitHub = p.Label()
		case "oidc":
			body.OIDC = p.Label()
		}
	}
	return s.Page(v, status, "signin", Page{Title: "Sign in", Script: body.Passkeys || body.Waits != nil, Body: body, Problem: problem, Field: field})
}

// waiting returns the client whose authorization request somebody comes back to;
// nil if it is none, or a wrong one, which is told once they are signed in.
func (s *Site) waiting(v *Visit, back string) *clientName {
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
