package apptest

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"
)

// Browser is a person's browser at the simulated GitHub. It follows redirects there and
// presses buttons. It stops at a redirect to another server.
type Browser struct {
	s      *Server
	client *http.Client
	cookie *http.Cookie
}

// Browser returns a browser in which the person is signed in.
func (s *Server) Browser(login string) *Browser {
	value := read(s, func(w *world) string { return w.session(must(w.account(login), login)) })
	return &Browser{
		s: s, cookie: &http.Cookie{Name: cookie, Value: value},
		client: &http.Client{
			Timeout: 30 * time.Second, Transport: s.hooks.Transport,
			CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		},
	}
}

// ErrPage reports that GitHub showed a page instead of a redirect. The error that wraps ErrPage
// contains the status and the page's heading.
var ErrPage = errors.New("apptest: the browser stays at GitHub")

// Go requests target, or posts form to it if form is not nil, and returns the redirect to another
// server. If GitHub shows a page instead, Go returns the page's address, and an error that wraps
// ErrPage.
func (b *Browser) Go(target string, form url.Values) (*url.URL, error) {
	for range 10 {
		method, body := http.MethodGet, ""
		if form != nil {
			method, body = http.MethodPost, form.Encode()
		}
		r, err := http.NewRequest(method, target, strings.NewReader(body))
		if err != nil {
			return nil, fmt.Errorf("apptest: %w", err)
		}
		if form != nil {
			r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		}
		r.AddCookie(b.cookie)
		resp, err := b.client.Do(r)
		if err != nil {
			return nil, fmt.Errorf("apptest: %w", err)
		}
		text, err := io.ReadAll(io.LimitReader(resp.Body, maxBody))
		resp.Body.Close()
		if err != nil {
			return nil, fmt.Errorf("apptest: %w", err)
		}
		if resp.StatusCode < 300 || resp.StatusCode > 399 {
			_, title, _ := strings.Cut(string(text), "<h1>")
			title, _, _ = strings.Cut(title, "</h1>")
			return r.URL, fmt.Errorf("%w: %d %s", ErrPage, resp.StatusCode, title)
		}
		next, err := resp.Location()
		if err != nil {
			return nil, fmt.Errorf("apptest: %w", err)
		}
		if next.Scheme+"://"+next.Host != b.s.URL {
			return next, nil
		}
		target, form = next.String(), nil
	}
	return nil, errors.New("apptest: more than ten redirects")
}

// Authorize opens the authorization endpoint in a person's browser, presses Authorize, and
// returns the redirect.
func (s *Server) Authorize(login, location string) (*url.URL, error) {
	u, err := url.Parse(location)
	if err != nil {
		return nil, fmt.Errorf("apptest: %w", err)
	}
	b := s.Browser(login)
	back, err := b.Go(location, nil)
	if errors.Is(err, ErrPage) && strings.Contains(err.Error(), "200 Authorize") {
		return b.Go(s.URL+"/login/oauth/authorize", u.Query())
	}
	return back, err
}

// CreateApp posts the form of a manifest in a person's browser, presses Create, and returns
// the redirect with the code.
func (s *Server) CreateApp(login, action string, manifest []byte) (*url.URL, error) {
	b := s.Browser(login)
	page, err := b.Go(action, url.Values{"manifest": {string(manifest)}})
	if !errors.Is(err, ErrPage) || !strings.Contains(err.Error(), "200 Create GitHub App") {
		return nil, fmt.Errorf("apptest: the page of the manifest: %w", err)
	}
	var m struct{ Name string }
	if err := json.Unmarshal(manifest, &m); err != nil {
		return nil, fmt.Errorf("apptest: %w", err)
	}
	return b.Go(page.String(), url.Values{"name": {m.Name}})
}

// InstallByPage opens an install URL (with its state) in a person's browser. It chooses the
// account and the repositories, or all repositories if none are given. Then it presses Install, or
// Request if the person does not own the account. It returns the redirect.
func (s *Server) InstallByPage(login, installURL, account string, repositories ...string) (*url.URL, error) {
	u, err := url.Parse(installURL)
	if err != nil {
		return nil, fmt.Errorf("apptest: %w", err)
	}
	form := s.selection(repositories)
	form.Set("state", u.Query().Get("state"))
	s.with(func(w *world) { form.Set("target_id", fmt.Sprint(must(w.account(account), account).id)) })
	u.RawQuery = ""
	return s.Browser(login).Go(u.String(), form)
}

// selection returns the form that chooses repositories, or all repositories if none are given.
func (s *Server) selection(repositories []string) url.Values {
	form := url.Values{"selection": {"all"}}
	s.with(func(w *world) {
		for _, id := range w.ids(repositories) {
			form.Set("selection", "selected")
			form.Add("repository", fmt.Sprint(id))
		}
	})
	return form
}

// Approve approves the oldest request of an organization's member in an owner's browser. It
// returns the redirect, which has no state.
func (s *Server) Approve(login, org string, repositories ...string) (*url.URL, error) {
	form := s.selection(repositories)
	form.Set("act", "approve")
	s.with(func(w *world) {
		n := slices.IndexFunc(w.pending, func(q *pending) bool { return q.account == w.account(org) })
		form.Set("request", fmt.Sprint(w.pending[n].id))
	})
	return s.Browser(login).Go(s.URL+"/organizations/"+org+"/settings/installation_requests", form)
}
