package web

import (
	"errors"
	"mime"
	"net/http"
	"net/url"
	"os"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"satchel/internal/fault"
)

// Audience may see a page.
type Audience int

const (
	Anyone Audience = iota
	SignedIn
	Admins
)

// ByCeremony is added to who may finish a ceremony: begun, it stands for the token of
// the session's forms, which may be another one by then; see finishCeremony.
const ByCeremony Audience = 1 << 4

type Handler func(v *Visit) error

// adder adds a page to the routes.
type adder func(pattern, limit string, w Audience, h Handler)

// routes lists every page. A pattern with GET serves HEAD too.
func (s *Site) routes() *http.ServeMux {
	mux := http.NewServeMux()
	add := func(pattern, limit string, w Audience, h Handler) {
		mux.Handle(pattern, s.serve(limit, w, MaxFormBytes, h))
	}
	mux.HandleFunc("GET /static/{name}", s.static)
	s.routeHome(add)
	s.routeGitHub(add)
	s.routeFiles(add)
	s.routeEditing(mux, add)
	s.routeActivity(add)
	s.routeSpaces(add)
	s.routePublishing(add)
	s.routeHealth(add)

	add("/", LimitPage, Anyone, func(*Visit) error { return ErrNoPage })

	add("GET /signin", LimitPage, Anyone, s.showSignIn)
	add("GET /signin/link/{token}", LimitPage, Anyone, s.showLink)
	add("POST /signin/link/{token}", LimitSignIn, Anyone, s.useLink)
	if s.Mail != nil {
		add("POST /signin/mail", LimitMail, Anyone, s.mailLink)
	}
	for _, p := range s.Providers() {
		add("GET /signin/"+p.Name, LimitSignIn, Anyone, s.beginSignIn(p))
		add("GET "+p.Callback(), LimitSignIn, Anyone, s.finishSignIn(p))
		add("POST /account/link/"+p.Name, LimitSignIn, SignedIn, s.beginLink(p))
		add("POST /invite/{token}/with/"+p.Name, LimitInvite, Anyone, s.beginJoin(p))
	}
	if s.Passkeys != nil {
		add("POST /signin/passkey/begin", LimitSignIn, Anyone, s.beginPasskey)
		add("POST /signin/passkey/finish", LimitSignIn, Anyone|ByCeremony, s.finishPasskey)
		add("POST /account/passkeys/begin", LimitSignIn, SignedIn, s.beginAddPasskey)
		add("POST /account/passkeys/finish", LimitSignIn, SignedIn|ByCeremony, s.finishAddPasskey)
	}
	add("POST /signout", LimitPage, Anyone, s.signOut)

	if s.OAuth != nil {
		add("GET /oauth/authorize", LimitPage, Anyone, s.showConsent)
		add("POST /oauth/authorize", LimitPage, SignedIn, s.giveConsent)
	}

	add("GET /invite/{token}", LimitInvite, Anyone, s.showInvite)
	add("POST /invite/{token}", LimitInvite, Anyone, s.useInvite)
	add("GET /welcome", LimitPage, SignedIn, s.welcome)

	add("GET /account", LimitPage, SignedIn, s.showAccount)
	add("POST /account/sessions/end", LimitPage, SignedIn, s.endSession)
	add("POST /account/sessions/end-others", LimitPage, SignedIn, s.endOtherSessions)
	add("POST /account/passkeys/remove", LimitPage, SignedIn, s.removePasskey)
	add("POST /account/identities/unlink", LimitPage, SignedIn, s.unlink)
	add("POST /account/grants/revoke", LimitPage, SignedIn, s.revokeGrant)
	add("POST /account/keys", LimitPage, SignedIn, s.createKey)
	add("GET /account/keys/made", LimitPage, SignedIn, s.showNewKey)
	add("GET /invited", LimitPage, SignedIn, s.showInvited)

	add("GET /spaces/{id}", LimitPage, SignedIn, s.showSpace)
	add("POST /spaces/{id}/invite", LimitPage, SignedIn, s.inviteToSpace)
	add("POST /spaces/{id}/invitations/revoke", LimitPage, SignedIn, s.revokeSpaceInvitation)
	add("POST /spaces/{id}/members/{user}/role", LimitPage, SignedIn, s.setRole)
	add("POST /spaces/{id}/members/{user}/remove", LimitPage, SignedIn, s.removeMember)

	add("GET /admin", LimitPage, Admins, s.showAdmin)
	add("POST /admin/invite", LimitPage, Admins, s.inviteToServer)
	add("POST /admin/invitations/revoke", LimitPage, Admins, s.revokeInvitation)
	add("POST /admin/people/{user}/remove", LimitPage, Admins, s.removePerson)
	add("POST /admin/people/{user}/link", LimitPage, Admins, s.makeLink)
	add("GET /admin/link", LimitPage, Admins, s.showMadeLink)
	add("POST /admin/people/{user}/admin", LimitPage, Admins, s.setAdmin)
	return mux
}

// serve wraps the handler of a page in what holds for every page. body bounds, in
// bytes, what it may be sent.
func (s *Site) serve(limit string, need Audience, body int64, h Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s.secureHeaders(w, r)
		v := &Visit{W: w, R: r}
		if err := s.visit(v, limit, need, body, h); err != nil {
			s.Fail(v, err)
		}
		if r.MultipartForm != nil {
			_ = r.MultipartForm.RemoveAll() // what is left is the system's to clean up
		}
		if v.spooled != nil {
			v.spooled()
		}
	})
}

func (s *Site) visit(v *Visit, limit string, need Audience, body int64, h Handler) error {
	ceremony := need&ByCeremony != 0
	need &^= ByCeremony
	if ok, err := s.atIssuer(v); !ok {
		return err
	}
	// Who is signed in has signed in at a rate that is limited; a page that is open
	// in their browser elsewhere, or a neighbour, must not keep them out.
	if err := s.FindSession(v); err != nil {
		return err
	}
	if !v.In || limit != LimitPage {
		if wait, ok := s.Limit(v.R, limit); !ok {
			return tooMany(wait)
		}
	}
	if !Textual(v.R.URL.Path) {
		return ErrNoPage
	}
	unsafe := v.R.Method != http.MethodGet && v.R.Method != http.MethodHead
	if unsafe {
		if err := s.SameOrigin(v.R); err != nil {
			return fault.Wrap(err, fault.Forbidden, "The form was sent from another site, and nothing was changed. Open %s and repeat it there.", s.Origin)
		}
	}
	if need != Anyone && !v.In {
		if unsafe {
			return &PageError{Status: http.StatusUnauthorized, Title: "You are signed out", Text: "Nothing was changed. Sign in and repeat it."}
		}
		return s.See(v, "/signin?return="+url.QueryEscape(LocalPath(v.R.URL.RequestURI())))
	}
	if need == Admins && !v.User.Admin {
		return ErrNoPage
	}
	if unsafe {
		// What is said to be as small as any form takes no place of those.
		if n := v.R.ContentLength; body > spoolFrom && v.In && (n < 0 || n > MaxFormBytes) {
			var err error
			if v.spooled, err = s.spools.enter(v.User.ID); err != nil {
				return err
			}
		}
		if err := s.readForm(v, body); err != nil {
			return err
		}
	}
	if unsafe && v.In && !ceremony {
		if err := CheckForm(v); err != nil {
			return err
		}
	}
	return h(v)
}

// formMemory is how much of an upload is kept in memory; the rest is in files,
// which are removed with the answer.
const formMemory = 1 << 20

// readForm reads what a form sent, once it is known that its sender may.
func (s *Site) readForm(v *Visit, limit int64) error {
	v.R.Body = http.MaxBytesReader(v.W, v.R.Body, limit)
	if wantsJSON(v.R) {
		return nil
	}
	err := v.R.ParseForm()
	if t, _, terr := mime.ParseMediaType(v.R.Header.Get("Content-Type")); err == nil && terr == nil && t == "multipart/form-data" {
		err = v.R.ParseMultipartForm(formMemory)
	}
	if err != nil {
		return BadForm(err)
	}
	for _, values := range v.R.PostForm {
		if slices.ContainsFunc(values, func(s string) bool { return !Textual(s) }) {
			return BadForm(errNoText)
		}
	}
	return nil
}

var errNoText = errors.New("bytes that are no text")

// Textual reports whether a database takes the bytes for text.
func Textual(s string) bool { return utf8.ValidString(s) && !strings.Contains(s, "\x00") }

func tooMany(wait time.Duration) error {
	return &fault.Error{Code: fault.Limited, Public: "There were too many requests from your network. Wait a moment and try again.", RetryAfter: max(wait, time.Second)}
}

func BadForm(err error) error {
	var tooLarge *http.MaxBytesError
	if errors.As(err, &tooLarge) {
		return fault.Wrap(err, fault.TooLarge, "The form is larger than the %d bytes that are allowed.", tooLarge.Limit)
	}
	if errors.Is(err, os.ErrDeadlineExceeded) {
		return &PageError{Status: http.StatusRequestTimeout, Title: "The form took too long to arrive", Text: "Nothing was changed. Go back and send it again."}
	}
	return fault.Wrap(err, fault.Invalid, "The form could not be read.")
}
