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
	// Issuer is the identifier of the issuer: an https URL, or an http URL on this machine.
	// It must be exactly the identifier in the issuer's metadata (OpenID Connect Discovery
	// 1.0 section 4.3).
	Issuer string
	// ClientID and ClientSecret come from the issuer. A public client has no secret.
	ClientID, ClientSecret string
	// Label is the text of a button after "Sign in with". The default is "single sign-on".
	Label string
	// Scopes are the requested scopes. openid is always added. The default is openid, email
	// and profile.
	Scopes []string
	// Transport sends the requests to the issuer. The default is a transport with timeouts.
	// The provider follows no redirect.
	Transport http.RoundTripper
	// Timeout is the maximum time of a request with its answer. The default is 10 seconds.
	Timeout time.Duration
	// MaxResponse is the maximum size of an answer in bytes. The default is 1 MiB.
	MaxResponse int64
	// MetadataMaxAge is the age at which the provider fetches the issuer's metadata and keys
	// again. The default is an hour. If fetching fails, the provider uses the old ones.
	MetadataMaxAge time.Duration
	// RetryAfter is the delay between a failed fetch and the next one. The default is 5
	// seconds. Without old metadata, sign-ins during this delay fail at once.
	RetryAfter time.Duration
	// ClockSkew is the maximum error of the issuer's clock. The default is one minute.
	ClockSkew time.Duration
	// TokenMaxAge is the maximum age of an ID token. The default is 10 minutes, because the
	// token was just requested.
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
	known  *issuer // nil if the issuer was never reached
	failed time.Time
	cause  error // the error of the last attempt, if it failed
}

// New returns a Provider. It sends no request to the issuer. It returns an error if the
// options are invalid.
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
		// Codes and secrets go only to addresses from the issuer's metadata, so redirects
		// are not followed.
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}}, nil
}

// Close cancels running requests. No sign-in works after it.
func (p *Provider) Close() { p.wire.close() }

// Label returns the text of a button after "Sign in with".
func (p *Provider) Label() string { return p.o.Label }

// checkEndpoint returns an error if a secret must not be sent to the address.
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

// detached returns a context with a timeout that does not end with ctx, for work that
// several callers share.
func (p *Provider) detached(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeout(context.WithoutCancel(ctx), p.o.Timeout)
}
