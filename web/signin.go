package web

import (
	"net/http"
)

// signInPage offers what is configured.
type signInPage struct {
	Return       string
	Passkeys     bool
	GitHub, OIDC string // labels; empty where not configured
	Mail         bool
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
	body := signInPage{Return: back, Passkeys: s.o.Passkeys != nil, Mail: s.o.Mail != nil}
	if s.o.GitHub != nil {
		body.GitHub = s.o.GitHub.Label()
	}
	if s.o.OIDC != nil {
		body.OIDC = s.o.OIDC.Label()
	}
	return s.page(v, status, "signin", page{Title: "Sign in", Script: body.Passkeys, Body: body, Problem: problem, Field: field})
}
