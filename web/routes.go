package web

import (
	"cmp"
	"errors"
	"mime"
	"mime/multipart"
	"net/http"
	"net/url"
	"os"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"satchel/internal/bytesize"
	"satchel/internal/fault"
	"satchel/internal/space"
)

// Audience is the set of people who may open a page.
type Audience int

const (
	Anyone Audience = iota
	SignedIn
	Admins
)

// ByCeremony is added to the audience of a page that finishes a passkey ceremony. The
// ceremony itself takes the place of the form token, which may have changed meanwhile;
// see finishCeremony in package signin.
const ByCeremony Audience = 1 << 4

// Handler answers a visit. If it returns an error, Fail answers.
type Handler func(v *Visit) error

// Route is the pattern of a page, and who may open it.
type Route struct {
	Pattern  string
	Audience Audience
}

// Handle adds a page. A pattern with GET also serves HEAD. limit is one of the kinds of requests
// that Options.Limit limits.
func (s *Site) Handle(pattern, limit string, who Audience, h Handler) {
	s.added = append(s.added, Route{pattern, who &^ ByCeremony})
	s.mux.Handle(pattern, s.serve(limit, who, MaxFormBytes, h))
}

// AdminPage is a page in the navigation of admins.
type AdminPage struct{ Path, Name string }

// HandleAdmin adds a page for admins, with a link in the fragment adminnav. The links there
// are sorted by path.
func (s *Site) HandleAdmin(path, name string, h Handler) {
	s.adminPages = append(s.adminPages, AdminPage{path, name})
	slices.SortFunc(s.adminPages, func(a, b AdminPage) int { return strings.Compare(a.Path, b.Path) })
	s.Handle("GET "+path, LimitPage, Admins, h)
}

// adminTabs returns the tabs of the pages for admins. It marks the tab of the page at path.
func (s *Site) adminTabs(path string) []Link {
	var out []Link
	for _, p := range s.adminPages {
		out = append(out, Link{Name: p.Name, URL: p.Path, Here: p.Path == path})
	}
	return out
}

// SettingsTab is a page in the settings of a space, with a tab that is also in the palette (see
// shellScript). Path is below the address of the space, such as "/members". Tabs are sorted by
// Order. A tab with Owner is only for owners; the handler checks the right.
type SettingsTab struct {
	Order      int
	Path, Name string
	Find       string // the name in the palette; "" means Name
	Owner      bool
}

func (t SettingsTab) open(r space.Role) bool { return !t.Owner || r == space.Owner }

// HandleSettings adds a page in the settings of a space. Its Page must have the Current "space".
func (s *Site) HandleSettings(t SettingsTab, h Handler) {
	s.settingsTabs = append(s.settingsTabs, t)
	slices.SortFunc(s.settingsTabs, func(a, b SettingsTab) int { return cmp.Compare(a.Order, b.Order) })
	s.Handle("GET /spaces/{id}"+t.Path, LimitPage, SignedIn, h)
}

// tabsOf returns the tabs of the settings of a space for a member with a role.
func (s *Site) tabsOf(id space.SpaceID, r space.Role) []Link {
	var out []Link
	for _, t := range s.settingsTabs {
		if t.open(r) {
			out = append(out, Link{Name: t.Name, URL: "/spaces/" + string(id) + t.Path})
		}
	}
	return out
}

// HandleLarge adds a page that accepts forms of up to max bytes from people for whom may returns
// no error, and of the usual size from everybody else.
func (s *Site) HandleLarge(pattern string, max int64, may, h Handler) {
	s.added = append(s.added, Route{pattern, SignedIn})
	large, small := s.serve(LimitPage, SignedIn, max, h), s.serve(LimitPage, SignedIn, MaxFormBytes, h)
	s.mux.HandleFunc(pattern, func(w http.ResponseWriter, r *http.Request) {
		v := &Visit{W: w, R: r}
		if err := s.findSession(v); err == nil && v.In && s.sameOrigin(r) == nil {
			if may(v) == nil {
				large.ServeHTTP(w, r)
				return
			}
		}
		small.ServeHTTP(w, r)
	})
}

// CanWrite returns an error if the visitor cannot write to the space in the path.
func (s *Site) CanWrite(v *Visit) error {
	_, err := s.WritableSpace(v)
	return err
}

// routes adds the pages of this package.
func (s *Site) routes() {
	s.mux.HandleFunc("GET /static/{name}", s.static)
	s.mux.HandleFunc("GET /manifest.webmanifest", s.showManifest)
	s.Handle("/", LimitPage, Anyone, func(*Visit) error { return ErrNoPage })
	s.Handle("GET /invited", LimitPage, SignedIn, s.showInvited)
	s.Handle("POST /theme", LimitPage, SignedIn, s.chooseTheme)
}

// serve wraps the handler of a page with the checks of every page. body is the maximum
// size of the request, in bytes.
func (s *Site) serve(limit string, need Audience, body int64, h Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s.secureHeaders(w, r)
		v := &Visit{W: w, R: r}
		if err := s.visit(v, limit, need, body, h); err != nil {
			s.Fail(v, err)
		}
		if r.MultipartForm != nil {
			_ = r.MultipartForm.RemoveAll() // if this fails, the files stay in the temporary directory
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
	// Signed-in people are exempt from the page limit, since sign-ins are limited. Other
	// people on the same network must not keep them out.
	if err := s.findSession(v); err != nil {
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
		if err := s.sameOrigin(v.R); err != nil {
			return fault.Wrap(err, fault.Forbidden, "The form was sent from another site. Nothing was changed. Open %s and try again there.", s.Origin)
		}
	}
	if need != Anyone && !v.In {
		if unsafe {
			return &PageError{Status: http.StatusUnauthorized, Title: "You are signed out", Text: "Nothing was changed. Sign in and try again."}
		}
		return s.See(v, "/signin?return="+url.QueryEscape(LocalPath(v.R.URL.RequestURI())))
	}
	if need == Admins && !v.User.Admin {
		return ErrNoPage
	}
	if unsafe {
		// A form that declares a normal size needs no place in s.spools.
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

// formMemory is how much of an upload stays in memory. The rest goes to files, which are
// removed after the answer.
const formMemory = 1 << 20

// readForm reads the submitted form. It is called after the sender has been checked.
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

var errNoText = errors.New("the form is not valid text")

// Textual reports whether a database accepts s as text.
func Textual(s string) bool { return utf8.ValidString(s) && !strings.Contains(s, "\x00") }

func tooMany(wait time.Duration) error {
	return &fault.Error{Code: fault.Limited, Public: "Too many requests came from your network. Wait a moment and try again.", RetryAfter: max(wait, time.Second)}
}

// BadForm returns the error that pages show if a form could not be read because of err.
func BadForm(err error) error {
	var tooLarge *http.MaxBytesError
	if errors.As(err, &tooLarge) {
		return fault.Wrap(err, fault.TooLarge, "The form is larger than the %s that are allowed. Nothing was changed. Send less at once.", bytesize.Text(tooLarge.Limit))
	}
	if errors.Is(err, multipart.ErrMessageTooLarge) {
		return fault.Wrap(err, fault.TooLarge, "The form has too many files. Nothing was changed. Send fewer at once.")
	}
	if errors.Is(err, os.ErrDeadlineExceeded) {
		return &PageError{Status: http.StatusRequestTimeout, Title: "The form took too long to arrive", Text: "Nothing was changed. Go back and send it again."}
	}
	return fault.Wrap(err, fault.Invalid, "The form could not be read.")
}
