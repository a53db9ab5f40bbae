package web

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"net/http"
	"strconv"
	"strings"
	"time"

	"satchel/internal/fault"
	"satchel/internal/service"
)

// Page is the data of the layout. Body is the data of the page's own template.
type Page struct {
	Title string
	// Label is the name of the space, which is a part of the title of the window.
	Label string
	Body  any

	// Script includes satchel.js. FormsTo are further sources for the form-action of the
	// content security policy.
	Script  bool
	FormsTo string
	// Scripts and Styles are further static files to include.
	Scripts, Styles []string
	// Beside are static files with scripts for a page that shows other people's text. On such
	// a page, only these scripts and those of the layout run. They may request only the address
	// that the layout needs, and the address Asks, or what is below Asks if it ends in a slash.
	Beside []string
	Asks   string
	// Wide is for editors, lists of files and differences, which need more than the usual width.
	Wide bool
	// Space is the space that the page is about; nil if there is none.
	Space *service.View
	// Problem says what is wrong with the submitted form; Field is the ID of the input, and
	// FieldLink is the text of the link to the input if it is not the usual one.
	Problem, Field, FieldLink string
	// Done confirms the last action, above the rest of the page.
	Done string
	// Current names the place in the navigation; see shellOf.
	Current string
	// Bare leaves out the navigation: the page asks one question.
	Bare bool

	// Site.Page sets the remaining fields.
	User    string
	In      bool
	Admin   bool
	Nav     *service.View // the space in the navigation; nil if there is none
	Shell   *shell        // the navigation; nil if the page has none
	Theme   string        // "light", "dark" or "" for the system's
	Waiting int           // files of the space in the navigation that wait for the person's review
	Form    string        // the token of forms
	Times   string        // the address of the script for times; "" if the page has no times
	Version string
}

// Page answers with a page.
func (s *Site) Page(v *Visit, status int, name string, p Page) error {
	p.In, p.Version, p.Theme = v.In, s.Version, s.themeOf(v.R)
	if v.In {
		p.User, p.Admin, p.Form = v.User.Name, v.User.Admin, maskedToken(v.Secret)
		p.Nav = p.Space
		// If the database fails, the error page is shown without the navigation.
		if all, err := s.Spaces(v); err == nil && !p.Bare {
			if len(all) > 0 && p.Nav == nil {
				p.Nav = &all[0]
			}
			p.Waiting = s.waitingIn(v, &p)
			failing, _ := s.Service.CountFailedSyncs(v.R.Context(), v.Actor(), service.None{}) // fails only without a user
			p.Shell = s.shellOf(v, &p, all, failing)
		}
	}
	parsed, ok := s.templates[name]
	if !ok {
		return fmt.Errorf("there is no page %q", name)
	}
	t, err := parsed()
	if err != nil {
		return fmt.Errorf("page %s: %w", name, err)
	}
	if t.times {
		p.Times = s.assets[timeScript].url
	}
	var b bytes.Buffer
	if err := t.ExecuteTemplate(&b, "layout", p); err != nil {
		return fmt.Errorf("page %s: %w", name, err)
	}
	h := v.W.Header()
	h.Set("Content-Type", "text/html; charset=utf-8")
	h.Set("Vary", "Accept-Encoding, Sec-Fetch-Site")
	body := b.Bytes()
	if len(body) >= packFrom && packs(v.R) {
		h.Set("Content-Encoding", "gzip")
		body = s.pack(body)
	}
	h.Set("Content-Length", strconv.Itoa(len(body)))
	forms := formsHere
	if p.FormsTo != "" {
		forms += " " + p.FormsTo
	}
	h.Set("Content-Security-Policy", policy(s.scriptsOf(&p), forms))
	v.W.WriteHeader(status)
	if v.R.Method != http.MethodHead {
		_, _ = v.W.Write(body) // fails only if the browser is gone
	}
	return nil
}

// waitingIn returns how many files of the space in the navigation wait for the person's review.
// On a page that is not about the space, it stops looking after WaitingTime.
func (s *Site) waitingIn(v *Visit, p *Page) int {
	ctx := v.R.Context()
	if p.Space == nil {
		var stop context.CancelFunc
		ctx, stop = context.WithTimeout(ctx, s.WaitingTime)
		defer stop()
	}
	return Waiting(ctx, p.Nav)
}

// scriptsOf returns the directives for the scripts of a page. A page without scripts of its
// own may show other people's text, so only the files of the layout and those in Beside run, and
// they may request only the addresses that they need.
func (s *Site) scriptsOf(p *Page) string {
	if p.Script || len(p.Scripts) > 0 {
		return policyScript
	}
	from, to := "", ""
	for _, name := range p.Beside {
		from += " " + s.URL("/static/"+name)
	}
	if p.Asks != "" {
		to += " " + s.URL(p.Asks)
	}
	if p.Times != "" {
		from += " " + s.URL("/static/"+timeScript)
	}
	if p.Shell != nil {
		from += " " + s.URL("/static/"+shellScript)
		if p.Shell.Jump != "" {
			to += " " + s.URL(p.Shell.Jump)
		}
	}
	if from == "" {
		return ""
	}
	if to != "" {
		to = "; connect-src" + to
	}
	return "; script-src" + from + to
}

// PageError is an error with its own page.
type PageError struct {
	Status      int
	Title, Text string
	Next        string // says what the person can do; empty if Text says so
	Retry       time.Duration
}

func (e *PageError) Error() string { return e.Title + ": " + e.Text }

var (
	ErrNoPage = &PageError{Status: http.StatusNotFound, Title: "Page not found", Text: "There is no page at this address, or you do not have access to the page. Check the address for a typing mistake."}
	// ErrGone is the answer for everything that is missing or belongs to somebody else.
	ErrGone = &PageError{Status: http.StatusNotFound, Title: "Not found", Text: "This item was removed, or you do not have access to the item. If somebody shared the item with you, ask them for access."}
	// errStale is the answer to a form of another session than the current one.
	errStale = &PageError{Status: http.StatusForbidden, Title: "The page was out of date", Text: "Nothing was changed. Go back, reload the page, and try again."}
)

// namesAction reports whether the text of a fault says what the person can do. The first part of
// such a text says what is wrong, so a text with a second part also says what to do.
func namesAction(text string) bool {
	return strings.Contains(text, ". ") || strings.Contains(text, "; ")
}

// AsPage returns the page of an error. The pages map fault codes to status codes and
// titles only here.
func AsPage(err error) *PageError {
	var p *PageError
	if errors.As(err, &p) {
		return p
	}
	p = &PageError{Text: fault.PublicOf(err)}
	switch fault.CodeOf(err) {
	case fault.Invalid:
		p.Status, p.Title = http.StatusBadRequest, "The request did not work"
	case fault.NotFound:
		p.Status, p.Title = http.StatusNotFound, "Not found"
		p.Next = "Go back and choose something else, or ask for access."
	case fault.Conflict:
		p.Status, p.Title = http.StatusConflict, "Not possible right now"
	case fault.Unauthenticated:
		p.Status, p.Title = http.StatusUnauthorized, "No longer valid"
	case fault.Forbidden:
		p.Status, p.Title = http.StatusForbidden, "Not allowed"
		p.Next = "Ask an admin, or an owner of the space, for access."
	case fault.TooLarge:
		p.Status, p.Title = http.StatusRequestEntityTooLarge, "Too large"
	case fault.Limited:
		p.Status, p.Title = http.StatusTooManyRequests, "Please wait a moment"
	case fault.Unavailable:
		p.Status, p.Title = http.StatusServiceUnavailable, "Not available right now"
		p.Next = "Try again in a minute. If the problem continues, ask the operator of the server to look at its log."
	case fault.Damaged:
		p.Status, p.Title = http.StatusInternalServerError, "Stored data is damaged"
		p.Next = "Ask the operator of the server to run satchel doctor."
	case fault.Canceled:
		p.Status, p.Title = 499, "The request was stopped"
	default:
		p.Status, p.Title = http.StatusInternalServerError, "Something went wrong"
		p.Next = "Try again. If the problem continues, ask the operator of the server to look at its log."
	}
	var f *fault.Error
	if errors.As(err, &f) {
		p.Retry = f.RetryAfter
		if namesAction(f.Public) {
			p.Next = ""
		}
	}
	return p
}

// Fail answers with the page of an error, or with JSON if a script of the page sent the request.
func (s *Site) Fail(v *Visit, err error) {
	p := AsPage(err)
	if p.Status >= 500 && !(errors.Is(err, context.Canceled) && v.R.Context().Err() != nil) { // unless the browser is gone
		level := slog.LevelWarn // not an error: people can name another server that is unavailable
		if p.Status == http.StatusInternalServerError {
			level = slog.LevelError
		}
		// Log the pattern, because the path may contain a secret.
		s.Logger.LogAttrs(v.R.Context(), level, "a page failed", slog.String("page", v.R.Pattern), slog.Any("error", err))
	}
	if p.Retry > 0 {
		v.W.Header().Set("Retry-After", strconv.Itoa(max(1, int(math.Ceil(p.Retry.Seconds())))))
	}
	if wantsJSON(v.R) {
		s.JSON(v, p.Status, scriptError{Error: p.Text, Stale: p == errStale})
		return
	}
	body := failure{Text: p.Text, Next: p.Next, In: v.In}
	body.Again = v.R.Method == http.MethodGet && (p.Status == http.StatusTooManyRequests || p.Status >= 500)
	if err := s.Page(v, p.Status, "error", Page{Title: p.Title, Body: body}); err != nil {
		s.Logger.ErrorContext(v.R.Context(), "the page of an error failed", slog.Any("error", err))
		http.Error(v.W, "Something went wrong.", http.StatusInternalServerError)
	}
}

type failure struct {
	Text, Next string
	In         bool
	Again      bool // the same address may work later
}

// Gone returns ErrGone if err says that something does not exist for this person, or that its
// ID is invalid. Otherwise it returns err.
func Gone(err error) error {
	switch fault.CodeOf(err) {
	case fault.NotFound, fault.Invalid:
		return ErrGone
	}
	return err
}

// DoneIn returns the text that confirms an action. words has the texts by action, and the parameter
// done of the address names the action. A link cannot make the page show any other text. The answer
// to a form has no such text.
func DoneIn(v *Visit, words map[string]string) string {
	if v.R.Method == http.MethodPost {
		return ""
	}
	return words[v.R.URL.Query().Get("done")]
}
