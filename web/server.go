package web

import (
	"context"
	"errors"
	"fmt"
	"html/template"
	"log/slog"
	"net"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"

	"satchel/internal/ratelimit"
	"satchel/internal/service"
	"satchel/internal/space"
)

// Site serves the pages of a server. It is safe for concurrent use.
type Site struct {
	Options
	Origin       *url.URL
	Secure       bool               // the issuer is https
	base         *template.Template // layout, fragments and functions of every page
	templates    map[string]func() (pageTemplate, error)
	assets       map[string]asset
	cross        *http.CrossOriginProtection
	mux          *http.ServeMux
	added        []Route
	adminPages   []AdminPage
	settingsTabs []SettingsTab
	spools       spools
	packers      sync.Pool          // of *gzip.Writer, which compress pages
	begun        *ratelimit.Limiter // limits the flows that signed-in people begin

	// NotifyOfLink notifies a user that somebody else made or used a sign-in link.
	NotifyOfLink func(ctx context.Context, link string)
	closers      []func()
}

// New returns a site. The packages below web add their pages to it.
func New(o Options) (*Site, error) {
	u, err := url.Parse(o.Issuer)
	if err != nil || u.Host == "" || u.Scheme != "https" && u.Scheme != "http" || strings.Trim(u.Path, "/") != "" || u.RawQuery != "" || u.Fragment != "" || u.User != nil {
		return nil, fmt.Errorf("the origin of the pages is %q, and not of the form https://example.com", o.Issuer)
	}
	if o.Accounts == nil || o.Service == nil || o.App == nil {
		return nil, errors.New("the pages need Accounts, Service and App")
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Limit == nil {
		o.Limit = func(*http.Request, string) (time.Duration, bool) { return 0, true }
	}
	if o.Address == nil {
		o.Address = func(r *http.Request) string {
			host, _, err := net.SplitHostPort(r.RemoteAddr)
			if err != nil {
				return ""
			}
			return host
		}
	}
	if o.Called == nil {
		o.Called = func(space.GrantID) []CalledAs { return nil }
	}
	if o.Refused == nil {
		o.Refused = func(string, bool) []RefusedRequest { return nil }
	}
	if o.Live == nil {
		o.Live = NewLive(LiveOptions{})
	}
	o.Editing = o.Editing.withDefaults()
	if o.InviteLifetime <= 0 {
		o.InviteLifetime = service.DefaultInviteLifetime
	}
	if o.LinkLifetime <= 0 {
		o.LinkLifetime = service.DefaultLinkLifetime
	}
	if o.WaitingTime <= 0 {
		o.WaitingTime = DefaultWaitingTime
	}
	if o.FlowRate <= 0 {
		o.FlowRate = DefaultFlowRate
	}
	s := &Site{
		begun:   ratelimit.New(ratelimit.Options{PerMinute: float64(o.FlowRate) / 60, Burst: max(1, o.FlowRate/2), Now: o.Now}),
		Options: o, Origin: &url.URL{Scheme: u.Scheme, Host: u.Host}, Secure: u.Scheme == "https",
		cross: http.NewCrossOriginProtection(),
	}
	// The protection compares Origin with Host, which a proxy may rewrite. So the site's
	// own origin is always trusted.
	if err := s.cross.AddTrustedOrigin(s.Origin.String()); err != nil {
		return nil, fmt.Errorf("origin of the pages: %w", err)
	}
	if s.assets, err = loadAssets(); err != nil {
		return nil, err
	}
	if err := s.baseTemplate(); err != nil {
		return nil, err
	}
	if err := s.AddTemplates(files); err != nil {
		return nil, err
	}
	s.mux = http.NewServeMux()
	s.routes()
	return s, nil
}

// Handler returns the handler of all pages.
func (s *Site) Handler() http.Handler { return s.mux }

// OnClose registers a function that Close calls.
func (s *Site) OnClose(f func()) { s.closers = append(s.closers, f) }

// Close ends the background work of the pages.
func (s *Site) Close() {
	for _, f := range s.closers {
		f()
	}
}

// URL returns the absolute address of a path of this server. It does not depend on
// the Host header.
func (s *Site) URL(path string) string { return s.Origin.String() + path }
