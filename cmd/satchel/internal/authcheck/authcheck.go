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

// Options say what is looked at.
type Options struct {
	// URL is what a person types into their client: https://satchel.example.com/mcp.
	URL string
	// HTTP is the client whose transport is used; one with a timeout of Slow for
	// each request where it is nil. Redirects are judged, not followed.
	HTTP *http.Client
	// Register lets it register a client, and delete it again where the server can.
	Register bool
	// Progress is told each finding as it is made; it may be nil.
	Progress func(Finding)
	// Lookup resolves a host name; the system's resolver where it is nil.
	Lookup func(ctx context.Context, host string) ([]netip.Addr, error)
	// Dial connects to one address, to see that IPv4 works. Where it is nil it is a
	// net.Dialer's, but where requests go through a proxy of the environment's, which
	// alone may know addresses and reach them.
	Dial func(ctx context.Context, network, addr string) (net.Conn, error)
	// Now is the clock that the server's is compared with; time.Now where it is nil.
	Now func() time.Time
}

// Limits that clients set: Claude's on one request, and what a certificate should
// have left.
const (
	Slow        = 10 * time.Second
	sluggish    = 3 * time.Second
	clockOff    = time.Minute
	dialWait    = 5 * time.Second
	expiresSoon = 14 * 24 * time.Hour
)

// Status is how a check ended.
type Status string

// The statuses of a [Finding].
const (
	OK      Status = "ok"
	Warning Status = "warning" // works, but not for everybody, or not for long
	Failed  Status = "failed"
	Skipped Status = "skipped"
)

// Finding is what one check saw.
type Finding struct {
	Name   string `json:"name"` // what was looked at: "certificate"
	Status Status `json:"status"`
	What   string `json:"what"`          // what was seen
	Fix    string `json:"fix,omitempty"` // what to do, in one sentence, where it failed or warns
	// Clients are those that it may keep out; empty if that is all, or none.
	Clients []string `json:"clients,omitempty"`
}

// Verdict is what becomes of a client.
type Verdict string

// The verdicts of a [Client].
const (
	Connects Verdict = "should connect"
	Doubtful Verdict = "may not connect"
	Cannot   Verdict = "cannot connect"
)

// Client says what one client would meet.
type Client struct {
	Name    string  `json:"name"`
	Verdict Verdict `json:"verdict"`
	Reason  string  `json:"reason,omitempty"` // the first one, where it may not connect
}

// Report is all that was found, in the order in which clients go about it.
type Report struct {
	URL      string    `json:"url"`
	OK       bool      `json:"ok"` // whether nothing failed
	Findings []Finding `json:"findings"`
	Clients  []Client  `json:"clients"`
}

// ErrURL is what Check returns where the URL is none that a client could be given.
var ErrURL = errors.New("the URL must be of the form https://satchel.example.com/mcp")

// Check looks at the deployment and returns what it found. The error is ErrURL, or
// ctx's: what is wrong with the deployment is in the report.
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

// checker gathers the report.
type checker struct {
	o       Options
	url     *url.URL
	http    *http.Client
	report  Report
	reasons map[client]reason

	slowest answer        // the request that took longest
	off     time.Duration // between the server's clock and ours, where known
	dated   bool
	proto   string // of the first answer
	tls     *tlsState

	named    string            // URL of the metadata in the challenge
	scope    string            // in the challenge
	metadata *resourceMetadata // nil if there is none
	server   *serverMetadata   // nil if there is none
}

func (c *checker) run(ctx context.Context) {
	c.checkURL()
	c.checkAddress(ctx)
	if !c.checkChallenge(ctx) {
		return // nothing answers there
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
	c.skip("event streams", "whether a proxy holds events back can only be seen with a token: make a call that takes a while, and see whether its progress comes as it goes")
}

// pass, warn, fail and skip add a finding. hinders names the clients whom it keeps
// out (fail; none named: all) or may keep out (warn; none named: none).
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

// danger fails without keeping a client out.
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

// local reports whether a URL is one of this machine, for which http is fine
// (RFC 8252 section 8.3).
func local(u *url.URL) bool {
	host := strings.ToLower(u.Hostname())
	a, err := netip.ParseAddr(host)
	return host == "localhost" || strings.HasSuffix(host, ".localhost") || err == nil && a.IsLoopback()
}
