package web

import (
	"errors"
	"mime"
	"net/http"
	"os"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"satchel/internal/fault"
)

// who may see a page.
type who int

const (
	anyone who = iota
	signedIn
	admins
)

// byCeremony is added to who may finish a ceremony: begun, it stands for the token of
// the session's forms, which may be another one by then; see finishCeremony.
const byCeremony who = 1 << 4

type handler func(v *visit) error

// adder adds a page to the routes.
type adder func(pattern, limit string, w who, h handler)

// routes lists every page. A pattern with GET serves HEAD too.
func (s *Server) routes() *http.ServeMux {
	mux := http.NewServeMux()
	add := func(pattern, limit string, w who, h handler) {
		mux.Handle(pattern, s.serve(limit, w, maxFormBytes, h))
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

	add("/", LimitPage, anyone, func(*visit) error { return errNoPage })

	add("GET /signin", LimitPage, anyone, s.showSignIn)
	add("GET /signin/link/{token}", LimitPage, anyone, s.showLink)
	add("POST /signin/link/{token}", LimitSignIn, anyone, s.useLink)
	if s.o.Mail != nil {
		add("POST /signin/mail", LimitMail, anyone, s.mailLink)
	}
	for _, p := range s.providers() {
		add("GET /signin/"+p.name, LimitSignIn, anyone, s.beginSignIn(p))
		add("GET "+p.callback(), LimitSignIn, anyone, s.finishSignIn(p))
		add("POST /account/link/"+p.name, LimitSignIn, signedIn, s.beginLink(p))
		add("POST /invite/{token}/with/"+p.name, LimitInvite, anyone, s.beginJoin(p))
	}
	if s.o.Passkeys != nil {
		add("POST /signin/passkey/begin", LimitSignIn, anyone, s.beginPasskey)
		add("POST /signin/passkey/finish", LimitSignIn, anyone|byCeremony, s.finishPasskey)
		add("POST /account/passkeys/begin", LimitSignIn, signedIn, s.beginAddPasskey)
		add("POST /account/passkeys/finish", LimitSignIn, signedIn|byCeremony, s.finishAddPasskey)
	}
	add("POST /signout", LimitPage, anyone, s.signOut)

	if s.o.OAuth != nil {
		add("GET /oauth/authorize", LimitPage, anyone, s.showConsent)
		add("POST /oauth/authorize", LimitPage, signedIn, s.giveConsent)
	}

	add("GET /invite/{token}", LimitInvite, anyone, s.showInvite)
	add("POST /invite/{token}", LimitInvite, anyone, s.useInvite)
	add("GET /welcome", LimitPage, signedIn, s.welcome)

	add("GET /account", LimitPage, signedIn, s.showAccount)
	add("POST /account/sessions/end", LimitPage, signedIn, s.endSession)
	add("POST /account/sessions/end-others", LimitPage, signedIn, s.endOtherSessions)
	add("POST /account/passkeys/remove", LimitPage, signedIn, s.removePasskey)
	add("POST /account/identities/unlink", LimitPage, signedIn, s.unlink)
	add("POST /account/grants/revoke", LimitPage, signedIn, s.revokeGrant)
	add("POST /account/keys", LimitPage, signedIn, s.createKey)
	add("GET /account/keys/made", LimitPage, signedIn, s.showNewKey)
	add("GET /invited", LimitPage, signedIn, s.showInvited)

	add("GET /spaces/{id}", LimitPage, signedIn, s.showSpace)
	add("POST /spaces/{id}/invite", LimitPage, signedIn, s.inviteToSpace)
	add("POST /spaces/{id}/invitations/revoke", LimitPage, signedIn, s.revokeSpaceInvitation)
	add("POST /spaces/{id}/members/{user}/role", LimitPage, signedIn, s.setRole)
	add("POST /spaces/{id}/members/{user}/remove", LimitPage, signedIn, s.removeMember)

	add("GET /admin", LimitPage, admins, s.showAdmin)
	add("POST /admin/invite", LimitPage, admins, s.inviteToServer)
	add("POST /admin/invitations/revoke", LimitPage, admins, s.revokeInvitation)
	add("POST /admin/people/{user}/remove", LimitPage, admins, s.removePerson)
	add("POST /admin/people/{user}/link", LimitPage, admins, s.makeLink)
	add("GET /admin/link", LimitPage, admins, s.showMadeLink)
	add("POST /admin/people/{user}/admin", LimitPage, admins, s.setAdmin)
	return mux
}

// serve wraps the handler of a page in what holds for every page. body bounds, in
// bytes, what it may be sent.
func (s *Server) serve(limit string, need who, body int64, h handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s.secureHeaders(w, r)
		v := &visit{w: w, r: r}
		if err := s.visit(v, limit, need, body, h); err != nil {
			s.fail(v, err)
		}
		if r.MultipartForm != nil {
			_ = r.MultipartForm.RemoveAll() // what is left is the system's to clean up
		}
		if v.spooled != nil {
			v.spooled()
		}
	})
}

func (s *Server) visit(v *visit, limit string, need who, body int64, h handler) error {
	ceremony := need&byCeremony != 0
	need &^= byCeremony
	if ok, err := s.atIssuer(v); !ok {
		return err
	}
	// Who is signed in has signed in at a rate that is limited; a page that is open
	// in their browser elsewhere, or a neighbour, must not keep them out.
	if err := s.findSession(v); err != nil {
		return err
	}
	if !v.in || limit != LimitPage {
		if wait, ok := s.o.Limit(v.r, limit); !ok {
			return tooMany(wait)
		}
	}
	if !textual(v.r.URL.Path) {
		return errNoPage
	}
	unsafe := v.r.Method != http.MethodGet && v.r.Method != http.MethodHead
	if unsafe {
		if err := s.sameOrigin(v.r); err != nil {
			return fault.Wrap(err, fault.Forbidden, "The form was sent from another site, and nothing was changed. Open %s and repeat it there.", s.issuer)
		}
	}
	if need != anyone && !v.in {
		if unsafe {
			return &pageError{status: http.StatusUnauthorized, title: "You are signed out", text: "Nothing was changed. Sign in and repeat it."}
		}
		return s.see(v, "/signin?return="+queryEscape(localPath(v.r.URL.RequestURI())))
	}
	if need == admins && !v.user.Admin {
		return errNoPage
	}
	if unsafe {
		// What is said to be as small as any form takes no place of those.
		if n := v.r.ContentLength; body > spoolFrom && v.in && (n < 0 || n > maxFormBytes) {
			var err error
			if v.spooled, err = s.spools.enter(v.user.ID); err != nil {
				return err
			}
		}
		if err := s.readForm(v, body); err != nil {
			return err
		}
	}
	if unsafe && v.in && !ceremony {
		if err := checkForm(v); err != nil {
			return err
		}
	}
	return h(v)
}

// formMemory is how much of an upload is kept in memory; the rest is in files,
// which are removed with the answer.
const formMemory = 1 << 20

// readForm reads what a form sent, once it is known that its sender may.
func (s *Server) readForm(v *visit, limit int64) error {
	v.r.Body = http.MaxBytesReader(v.w, v.r.Body, limit)
	if wantsJSON(v.r) {
		return nil
	}
	err := v.r.ParseForm()
	if t, _, terr := mime.ParseMediaType(v.r.Header.Get("Content-Type")); err == nil && terr == nil && t == "multipart/form-data" {
		err = v.r.ParseMultipartForm(formMemory)
	}
	if err != nil {
		return badForm(err)
	}
	for _, values := range v.r.PostForm {
		if slices.ContainsFunc(values, func(s string) bool { return !textual(s) }) {
			return badForm(errNoText)
		}
	}
	return nil
}

var errNoText = errors.New("bytes that are no text")

// textual reports whether a database takes the bytes for text.
func textual(s string) bool { return utf8.ValidString(s) && !strings.Contains(s, "\x00") }

func tooMany(wait time.Duration) error {
	return &fault.Error{Code: fault.Limited, Public: "There were too many requests from your network. Wait a moment and try again.", RetryAfter: max(wait, time.Second)}
}

func badForm(err error) error {
	var tooLarge *http.MaxBytesError
	if errors.As(err, &tooLarge) {
		return fault.Wrap(err, fault.TooLarge, "The form is larger than the %d bytes that are allowed.", tooLarge.Limit)
	}
	if errors.Is(err, os.ErrDeadlineExceeded) {
		return &pageError{status: http.StatusRequestTimeout, title: "The form took too long to arrive", text: "Nothing was changed. Go back and send it again."}
	}
	return fault.Wrap(err, fault.Invalid, "The form could not be read.")
}
