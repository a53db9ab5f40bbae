package web

import (
	"encoding/base64"
	"net/http"
	"time"
)

const (
	returnCookie = "satchel-return"
	// returnLifetime is how long somebody has to find a link to sign in with.
	returnLifetime = 15 * time.Minute
	// maxReturnCookie bounds the path in the cookie; browsers keep 4096 bytes.
	maxReturnCookie = 2900
)

// remember keeps where somebody was on the way to, for who then signs in by a
// one-time link from elsewhere: a client that waits for its consent gets it. The
// cookie proves nothing, and leads to pages of this server alone.
func (s *Server) remember(v *visit, back string) {
	if back == "/" || len(back) > maxReturnCookie {
		return
	}
	s.setCookie(v.w, returnCookie, base64.RawURLEncoding.EncodeToString([]byte(back)), s.now().Add(returnLifetime))
}

// remembered is where that was, or "/".
func (s *Server) remembered(r *http.Request) string {
	all := r.CookiesNamed(s.cookieName(returnCookie))
	if len(all) != 1 {
		return "/"
	}
	b, err := base64.RawURLEncoding.DecodeString(all[0].Value)
	if err != nil {
		return "/"
	}
	return localPath(string(b))
}

// forget ends it, once somebody is signed in.
func (s *Server) forget(v *visit) {
	if len(v.r.CookiesNamed(s.cookieName(returnCookie))) > 0 {
		s.setCookie(v.w, returnCookie, "", time.Time{})
	}
}
