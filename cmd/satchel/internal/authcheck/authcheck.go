package authcheck

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"strings"
	"time"
)

// Options configures a check.
type Options struct {
	// URL is the address that a person enters in a client: https://satchel.example.com/mcp.
	URL string
	// HTTP sends the requests. If it is nil, the check uses a client whose timeout is 5 seconds
	// longer than Slow, to measure slow answers. Redirects are examined, but not followed.
	HTTP *http.Client
	// Register makes the check register a client. The check deletes the client again if the
	// server supports that.
	Register bool
	// Progress is called with each finding; it may be nil.
	Progress func(Finding)
	// Lookup resolves a host name. The default is the system's resolver.
	Lookup func(ctx context.Context, host string) ([]netip.Addr, error)
	// Dial connects to one address, to check IPv4. If it is nil, the check uses a net.Dialer,
	// unless requests go through a proxy: then only the proxy may be able to resolve and reach
	// addresses.
	Dial func(ctx context.Context, network, addr string) (net.Conn, error)
	// Now is the clock that is compared with the server's. The default is time.Now.
	Now func() time.Time
}

// The limits of the checks. Slow is Claude's limit for one request.
const (
	Slow        = 10 * time.Second
	sluggish    = 3 * time.Second
	clockOff    = time.Minute
	dialWait    = 5 * time.Second
	expiresSoon = 14 * 24 * time.Hour
)

// Texts for Finding.Fix that several checks use.
const (
	passWellKnown = "Configure the proxy in front to pass " + wellKnownResource + " and the paths below it to the server."
	passChallenge = "Configure the proxy in front to pass the header WWW-Authenticate unchanged."
	waitAMinute   = "Wait a minute and check again. Behind a proxy, name it in server.trusted_proxies, so that not all clients count as one."
)

// Status is the result of a check.
type Status string

// The statuses of a [Finding].
const (
	OK      Status = "ok"
	Warning Status = "warning" // works, but not for every client, or not for long
	Failed  Status = "failed"
	Skipped Status = "skipped"
)

// Finding is the result of one check.
type Finding struct {
	Name   string `json:"name"` // the name of the check, such as "certificate"
	Status Status `json:"status"`
	What   string `json:"what"`          // the observation
	Fix    string `json:"fix,omitempty"` // what to do after a failure or a warning
	// Clients are the clients that cannot connect, or may be unable to connect. The list is
	// empty if the finding concerns all clients or none.
	Clients []string `json:"clients,omitempty"`
}

// Verdict is whether a client can connect.
type Verdict string

// The verdicts of a [Client].
const (
	Connects Verdict = "should connect"
	Doubtful Verdict = "may not connect"
	Cannot   Verdict = "cannot connect"
)

// Client is the verdict on one client.
type Client struct {
	Name    string  `json:"name"`
	Verdict Verdict `json:"verdict"`
	Reason  string  `json:"reason,omitempty"` // the first reason why the client may not connect
}

// Report contains all findings, in the order of a client's steps.
type Report struct {
	URL      string    `json:"url"`
	OK       bool      `json:"ok"` // no check failed
	Findings []Finding `json:"findings"`
	Clients  []Client  `json:"clients"`
}

// ErrURL is the error of Check for a URL that no client accepts.
var ErrURL = errors.New("the URL must be of the form https://satchel.example.com/mcp")

// Check checks a deployment. The error wraps ErrURL, or is the error of ctx. Problems of the
// deployment are in the report.
func Check(ctx context.Context, o Options) (Report, error) {
	u, err := url.Parse(o.URL)
	if err != nil || u.Scheme != "https" && u.Scheme != "http" || u.Hostname() == "" || u.Opaque != "" {
		return Report{}, fmt.Errorf("%w, not %q", ErrURL, o.URL)
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Lookup == nil {
		o.Lookup = func(ctx context.Context, host string) ([]netip.Addr, error) {
			return net.DefaultResolver.LookupNetIP(ctx, "ip", host)
		}
	}
	if o.Dial == nil {
		if req, err := http.NewRequest(http.MethodGet, o.URL, nil); err == nil {
			if proxy, err := http.ProxyFromEnvironment(req); err == nil && proxy == nil {
				o.Dial = (&net.Dialer{Timeout: dialWait}).DialContext
			}
		}
	}
	c := &checker{o: o, url: u, report: Report{URL: o.URL}, reasons: map[client]reason{}, http: clientOf(o.HTTP)}
	c.run(ctx)
	if err := ctx.Err(); err != nil {
		return Report{}, err
	}
	c.finish()
	return c.report, nil
}

// checker creates the report.
type checker struct {
	o       Options
	url     *url.URL
	http    *http.Client
	report  Report
	reasons map[client]reason

	slowest answer        // the request that took longest
	off     time.Duration // the server's clock minus ours, if dated
	dated   bool
	proto   string // the protocol of the first answer
	tls     *tlsState

	named    string            // the URL of the metadata in the challenge
	scope    string            // the scope in the challenge
	metadata *resourceMetadata // nil if there is none
	server   *serverMetadata   // nil if there is none
}

func (c *checker) run(ctx context.Context) {
	c.checkURL()
	c.checkAddress(ctx)
	if !c.checkChallenge(ctx) {
		return // no MCP server answers at the URL
	}
	c.checkTLS()
	c.checkBadToken(ctx)
	c.checkResourceMetadata(ctx)
	if c.metadata != nil {
		c.checkServerMetadata(ctx)
	}
	if c.server != nil {
		c.checkIdentification()
		c.checkRegistration(ctx)
		c.checkUnknownClient(ctx)
		c.checkKnownClients(ctx)
		c.checkToken(ctx)
	}
	c.checkForwarded(ctx)
	c.checkBrowsers(ctx)
	c.checkTimes()
	c.skip("event streams", "only a call with a token can show whether a proxy delays events: make a call that takes a while, and see whether its progress arrives meanwhile")
}

// pass, warn, fail and skip add a finding. For fail, hinders names the clients that cannot
// connect. An empty list means all clients. For warn, hinders names the clients that may be unable
// to connect.
func (c *checker) pass(name, format string, args ...any) {
	c.add(Finding{Name: name, Status: OK, What: fmt.Sprintf(format, args...)})
}

func (c *checker) skip(name, why string) {
	c.add(Finding{Name: name, Status: Skipped, What: why})
}

func (c *checker) warn(name, what, fix string, hinders ...client) {
	c.blame(Doubtful, what, hinders)
	c.add(Finding{Name: name, Status: Warning, What: what, Fix: fix, Clients: names(hinders)})
}

func (c *checker) fail(name, what, fix string, hinders ...client) {
	if len(hinders) == 0 {
		c.blame(Cannot, what, allClients())
	} else {
		c.blame(Cannot, what, hinders)
	}
	c.add(Finding{Name: name, Status: Failed, What: what, Fix: fix, Clients: names(hinders)})
}

// danger adds a failure with which every client can still connect.
func (c *checker) danger(name, what, fix string) {
	c.add(Finding{Name: name, Status: Failed, What: what, Fix: fix})
}

func (c *checker) add(f Finding) {
	c.report.Findings = append(c.report.Findings, f)
	if c.o.Progress != nil {
		c.o.Progress(f)
	}
}

func (c *checker) finish() {
	c.report.OK = true
	for _, f := range c.report.Findings {
		if f.Status == Failed {
			c.report.OK = false
		}
	}
	for _, id := range allClients() {
		r, ok := c.reasons[id]
		if !ok {
			r.verdict = Connects
		}
		c.report.Clients = append(c.report.Clients, Client{Name: id.name(), Verdict: r.verdict, Reason: r.why})
	}
}

// local reports whether a URL is on this machine, where http is allowed (RFC 8252 section 8.3).
func local(u *url.URL) bool {
	host := strings.ToLower(u.Hostname())
	a, err := netip.ParseAddr(host)
	return host == "localhost" || strings.HasSuffix(host, ".localhost") || err == nil && a.IsLoopback()
}
