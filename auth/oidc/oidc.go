package oidc

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"sync"
	"time"

	"golang.org/x/sync/singleflight"
)

// Options configures a Provider. Zero fields mean the defaults.
type Options struct {
	// Issuer is the issuer's identifier, whose exact bytes count (OpenID Connect
	// Discovery 1.0 section 4.3): https, or http on this machine.
	Issuer string
	// ClientID and ClientSecret come from the issuer. A public client has no secret.
	ClientID, ClientSecret string
	// Label is the text of a button after "Sign in with"; default "single sign-on".
	Label string
	// Scopes are the requested scopes, to which openid is always added; default openid,
	// email and profile.
	Scopes []string
	// Transport makes the requests to the issuer; default one with timeouts. The
	// provider follows no redirect.
	Transport http.RoundTripper
	// Timeout bounds one request with its answer; default 10 seconds.
	Timeout time.Duration
	// MaxResponse bounds an answer in bytes; default 1 MiB.
	MaxResponse int64
	// MetadataMaxAge is the age at which the issuer's metadata and keys are fetched again;
	// default an hour. If that fails, the old ones are used.
	MetadataMaxAge time.Duration
	// RetryAfter is the delay between a failed fetch and the next one; default 5 seconds.
	// Sign-ins in between fail at once.
	RetryAfter time.Duration
	// ClockSkew is how far the issuer's clock may be off; default one minute.
	ClockSkew time.Duration
	// TokenMaxAge is how long ago an ID token may have been issued; default 10 minutes,
	// since it was just requested.
	TokenMaxAge time.Duration
	Logger      *slog.Logger
	Now         func() time.Time
}

func (o Options) withDefaults() Options {
	if o.Label == "" {
		o.Label = "single sign-on"
	}
	if len(o.Scopes) == 0 {
		o.Scopes = []string{"openid", "email", "profile"}
	}
	if !slices.Contains(o.Scopes, "openid") {
		o.Scopes = append([]string{"openid"}, o.Scopes...)
	}
	if o.Timeout == 0 {
		o.Timeout = 10 * time.Second
	}
	if o.Transport == nil {
		o.Transport = &http.Transport{
			Proxy:                  http.ProxyFromEnvironment,
			ForceAttemptHTTP2:      true,
			TLSHandshakeTimeout:    o.Timeout,
			ResponseHeaderTimeout:  o.Timeout,
			IdleConnTimeout:        time.Minute,
			MaxIdleConnsPerHost:    2,
			MaxResponseHeaderBytes: 64 << 10,
		}
	}
	if o.MaxResponse == 0 {
		o.MaxResponse = 1 << 20
	}
	if o.MetadataMaxAge == 0 {
		o.MetadataMaxAge = time.Hour
	}
	if o.RetryAfter == 0 {
		o.RetryAfter = 5 * time.Second
	}
	if o.ClockSkew == 0 {
		o.ClockSkew = time.Minute
	}
	if o.TokenMaxAge == 0 {
		o.TokenMaxAge = 10 * time.Minute
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	return o
}

// Provider signs people in with one issuer. It is safe for concurrent use.
type Provider struct {
	o      Options
	client *http.Client
	wire   *transport

	single singleflight.Group
	mu     sync.Mutex
	known  *issuer // nil: never reached
	failed time.Time
	cause  error // of the last attempt, if it failed
}

// New returns a Provider. It sends no request to the issuer. The error says what is wrong
// with the options.
func New(o Options) (*Provider, error) {
	o = o.withDefaults()
	if err := checkEndpoint(o.Issuer); err != nil {
		return nil, fmt.Errorf("oidc: the issuer %q: %w", o.Issuer, err)
	}
	if o.ClientID == "" {
		return nil, fmt.Errorf("oidc: the issuer %q needs a client id", o.Issuer)
	}
	t := newTransport(o.Transport, o.MaxResponse)
	return &Provider{o: o, wire: t, client: &http.Client{
		Transport: t,
		Timeout:   o.Timeout,
		// Redirects are not followed: codes and secrets go only to addresses from the
		// issuer's metadata.
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}}, nil
}

// Close cancels running requests. No sign-in works afterwards.
func (p *Provider) Close() { p.wire.close() }

// Label returns the text of a button after "Sign in with".
func (p *Provider) Label() string { return p.o.Label }

// checkEndpoint refuses an address to which a secret must not go.
func checkEndpoint(s string) error {
	u, err := url.Parse(s)
	switch {
	case err != nil || u.Opaque != "" || u.Hostname() == "" || u.User != nil || u.Fragment != "":
		return fmt.Errorf("it is not a URL such as https://login.example.com")
	case u.Scheme == "http" && !thisMachine(u.Hostname()), u.Scheme != "https" && u.Scheme != "http":
		return fmt.Errorf("it must begin with https://")
	}
	return nil
}

func thisMachine(host string) bool {
	a, err := netip.ParseAddr(host)
	return host == "localhost" || err == nil && a.IsLoopback()
}

// detached returns ctx without its cancellation, with a timeout, for work that several
// callers share.
func (p *Provider) detached(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeout(context.WithoutCancel(ctx), p.o.Timeout)
}
