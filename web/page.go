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
	"time"

	"satchel/auth/store"
	"satchel/internal/fault"
)

// page is what the layout needs to know, and Body what the page's own template
// does.
type page struct {
	Title string
	Body  any

	// Script includes the script, and FormsTo is where forms may lead besides.
	Script  bool
	FormsTo string
	// Scripts and Styles are further static files, which go before the page's own.
	Scripts, Styles []string
	// Wide is for pages with tables.
	Wide bool
	// Space is the one that the page is of; nil if it is of none.
	Space *store.Membership
	// Problem is what was wrong with the form that was sent; Field is the id of
	// the input that it is about.
	Problem, Field string
	// Done says what was just done, above the rest of the page.
	Done string
	// Current is the path of the page in the navigation.
	Current string

	// The rest is filled in by Server.page.
	User    string
	In      bool
	Admin   bool
	Spaces  int               // how many the person has
	Nav     *store.Membership // the space to which the navigation leads; nil if there is none
	Waiting int               // how much of the space an AI changed that the person is to confirm
	Form    string            // the token of forms
	Times   string            // the address of the script for the page's times; "" where it has none
	Version string
}

// page answers with a page.
func (s *Server) page(v *visit, status int, name string, p page) error {
	p.In, p.Version = v.in, s.o.Version
	if v.in {
		p.User, p.Admin, p.Form = v.user.Name, v.user.Admin, formToken(v.secret)
		p.Nav, p.Waiting = p.Space, s.waitingIn(v.r.Context(), p.Space)
		// A page that says what is wrong comes without, where the database is away.
		if all, err := s.spacesOf(v); err == nil && len(all) > 0 {
			p.Spaces = len(all)
			if p.Nav == nil {
				p.Nav = &all[0]
			}
		}
	}
	t, ok := s.templates[name]
	if !ok {
		return fmt.Errorf("there is no page %q", name)
	}
	if t.times {
		p.Times = s.assets[timeScript].url
	}
	var b bytes.Buffer
	if err := t.ExecuteTemplate(&b, "layout", p); err != nil {
		return fmt.Errorf("page %s: %w", name, err)
	}
	h := v.w.Header()
	h.Set("Content-Type", "text/html; charset=utf-8")
	h.Set("Content-Length", strconv.Itoa(b.Len()))
	forms := formsHere
	if p.FormsTo != "" {
		forms += " " + p.FormsTo
	}
	scripts := ""
	switch {
	case p.Script || len(p.Scripts) > 0:
		scripts = policyScript
	case t.times:
		// Such pages may show what somebody wrote: they run this one file.
		scripts = "; script-src " + s.url("/static/"+timeScript)
	}
	h.Set("Content-Security-Policy", policy(scripts, forms))
	v.w.WriteHeader(status)
	if v.r.Method != http.MethodHead {
		_, _ = v.w.Write(b.Bytes()) // the browser is gone, then
	}
	return nil
}

// pageError is an error that is a page.
type pageError struct {
	status      int
	title, text string
	retry       time.Duration
}

func (e *pageError) Error() string { return e.title + ": " + e.text }

var (
	errNoPage = &pageError{status: http.StatusNotFound, title: "There is nothing here", text: "The address leads nowhere, or to something that you have no part in."}
	// errGone is the answer to every identifier of what is not the visitor's.
	errGone = &pageError{status: http.StatusNotFound, title: "It is not there", text: "What you asked for does not exist, or no longer."}
	// errStale is the answer to a form whose session is over, or began after it.
	errStale = &pageError{status: http.StatusForbidden, title: "The page was out of date", text: "Nothing was changed. Go back, load the page again and repeat it."}
)

// asPage is the one table from fault codes to pages.
func asPage(err error) *pageError {
	var p *pageError
	if errors.As(err, &p) {
		return p
	}
	p = &pageError{text: fault.PublicOf(err)}
	switch fault.CodeOf(err) {
	case fault.Invalid:
		p.status, p.title = http.StatusBadRequest, "That did not work"
	case fault.NotFound:
		p.status, p.title = http.StatusNotFound, "It is not there"
	case fault.Conflict:
		p.status, p.title = http.StatusConflict, "That cannot be done now"
	case fault.Unauthenticated:
		p.status, p.title = http.StatusUnauthorized, "That is not valid any more"
	case fault.Forbidden:
		p.status, p.title = http.StatusForbidden, "That is not allowed"
	case fault.TooLarge:
		p.status, p.title = http.StatusRequestEntityTooLarge, "That was too much"
	case fault.Limited:
		p.status, p.title = http.StatusTooManyRequests, "Please wait a moment"
	case fault.Unavailable:
		p.status, p.title = http.StatusServiceUnavailable, "That is not possible now"
	case fault.Damaged:
		p.status, p.title = http.StatusInternalServerError, "It cannot be read"
	case fault.Canceled:
		p.status, p.title = 499, "The request was stopped"
	default:
		p.status, p.title = http.StatusInternalServerError, "Something went wrong"
	}
	var f *fault.Error
	if errors.As(err, &f) {
		p.retry = f.RetryAfter
	}
	return p
}

// fail answers with the page of an error, or with JSON where the script asked.
func (s *Server) fail(v *visit, err error) {
	p := asPage(err)
	if p.status >= 500 && !(errors.Is(err, context.Canceled) && v.r.Context().Err() != nil) { // unless the browser went away
		level := slog.LevelWarn // somebody else's server may be away, which anybody may name
		if p.status == http.StatusInternalServerError {
			level = slog.LevelError
		}
		// The path may hold a secret, and the pattern does not.
		s.log.LogAttrs(v.r.Context(), level, "a page failed", slog.String("page", v.r.Pattern), slog.Any("error", err))
	}
	if p.retry > 0 {
		v.w.Header().Set("Retry-After", strconv.Itoa(max(1, int(math.Ceil(p.retry.Seconds())))))
	}
	if wantsJSON(v.r) {
		s.json(v, p.status, scriptError{Error: p.text, Stale: p == errStale})
		return
	}
	body := failure{Text: p.text, In: v.in}
	if err := s.page(v, p.status, "error", page{Title: p.title, Body: body}); err != nil {
		s.log.ErrorContext(v.r.Context(), "the page of an error failed", slog.Any("error", err))
		http.Error(v.w, "Something went wrong.", http.StatusInternalServerError)
	}
}

type failure struct {
	Text string
	In   bool
}
