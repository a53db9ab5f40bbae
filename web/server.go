package web

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"

	lru "github.com/hashicorp/golang-lru/v2"

	"satchel/internal/ratelimit"
	"satchel/internal/space"
)

// Site is the pages. It is safe for concurrent use.
type Site struct {
	Options
	Origin    *url.URL
	Secure    bool // the issuer is https
	templates map[string]pageTemplate
	assets    map[string]asset
	cross     *http.CrossOriginProtection
	mux       *http.ServeMux
	spools    spools
	begun     *ratelimit.Limiter // flows of who is signed in

	shown *lru.Cache[commitKey, commitFiles] // what commits changed, which never changes
	long  *longPatches

	mail *outbox
	// notices are letters that nobody can ask for, and that no number of those that
	// anybody can ask for keeps waiting.
	notices *outbox
	stop    context.CancelFunc
	work    sync.WaitGroup
}

// New returns the pages. Close ends the goroutine that sends mail.
func New(o Options) (*Site, error) {
	u, err := url.Parse(o.Issuer)
	if err != nil || u.Host == "" || u.Scheme != "https" && u.Scheme != "http" || strings.Trim(u.Path, "/") != "" || u.RawQuery != "" || u.Fragment != "" || u.User != nil {
		return nil, fmt.Errorf("the origin of the pages is %q, and not of the form https://example.com", o.Issuer)
	}
	if o.Accounts == nil || o.People == nil {
		return nil, errors.New("the pages need accounts and who lets people in")
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
	if o.Ended == nil {
		o.Ended = func(context.Context, space.UserID) {}
	}
	if o.Called == nil {
		o.Called = func(space.GrantID) []CalledAs { return nil }
	}
	o.Editing = o.Editing.withDefaults()
	if o.InviteLifetime <= 0 {
		o.InviteLifetime = DefaultInviteLifetime
	}
	if o.LinkLifetime <= 0 {
		o.LinkLifetime = DefaultLinkLifetime
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
	// A proxy may rewrite Host, with which the protection compares what browsers
	// send; the origin is what they know.
	if err := s.cross.AddTrustedOrigin(s.Origin.String()); err != nil {
		return nil, fmt.Errorf("origin of the pages: %w", err)
	}
	if s.assets, err = loadAssets(); err != nil {
		return nil, err
	}
	labels := map[string]string{}
	for _, p := range s.Providers() {
		labels[p.Name] = p.Label()
	}
	if s.templates, err = loadTemplates(s.assets, labels, s.Now); err != nil {
		return nil, err
	}
	s.mux = s.routes()
	if o.Mail != nil {
		var ctx context.Context
		ctx, s.stop = context.WithCancel(context.Background())
		s.mail = newOutbox()
		for range mailers {
			s.work.Go(func() { s.mail.run(ctx, s.sendLink) })
		}
		s.notices = newOutbox()
		s.work.Go(func() { s.notices.run(ctx, s.sendNotice) })
	}
	return s, nil
}

// Handler serves every page; whatever it does not know is a page that says so.
func (s *Site) Handler() http.Handler { return s.mux }

// Close waits for the mail that is being sent, ten seconds at most.
func (s *Site) Close() {
	if s.mail == nil {
		return
	}
	s.mail.close()
	s.notices.close()
	end := time.AfterFunc(10*time.Second, s.stop)
	s.work.Wait()
	end.Stop()
	s.stop()
}

// URL returns the absolute address of a path of this server, which no Host
// header decides.
func (s *Site) URL(path string) string { return s.Origin.String() + path }
