package web

import (
	"net/http"
	"time"

	"satchel/auth"
	"satchel/auth/store"
	"satchel/internal/fault"
	"satchel/internal/service"
	"satchel/internal/space"
)

// Visit is a request and its visitor.
type Visit struct {
	W http.ResponseWriter
	R *http.Request

	In      bool // the visitor is signed in
	User    store.User
	Session store.Session
	Secret  string // the secret of the session

	taken   []string // names of the flows that this request has used up
	spooled func()   // frees the place of a large form; nil if there is none

	spaces []service.View // the spaces of the user, read on first use
}

// Actor returns the visitor as the actor of operations.
func (v *Visit) Actor() service.Actor { return service.Person(v.User) }

// By returns the visitor as an actor for the audit log.
func (v *Visit) By() store.Actor { return store.Actor{User: v.User.ID, Via: "web"} }

// CookieName returns the full name of a cookie. With https it has a prefix that keeps
// other hosts of the domain from setting it (RFC 6265bis section 4.1.3.2).
func (s *Site) CookieName(name string) string {
	if s.Secure {
		return "__Host-" + name
	}
	return name
}

const sessionCookie = "satchel"

// SetCookie stores a secret in the browser until it expires; an empty secret deletes the
// cookie. Cookies are Lax because browsers don't send Strict ones when GitHub redirects back.
func (s *Site) SetCookie(w http.ResponseWriter, name, secret string, expires time.Time) {
	c := &http.Cookie{Name: s.CookieName(name), Value: secret, Path: "/", HttpOnly: true, Secure: s.Secure, SameSite: http.SameSiteLaxMode}
	if secret == "" {
		c.MaxAge = -1
	} else if left := expires.Sub(s.Now()); left > 0 {
		c.MaxAge = int(left / time.Second)
	}
	http.SetCookie(w, c)
}

// cookie returns the secret in a cookie, or "" if it is not a secret of the kind. If there
// are two cookies of one name, neither is trusted: one of them was planted.
func (s *Site) cookie(r *http.Request, name string, kind auth.Kind) string {
	all := r.CookiesNamed(s.CookieName(name))
	if len(all) != 1 {
		return ""
	}
	if _, _, err := auth.ParseSecret(kind, all[0].Value); err != nil {
		return ""
	}
	return all[0].Value
}

// findSession sets the signed-in user. An expired session is treated as none.
func (s *Site) findSession(v *Visit) error {
	secret := s.cookie(v.R, sessionCookie, auth.KindSession)
	if secret == "" {
		return nil
	}
	u, ss, err := s.Accounts.CheckSession(v.R.Context(), secret)
	switch {
	case fault.CodeOf(err) == fault.Unauthenticated:
		return nil
	case err != nil:
		return err
	}
	v.In, v.User, v.Session, v.Secret = true, u, ss, secret
	return nil
}

// SignIn starts a session for the user in this browser. It replaces the current session,
// so that a session that somebody planted before is worthless.
func (s *Site) SignIn(v *Visit, user space.UserID, method string) error {
	secret, ss, err := s.Accounts.StartSession(v.R.Context(), store.NewSession{
		User: user, Method: method, Agent: agentOf(v.R), Address: s.Address(v.R), Replaces: v.Secret,
	})
	if err != nil {
		return err
	}
	s.SetCookie(v.W, sessionCookie, secret.Reveal(), ss.Expires)
	s.forget(v)
	return nil
}

// RotateSession gives the session a new secret, after the person added a way to sign in.
func (s *Site) RotateSession(v *Visit) error {
	secret, err := s.Accounts.RotateSession(v.R.Context(), v.Secret)
	if err != nil {
		return err
	}
	v.Secret = secret.Reveal()
	s.SetCookie(v.W, sessionCookie, v.Secret, v.Session.Expires)
	return nil
}

// ForgetSession deletes the cookies of the session and of all flows.
func (s *Site) ForgetSession(v *Visit) {
	s.SetCookie(v.W, sessionCookie, "", time.Time{})
	s.forgetFlows(v)
}

// Stranded reports whether the person can sign in again only with a link from an admin or
// the operator.
func (s *Site) Stranded(v *Visit) (bool, error) {
	if s.Mail != nil && v.User.Email != "" {
		return false, nil
	}
	if s.Passkeys != nil {
		keys, err := s.Accounts.Passkeys(v.R.Context(), v.User.ID)
		if err != nil || len(keys) > 0 {
			return false, err
		}
	}
	if len(s.Offered()) > 0 {
		ids, err := s.Accounts.Identities(v.R.Context(), v.User.ID)
		if err != nil || len(ids) > 0 {
			return false, err
		}
	}
	return true, nil
}

// agentOf returns the shortened User-Agent of a request.
func agentOf(r *http.Request) string { return Shorten(r.UserAgent(), 200) }
