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

// Options configures a Provider. Zero fields mean the defaults.
type Options struct {
	// URL is the URL of GitHub. The default is https://github.com. The Issuer of the
	// identities is this URL with the host in lower case and without a trailing slash.
	URL string
	// API is the URL of the REST API. The default depends on URL: https://api.github.com,
	// https://api.TENANT.ghe.com, or /api/v3 under the URL of a GitHub Enterprise Server.
	API string
	// ClientID and ClientSecret belong to a GitHub App or an OAuth App.
	ClientID, ClientSecret string
	// Label is the text of a button after "Sign in with". The default is "GitHub".
	Label string
	// NeedOrgs makes the Provider also read the organizations of a person, for an allow list of
	// organizations. People must then grant the scope read:org.
	NeedOrgs bool
	// Transport sends the requests. The default is a transport with timeouts. The Provider
	// follows no redirect.
	Transport http.RoundTripper
	// Timeout is the maximum time of one request with its answer. The default is 10 seconds.
	Timeout time.Duration
	// RevokeTimeout is the maximum time to revoke the token at the end of a sign-in. The
	// default is 3 seconds. A failure is only logged.
	RevokeTimeout time.Duration
	// MaxResponse is the maximum size of an answer in bytes. The default is 1 MiB.
	MaxResponse int64
	// MaxPages is the maximum number of pages that are read from the list of a person's
	// addresses, and from the list of their organizations. A page has 100 entries. The
	// default is 10.
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

// New returns a Provider. It sends no request to GitHub. It returns an error if the options
// are invalid.
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
		// A redirect could send a token or a secret to another server.
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}}, nil
}

// Close closes idle connections.
func (p *Provider) Close() { p.client.CloseIdleConnections() }

// Label returns the text of a button after "Sign in with".
func (p *Provider) Label() string { return p.o.Label }

// Addresses returns the canonical URL of a GitHub server, and the URL of its REST API. An empty
// address means https://github.com. An empty restAPI means the API of that server. It returns an
// error if it is not safe to send secrets to one of the URLs.
func Addresses(address, restAPI string) (string, string, error) {
	u, err := checkURL(strings.TrimRight(cmp.Or(address, "https://github.com"), "/"))
	if err != nil {
		return "", "", fmt.Errorf("github: the address %q: %w", address, err)
	}
	// The case of the host does not matter, but issuers are compared byte by byte.
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

// checkURL returns an error if secrets must not be sent to the URL.
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
