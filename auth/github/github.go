package github

import (
	"cmp"
	"fmt"
	"log/slog"
	"net/http"
	"net/netip"
	"net/url"
	"strings"
	"time"
)

// Options configure a Provider. Zero fields take the defaults.
type Options struct {
	// URL is GitHub's URL; default: https://github.com. With its host in lower case
	// and without a trailing slash, it is the Issuer of the identities.
	URL string
	// API is the URL of its REST API. The default follows from URL:
	// https://api.github.com, https://api.TENANT.ghe.com, or /api/v3 under the URL of
	// a GitHub Enterprise Server.
	API string
	// ClientID and ClientSecret are those of a GitHub App or an OAuth App.
	ClientID, ClientSecret string
	// Label is what a button says after "Sign in with"; default "GitHub".
	Label string
	// NeedOrgs also reads the organisations of which a person is a member. An allow
	// list of organisations needs it. People must then grant the scope read:org.
	NeedOrgs bool
	// Transport makes the requests; default: one with timeouts. Redirects are never
	// followed.
	Transport http.RoundTripper
	// Timeout limits one request, including reading its response; default: 10 seconds.
	Timeout time.Duration
	// RevokeTimeout limits the revocation of the token at the end of a sign-in;
	// default: 3 seconds. If the revocation fails, this is only logged.
	RevokeTimeout time.Duration
	// MaxResponse bounds an answer in bytes; default 1 MiB.
	MaxResponse int64
	// MaxPages limits how many pages of 100 entries are read from the list of a
	// person's addresses, and from that of their organisations; default: 10.
	MaxPages int
	Logger   *slog.Logger
	Now      func() time.Time
}

func (o Options) withDefaults() Options {
	if o.Label == "" {
		o.Label = "GitHub"
	}
	if o.Timeout == 0 {
		o.Timeout = 10 * time.Second
	}
	if o.RevokeTimeout == 0 {
		o.RevokeTimeout = 3 * time.Second
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
	if o.MaxPages == 0 {
		o.MaxPages = 10
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	return o
}

// Provider signs people in with github.com or one GitHub Enterprise Server. It is safe
// for concurrent use.
type Provider struct {
	o      Options
	client *http.Client
}

// New returns a Provider. It sends nothing to GitHub. The error says what is wrong with
// the options.
func New(o Options) (*Provider, error) {
	o = o.withDefaults()
	var err error
	if o.URL, o.API, err = Addresses(o.URL, o.API); err != nil {
		return nil, err
	}
	if o.ClientID == "" {
		return nil, fmt.Errorf("github: a client id is needed")
	}
	return &Provider{o: o, client: &http.Client{
		Transport: o.Transport,
		Timeout:   o.Timeout,
		// Following a redirect could send a token or secret to another server.
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}}, nil
}

// Close closes idle connections.
func (p *Provider) Close() { p.client.CloseIdleConnections() }

// Label is what a button says after "Sign in with".
func (p *Provider) Label() string { return p.o.Label }

// Addresses returns the canonical URL of a GitHub server, and the URL of its REST API.
// An empty address means https://github.com. An empty restAPI means the API of that
// server. The error says why secrets cannot be sent to a URL.
func Addresses(address, restAPI string) (string, string, error) {
	u, err := checkURL(strings.TrimRight(cmp.Or(address, "https://github.com"), "/"))
	if err != nil {
		return "", "", fmt.Errorf("github: the address %q: %w", address, err)
	}
	// The host is not case-sensitive, but issuers are compared byte by byte.
	u.Host = strings.ToLower(u.Host)
	restAPI = strings.TrimRight(cmp.Or(restAPI, api(u)), "/")
	if _, err := checkURL(restAPI); err != nil {
		return "", "", fmt.Errorf("github: the API's address %q: %w", restAPI, err)
	}
	return u.String(), restAPI, nil
}

// api returns the address of the REST API of the GitHub at u.
func api(u *url.URL) string {
	switch {
	case u.Host == "github.com":
		return "https://api.github.com"
	case strings.HasSuffix(u.Host, ".ghe.com"):
		return "https://api." + u.Host
	}
	return u.String() + "/api/v3"
}

// checkURL rejects a URL to which secrets must not be sent.
func checkURL(s string) (*url.URL, error) {
	u, err := url.Parse(s)
	switch {
	case err != nil || u.Opaque != "" || u.Hostname() == "" || u.User != nil || u.RawQuery != "" || u.Fragment != "":
		return nil, fmt.Errorf("it is not a URL such as https://github.example.com")
	case u.Scheme == "http" && !thisMachine(u.Hostname()), u.Scheme != "https" && u.Scheme != "http":
		return nil, fmt.Errorf("it must begin with https://")
	}
	return u, nil
}

func thisMachine(host string) bool {
	a, err := netip.ParseAddr(host)
	return host == "localhost" || err == nil && a.IsLoopback()
}
