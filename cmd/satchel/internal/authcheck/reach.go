package authcheck

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"strings"
	"time"

	"satchel/internal/egress"
)

// checkURL checks the URL itself.
func (c *checker) checkURL() {
	const name = "URL"
	switch {
	case c.url.User != nil || c.url.RawQuery != "" || c.url.Fragment != "":
		c.fail(name, "The URL has a user, a query or a fragment.", "Give clients the plain URL, such as https://satchel.example.com/mcp.")
	case c.url.Scheme == "http" && !local(c.url):
		c.fail(name, "The URL begins with http://, but clients send tokens only over https.", "Serve https: set server.domain, or put a proxy in front (docs/https.md).")
	case local(c.url):
		c.warn(name, "Only clients on this machine can reach a loopback address.", "To connect hosted clients, make the server public over https (docs/https.md).")
		c.blame(Cannot, "it cannot reach a loopback address", hosted())
	case c.url.Path == "" || c.url.Path == "/":
		c.warn(name, "The URL has no path; Satchel serves MCP at /mcp.", "Give clients "+strings.TrimSuffix(c.o.URL, "/")+"/mcp.")
	case strings.HasSuffix(c.url.Path, "/"):
		c.warn(name, "The URL ends in a slash, and clients compare it byte for byte with the URL in the server's metadata.", "Give clients "+strings.TrimSuffix(c.o.URL, "/")+".")
	default:
		c.pass(name, "%s", c.o.URL)
	}
}

// checkAddress checks the addresses of the URL's host, because hosted clients need a public IPv4
// address.
func (c *checker) checkAddress(ctx context.Context) {
	const name = "address"
	if local(c.url) {
		c.skip(name, "a loopback address")
		return
	}
	host := c.url.Hostname()
	addrs := []netip.Addr{}
	if a, err := netip.ParseAddr(host); err == nil {
		addrs = append(addrs, a)
		c.warn("name", "The URL has an address instead of a name, for which few authorities issue certificates.", "Give the server a name in the DNS.")
	} else if addrs, err = c.o.Lookup(ctx, host); (err != nil || len(addrs) == 0) && c.o.Dial == nil {
		c.skip(name, "requests go through a proxy here, and only the proxy knows the addresses of "+host)
		return
	} else if err != nil || len(addrs) == 0 {
		c.fail(name, fmt.Sprintf("The name %s has no address: %v.", host, err), "Make an A record for "+host+" that points to the server.")
		return
	}
	var four, all []string
	for _, a := range addrs {
		a = a.Unmap()
		if err := egress.Check(a); err != nil {
			why := ""
			if b, ok := errors.AsType[*egress.BlockedError](err); ok {
				why = " (" + b.Reason + ")"
			}
			c.fail(name, fmt.Sprintf("%s is at %s, which the public internet does not reach%s.", host, a, why),
				"Use only public addresses in the DNS records of "+host+", or use a tunnel (docs/https.md). Clients on the same network may connect all the same.", hosted()...)
			return
		}
		all = append(all, a.String())
		if a.Is4() {
			four = append(four, a.String())
		}
	}
	if len(four) == 0 {
		c.fail(name, fmt.Sprintf("%s has only IPv6 addresses, but Claude and ChatGPT connect over IPv4.", host), "Make an A record for "+host+" too, or use a tunnel.", hosted()...)
		return
	}
	c.pass(name, "%s is at %s", host, strings.Join(all, ", "))
	c.checkIPv4(ctx, four)
}

// checkIPv4 connects to each IPv4 address, because the other requests may all use IPv6.
func (c *checker) checkIPv4(ctx context.Context, addrs []string) {
	const name = "IPv4"
	if c.o.Dial == nil {
		c.skip(name, "requests go through a proxy here")
		return
	}
	port := c.url.Port()
	if port == "" {
		port = map[string]string{"https": "443", "http": "80"}[c.url.Scheme]
	}
	for _, a := range addrs {
		conn, err := c.o.Dial(ctx, "tcp4", net.JoinHostPort(a, port))
		if err != nil {
			c.warn(name, fmt.Sprintf("%s does not accept connections on port %s from here, but Claude and ChatGPT connect over IPv4.", a, port), "Open the port in the firewall and on the router; on the server's own network, check again from elsewhere.", hosted()...)
			return
		}
		conn.Close()
	}
	c.pass(name, "accepts connections")
}

// initialize is the first request in protocol versions before 2026-07-28. Servers of later
// versions require a token before they read the request.
const initialize = `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"satchel-auth-check","version":"1"}}}`

func (c *checker) call(ctx context.Context, header ...string) answer {
	return c.ask(ctx, http.MethodPost, c.o.URL, initialize, append([]string{
		"Content-Type", "application/json", "Accept", "application/json, text/event-stream", "MCP-Protocol-Version", "2025-11-25",
	}, header...)...)
}

// checkChallenge sends a client's first request, without a token. It returns false if no server
// answers.
func (c *checker) checkChallenge(ctx context.Context) bool {
	const name = "first request"
	a := c.call(ctx)
	if a.err != nil {
		c.unreachable(a)
		return false
	}
	const proxyFix = "Configure the proxy in front to pass requests and answers unchanged, and not to sign anybody in."
	switch l := a.location(); {
	case l != nil && l.Host != c.url.Host:
		c.fail(name, a.said()+", another host, where clients send no token.", "Give clients the URL of the server itself, or configure the proxy to pass requests on instead of redirecting them.")
	case l != nil:
		c.fail(name, a.said()+", and clients do not repeat a POST.", "Give clients the URL to which it redirects: "+short(l.String())+".")
	case a.html() && a.status != http.StatusUnauthorized:
		c.fail(name, a.said()+", which comes from a proxy, not from Satchel.", proxyFix)
	case a.status == http.StatusUnauthorized:
		c.checkChallengeHeader(a)
	case a.status == http.StatusOK:
		c.fail(name, "The server answers without a token, so no client asks its user to sign in, and anybody can use the server.", "Make sure that nothing in front of the server adds a token to requests.")
	case a.status == http.StatusForbidden:
		c.fail(name, a.said()+", and clients sign in only on 401.", "Set server.public_url or server.domain to the host that clients use, and make sure that no proxy or firewall refuses them.")
	case a.status == http.StatusNotFound || a.status == http.StatusMethodNotAllowed:
		c.fail(name, a.said()+": there is no MCP endpoint.", "Give clients the URL with its path, /mcp, and configure the proxy to keep the path.")
	case a.status == http.StatusBadGateway || a.status == http.StatusServiceUnavailable || a.status == http.StatusGatewayTimeout:
		c.fail(name, a.said()+": the proxy in front does not reach the server.", "Start the server, and configure the proxy to pass requests to the address in server.listen.")
	case a.status == http.StatusTooManyRequests:
		c.fail(name, a.said()+": something limits requests.", waitAMinute)
	default:
		c.fail(name, a.said()+", not 401.", proxyFix)
	}
	return true
}

func (c *checker) checkChallengeHeader(a answer) {
	const name = "first request"
	ch, ok := bearerChallenge(a.header)
	c.named, c.scope = ch["resource_metadata"], ch["scope"]
	switch {
	case !ok:
		c.warn(name, "The answer 401 has no WWW-Authenticate: Bearer, so clients must guess where to sign in.", passChallenge, claude, chatGPT, tools)
	case ch["resource_metadata"] == "":
		c.warn(name, "The answer 401 names no resource_metadata in WWW-Authenticate, so clients must guess where it is.", "Make sure that Satchel itself answers, and configure the proxy to pass the header WWW-Authenticate unchanged.", chatGPT)
	case ch["scope"] == "":
		c.warn(name, "The answer 401 names no scope in WWW-Authenticate, so clients request other scopes that they find.", "Name the required scopes in the challenge.")
	case strings.Contains(" "+ch["scope"]+" ", " offline_access "):
		c.warn(name, "The answer 401 asks for the scope offline_access, which is not a scope of a resource.", "Leave offline_access to the authorization server's scopes_supported.")
	default:
		c.pass(name, "401, which names the metadata and the scope %q", ch["scope"])
	}
}

// checkBadToken sends an invalid token, because a client must notice that its token has
// expired.
func (c *checker) checkBadToken(ctx context.Context) {
	const name = "bad token"
	a := c.call(ctx, "Authorization", "Bearer satchel-auth-check-not-a-token")
	switch ch, ok := bearerChallenge(a.header); {
	case a.err != nil:
		c.unreachable(a)
	case a.status != http.StatusUnauthorized:
		c.fail(name, a.said()+" to an invalid token, but clients refresh their token only on 401.", "Configure the proxy in front to pass the header Authorization, and answers with 401 unchanged.")
	case !ok || ch["error"] != "invalid_token":
		c.warn(name, "The answer to an invalid token has no error=\"invalid_token\", which ChatGPT needs to refresh its token.", passChallenge, chatGPT)
	default:
		c.pass(name, "401 invalid_token")
	}
}

// unreachable adds a finding that says why no server answers.
func (c *checker) unreachable(a answer) {
	const name = "connection"
	host := c.url.Hostname()
	_, otherName := errors.AsType[x509.HostnameError](a.err)
	_, unknown := errors.AsType[x509.UnknownAuthorityError](a.err)
	invalid, isInvalid := errors.AsType[x509.CertificateInvalidError](a.err)
	_, notTLS := errors.AsType[tls.RecordHeaderError](a.err)
	_, alert := errors.AsType[tls.AlertError](a.err)
	switch {
	case otherName:
		c.fail("certificate", "The certificate is for another name: "+reasonOf(a.err).Error()+".", "Get a certificate for "+host+"; server.domain gets one automatically.")
	case isInvalid && invalid.Reason == x509.Expired:
		c.fail("certificate", "The certificate has expired or is not valid yet: "+reasonOf(a.err).Error()+".", "Renew it, and check the clocks. With server.domain, the server's log says why it was not renewed.")
	case unknown || isInvalid:
		c.fail("certificate", "The certificate is from no authority that is trusted here: "+reasonOf(a.err).Error()+".", "Use a certificate of a public authority, and serve the whole chain; server.domain does both automatically.")
	case notTLS:
		c.fail(name, "The port does not speak https.", "Serve https on the port in the URL, or correct the URL.")
	case alert:
		c.fail("certificate", "The server refuses the name "+host+": "+reasonOf(a.err).Error()+".", "Set server.domain to "+host+". If it is set, the server has no certificate yet, and its log says why.")
	case isTimeout(a.err):
		c.fail(name, fmt.Sprintf("%s does not answer within %v.", c.url.Host, Slow), "Open the port in the firewall and on the router, and point the DNS records to the server.")
	default:
		c.fail(name, a.said()+".", "Start the server, open the port in the firewall and on the router, and point the DNS records to it.")
	}
}

func isTimeout(err error) bool {
	var t interface{ Timeout() bool }
	return errors.As(err, &t) && t.Timeout() || errors.Is(err, context.DeadlineExceeded)
}

// checkTLS checks how long the certificate of the connection remains valid.
func (c *checker) checkTLS() {
	const name = "certificate"
	if c.tls == nil {
		if c.url.Scheme == "https" {
			c.skip(name, "the connection does not show it")
		}
		return
	}
	end := c.tls.leaf.NotAfter
	left := end.Sub(c.o.Now())
	if life := end.Sub(c.tls.leaf.NotBefore); left < expiresSoon && left < life/4 {
		c.warn(name, fmt.Sprintf("The certificate expires on %s, in %s.", end.UTC().Format(time.DateOnly), left.Round(time.Hour)), "Renew it. With server.domain, the server's log says why it was not renewed.")
		return
	}
	c.pass(name, "valid until %s; %s", end.UTC().Format(time.DateOnly), c.proto)
}

// checkTimes checks how long answers took, and the server's clock.
func (c *checker) checkTimes() {
	took := c.slowest.took.Round(10 * time.Millisecond)
	where := c.slowest.method + " " + short(c.slowest.url)
	switch {
	case took >= Slow:
		c.fail("time", fmt.Sprintf("%s took %v, and Claude gives up after %v.", where, took, Slow), "Find out why the server or the proxy in front is slow.")
	case took >= sluggish:
		c.warn("time", fmt.Sprintf("%s took %v, and Claude gives up after %v.", where, took, Slow), "Find out why the server or the proxy in front is slow.")
	default:
		c.pass("time", "no answer took longer than %v", max(took, 10*time.Millisecond))
	}
	switch {
	case !c.dated:
		c.skip("clock", "the server's answers have no Date")
	case c.off > clockOff || c.off < -clockOff:
		c.warn("clock", fmt.Sprintf("The clocks of the server and of this machine differ by %v, so tokens may expire early or late.", c.off.Abs()), "Set both by NTP.")
	default:
		c.pass("clock", "within a minute of this machine's")
	}
}
