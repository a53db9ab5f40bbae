package web

import (
	"encoding/base64"
	"net/http"
	"time"
)

const (
	returnCookie = "satchel-return"
	// returnLifetime is how long a person has to open a sign-in link.
	returnLifetime = 15 * time.Minute
	// maxReturnCookie limits the path, in bytes. The cookie has the path in Base64, which is
	// longer, and browsers store up to 4096 bytes.
	maxReturnCookie = 2900
)

// Remember stores the address that a person wanted to open, so that they get there after
// they sign in with a one-time link: a client may be waiting for consent. The cookie is
// not trusted, and leads only to pages of this server.
func (s *Site) Remember(v *Visit, back string) {
	if back == "/" || len(back) > maxReturnCookie {
		return
	}
	s.SetCookie(v.W, returnCookie, base64.RawURLEncoding.EncodeToString([]byte(back)), s.Now().Add(returnLifetime))
}

// Remembered returns the address that Remember stored, or "/".
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

// forget deletes the address that Remember stored.
func (s *Site) forget(v *Visit) {
	if len(v.R.CookiesNamed(s.CookieName(returnCookie))) > 0 {
		s.SetCookie(v.W, returnCookie, "", time.Time{})
	}
}
