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

// Remember keeps where somebody was on the way to, for who then signs in by a
// one-time link from elsewhere: a client that waits for its consent gets it. The
// cookie proves nothing, and leads to pages of this server alone.
func (s *Site) Remember(v *Visit, back string) {
	if back == "/" || len(back) > maxReturnCookie {
		return
	}
	s.SetCookie(v.W, returnCookie, base64.RawURLEncoding.EncodeToString([]byte(back)), s.Now().Add(returnLifetime))
}

// Remembered is where that was, or "/".
func (s *Site) Remembered(r *http.Request) string {
	all := r.CookiesNamed(s.CookieName(returnCookie))
	if len(all) != 1 {
		return "/"
	}
	b, err := base64.RawURLEncoding.DecodeString(all[0].Value)
	if err != nil {
		return "/"
	}
	return LocalPath(string(b))
}

// forget ends it, once somebody is signed in.
func (s *Site) forget(v *Visit) {
	if len(v.R.CookiesNamed(s.CookieName(returnCookie))) > 0 {
		s.SetCookie(v.W, returnCookie, "", time.Time{})
	}
}
