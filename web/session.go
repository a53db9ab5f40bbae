package web

import (
	"net/http"
	"strings"
	"time"
	"unicode"

	"satchel/auth"
	"satchel/auth/store"
	"satchel/internal/fault"
	"satchel/internal/service"
	"satchel/internal/space"
)

// visit is one request and who makes it.
type visit struct {
	w http.ResponseWriter
	r *http.Request

	in      bool // somebody is signed in
	user    store.User
	session store.Session
	secret  string // of the session

	taken   []string // names of the flows that this request used up
	spooled func()   // ends the place of a large form; nil without one

	spaces []store.Membership // of the user, once they were asked for
}

// actor is the visitor for operations.
func (v *visit) actor() service.Actor { return service.Person(v.user) }

// by is the visitor for the audit log.
func (v *visit) by() store.Actor { return store.Actor{User: v.user.ID, Via: "web"} }

// cookieName is the name of a cookie. With https its prefix keeps other hosts of
// the domain from setting one (RFC 6265bis section 4.1.3.2).
func (s *Server) cookieName(name string) string {
	if s.secure {
		return "__Host-" + name
	}
	return name
}

const sessionCookie = "satchel"

// setCookie keeps a secret in the browser until it expires; an empty one is
// forgotten. Lax, since Strict cookies are not sent when GitHub sends somebody
// back.
func (s *Server) setCookie(w http.ResponseWriter, name, secret string, expires time.Time) {
	c := &http.Cookie{Name: s.cookieName(name), Value: secret, Path: "/", HttpOnly: true, Secure: s.secure, SameSite: http.SameSiteLaxMode}
	if secret == "" {
		c.MaxAge = -1
	} else if left := expires.Sub(s.now()); left > 0 {
		c.MaxAge = int(left / time.Second)
	}
	http.SetCookie(w, c)
}

// cookie returns a cookie's secret, where it has the form of its kind. Of two
// cookies of one name neither counts: one of them came from elsewhere.
func (s *Server) cookie(r *http.Request, name string, kind auth.Kind) string {
	all := r.CookiesNamed(s.cookieName(name))
	if len(all) != 1 {
		return ""
	}
	if _, _, err := auth.ParseSecret(kind, all[0].Value); err != nil {
		return ""
	}
	return all[0].Value
}

// findSession sets who is signed in. A session that is over is as none.
func (s *Server) findSession(v *visit) error {
	secret := s.cookie(v.r, sessionCookie, auth.KindSession)
	if secret == "" {
		return nil
	}
	u, ss, err := s.o.Accounts.CheckSession(v.r.Context(), secret)
	switch {
	case fault.CodeOf(err) == fault.Unauthenticated:
		return nil
	case err != nil:
		return err
	}
	v.in, v.user, v.session, v.secret = true, u, ss, secret
	return nil
}

// signIn begins a session of the user in this browser, in place of the one that
// it had: a secret that somebody planted before is worth nothing after.
func (s *Server) signIn(v *visit, user space.UserID, method string) error {
	secret, ss, err := s.o.Accounts.StartSession(v.r.Context(), store.NewSession{
		User: user, Method: method, Agent: agentOf(v.r), Address: s.o.Address(v.r), Replaces: v.secret,
	})
	if err != nil {
		return err
	}
	s.setCookie(v.w, sessionCookie, secret.Reveal(), ss.Expires)
	s.forget(v)
	return nil
}

// rotate gives the session another secret, after the person got a further way
// to sign in.
func (s *Server) rotate(v *visit) error {
	secret, err := s.o.Accounts.RotateSession(v.r.Context(), v.secret)
	if err != nil {
		return err
	}
	v.secret = secret.Reveal()
	s.setCookie(v.w, sessionCookie, v.secret, v.session.Expires)
	return nil
}

// signOutPage asks somebody who could not come back by themselves.
type signOutPage struct {
	Action string
	ID     string // the session's, where Action asks for it
	Return string
	// Passkeys and Others tell which ways to sign in can be added.
	Passkeys, Others bool
}

// stranded reports whether the person could sign in again only by a link from
// an admin or who runs the server.
func (s *Server) stranded(v *visit) (bool, error) {
	if s.o.Mail != nil && v.user.Email != "" {
		return false, nil
	}
	if s.o.Passkeys != nil {
		keys, err := s.o.Accounts.Passkeys(v.r.Context(), v.user.ID)
		if err != nil || len(keys) > 0 {
			return false, err
		}
	}
	if len(s.offered()) > 0 {
		ids, err := s.o.Accounts.Identities(v.r.Context(), v.user.ID)
		if err != nil || len(ids) > 0 {
			return false, err
		}
	}
	return true, nil
}

// sureToLeave reports whether the session may end: at once where the person can
// come back, else once they said that they are sure. Where it is false the answer
// asks them, or err says what went wrong.
func (s *Server) sureToLeave(v *visit) (bool, error) {
	if v.r.PostFormValue("sure") == "1" {
		return true, nil
	}
	alone, err := s.stranded(v)
	if err != nil || !alone {
		return !alone, err
	}
	return false, s.page(v, http.StatusOK, "signout", page{Title: "Sign out?", Script: s.o.Passkeys != nil, Body: signOutPage{
		Action: v.r.URL.Path, ID: v.r.PostFormValue("id"), Return: localPath(v.r.PostFormValue("return")),
		Passkeys: s.o.Passkeys != nil, Others: len(s.offered()) > 0,
	}})
}

// signOut is POST /signout. It answers alike to who is signed out already.
func (s *Server) signOut(v *visit) error {
	if v.in {
		if ok, err := s.sureToLeave(v); !ok {
			return err
		}
		if err := s.o.Accounts.EndSession(v.r.Context(), v.by(), v.user.ID, v.session.ID); err != nil && fault.CodeOf(err) != fault.NotFound {
			return err
		}
		s.o.Live.EndSession(v.user.ID, v.session.ID)
	}
	s.setCookie(v.w, sessionCookie, "", time.Time{})
	s.forgetFlows(v)
	to := "/signin"
	if back := localPath(v.r.PostFormValue("return")); back != "/" {
		to += "?return=" + queryEscape(back)
	}
	return s.see(v, to)
}

// agentOf is what the browser calls itself, cut to what is worth keeping.
func agentOf(r *http.Request) string { return shorten(r.UserAgent(), 200) }

// shorten makes text of unknown origin fit to show: without characters that are
// not visible or change the direction of others, at most n characters.
func shorten(text string, n int) string {
	var b strings.Builder
	count := 0
	for _, c := range strings.ToValidUTF8(text, "") {
		if c != ' ' && !unicode.IsPrint(c) {
			if !unicode.IsSpace(c) {
				continue
			}
			c = ' '
		}
		if count == n {
			b.WriteString("…")
			break
		}
		b.WriteRune(c)
		count++
	}
	return strings.TrimSpace(b.String())
}
