package authcheck

import (
	"bytes"
	"context"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
)

// resourceMetadata has the fields of a resource's metadata (RFC 9728 section 2) that the checks
// use.
type resourceMetadata struct {
	Resource             string   `json:"resource"`
	AuthorizationServers []string `json:"authorization_servers"`
	ScopesSupported      []string `json:"scopes_supported"`

	at string // the URL where the metadata was found
}

const wellKnownResource = "/.well-known/oauth-protected-resource"

func origin(u *url.URL) string { return u.Scheme + "://" + u.Host }

// checkResourceMetadata requests the metadata at all URLs where clients look for it: the URL in
// the challenge, the well-known URL with the path inserted, and the well-known URL at the root.
func (c *checker) checkResourceMetadata(ctx context.Context) {
	const name = "resource metadata"
	inserted := origin(c.url) + wellKnownResource + strings.TrimSuffix(c.url.EscapedPath(), "/")
	root := origin(c.url) + wellKnownResource
	places := []string{inserted}
	if root != inserted {
		places = append(places, root)
	}
	if c.named != "" {
		if !c.checkNamed(name) {
			return
		}
		places = slices.Insert(slices.DeleteFunc(places, func(p string) bool { return p == c.named }), 0, c.named)
	}
	var missing []string
	for _, place := range places {
		a := c.get(ctx, place)
		var m resourceMetadata
		why := a.object(&m)
		switch {
		case why != "" && place == c.named:
			c.fail(name, why+", though the challenge names it.", passWellKnown)
			return
		case why != "":
			missing = append(missing, why)
		case c.metadata == nil:
			m.at = place
			c.metadata = &m
		case m.Resource != c.metadata.Resource:
			c.fail(name, fmt.Sprintf("%s and %s describe different resources: %q and %q.", c.metadata.at, place, c.metadata.Resource, m.Resource), "Serve both from the same server.")
			return
		}
	}
	switch {
	case c.metadata == nil:
		c.fail(name, missing[0]+".", passWellKnown)
		return
	case len(missing) > 0:
		c.warn(name, missing[0]+"; clients that do not read the challenge look there.", passWellKnown)
	default:
		c.pass(name, "at %s", strings.Join(places, " and "))
	}
	c.checkResource()
	c.checkServers()
}

// checkNamed checks the URL in the challenge. It reports whether the URL can be used.
func (c *checker) checkNamed(name string) bool {
	u, err := url.Parse(c.named)
	switch {
	case err != nil || u.Host == "" || u.Scheme != "https" && u.Scheme != "http":
		c.fail(name, fmt.Sprintf("The challenge names %q, which is not a URL.", short(c.named)), "Set server.public_url to "+origin(c.url)+".")
	case !strings.EqualFold(u.Host, c.url.Host) || u.Scheme != c.url.Scheme:
		c.fail(name, "The challenge names "+short(c.named)+", which is not under "+origin(c.url)+".", "Set server.public_url to "+origin(c.url)+", under which clients reach the server.")
	default:
		return true
	}
	return false
}

// checkResource compares the resource with the URL. Claude requires the same bytes. The SDKs
// require a prefix of the path at the same origin.
func (c *checker) checkResource() {
	const name = "resource"
	got, typed := c.metadata.Resource, c.o.URL
	u, err := url.Parse(got)
	under := err == nil && strings.EqualFold(origin(u), origin(c.url)) &&
		strings.HasPrefix(strings.TrimSuffix(c.url.Path, "/")+"/", strings.TrimSuffix(u.Path, "/")+"/")
	switch {
	case got == typed:
		c.pass(name, "%s, the URL itself", got)
	case under:
		c.fail(name, fmt.Sprintf("The metadata describes %q, not %q: Claude compares them byte for byte.", short(got), typed), "Give clients the URL "+short(got)+".", claude, claudeCode)
	case got == "":
		c.fail(name, "The metadata names no resource.", "Make sure that "+c.metadata.at+" is answered by the server that is checked.")
	case err == nil && strings.EqualFold(u.Hostname(), c.url.Hostname()) && u.Scheme == c.url.Scheme && u.Port() == c.url.Port():
		c.fail(name, fmt.Sprintf("The metadata describes %q, not %q.", short(got), typed), "Give clients the URL "+short(got)+".")
	default:
		c.fail(name, fmt.Sprintf("The metadata describes %q, not %q.", short(got), typed), "Set server.public_url to "+origin(c.url)+", or give clients the URL "+short(got)+".")
	}
}

func (c *checker) checkServers() {
	const name = "authorization server"
	if len(c.metadata.AuthorizationServers) == 0 {
		c.fail(name, "The metadata names no authorization server.", "Set auth.issuer.url, or leave it empty for the built-in one.")
		return
	}
	first := c.metadata.AuthorizationServers[0]
	u, err := url.Parse(first)
	switch {
	case err != nil || u.Host == "" || u.Scheme != "https" && u.Scheme != "http" || u.RawQuery != "" || u.Fragment != "":
		c.fail(name, fmt.Sprintf("%q is not an issuer (RFC 8414 section 2).", short(first)), "Set server.public_url, or auth.issuer.url, to a plain URL.")
		c.metadata = nil
		return
	case u.Scheme != "https" && !local(u):
		c.fail(name, first+" is not https.", "Set server.public_url to an https URL.")
	case local(u) && !local(c.url):
		c.fail(name, first+" is a loopback address, which no client elsewhere can reach.", "Set server.public_url to "+origin(c.url)+".")
	case len(c.metadata.AuthorizationServers) > 1:
		c.warn(name, fmt.Sprintf("The metadata names %d authorization servers; Claude uses only the first, %s.", len(c.metadata.AuthorizationServers), first), "Name the server first that all clients should use.")
	default:
		c.pass(name, "%s", first)
	}
	if slices.Contains(c.metadata.ScopesSupported, "offline_access") {
		c.warn("scopes", "The metadata lists the scope offline_access, which is not a scope of a resource.", "Leave it to the authorization server's scopes_supported.")
	}
}

// checkForwarded sends requests with a forged host, as any attacker can. If an answer uses that
// host, it can poison a cache and redirect the clients of others.
func (c *checker) checkForwarded(ctx context.Context) {
	const name, evil = "forwarded host", "forwarded.invalid"
	forged := []string{"X-Forwarded-Host", evil, "X-Forwarded-Proto", "http", "X-Forwarded-Prefix", "/" + evil, "X-Original-Host", evil, "X-Host", evil, "Forwarded", "host=" + evil + ";proto=http"}
	fooled := ""
	if a := c.call(ctx, forged...); a.err == nil && (strings.Contains(a.header.Get("WWW-Authenticate"), evil) || strings.Contains(a.header.Get("Location"), evil)) {
		fooled = c.o.URL
	}
	if m := c.metadata; m != nil && fooled == "" {
		var n resourceMetadata
		a := c.get(ctx, m.at, forged...)
		if why := a.object(&n); why == "" && (n.Resource != m.Resource || !slices.Equal(n.AuthorizationServers, m.AuthorizationServers)) {
			fooled = m.at
		}
	}
	if s := c.server; s != nil && fooled == "" {
		if a := c.get(ctx, s.at, forged...); a.err == nil && a.status == http.StatusOK && bytes.Contains(a.body, []byte(evil)) {
			fooled = s.at
		}
	}
	if fooled != "" {
		c.danger(name, fooled+" answers differently to a forged X-Forwarded-Host, so anybody can redirect clients to another server.", "Take the server's own name from its configuration, and make sure that no cache in front keeps such answers.")
		return
	}
	c.pass(name, "a forged X-Forwarded-Host changes nothing")
}

// checkBrowsers sends the requests of a web page, such as the Inspector in direct mode.
func (c *checker) checkBrowsers(ctx context.Context) {
	const name = "browser clients"
	page := "http://localhost:6274"
	var closed []string
	if c.metadata != nil && !shared(c.get(ctx, c.metadata.at, "Origin", page)) {
		closed = append(closed, c.metadata.at)
	}
	if c.server != nil {
		if !shared(c.get(ctx, c.server.at, "Origin", page)) {
			closed = append(closed, c.server.at)
		}
		pre := c.ask(ctx, http.MethodOptions, c.server.TokenEndpoint, "", "Origin", page, "Access-Control-Request-Method", "POST", "Access-Control-Request-Headers", "content-type")
		if c.server.TokenEndpoint != "" && !shared(pre) {
			closed = append(closed, c.server.TokenEndpoint)
		}
	}
	pre := c.ask(ctx, http.MethodOptions, c.o.URL, "", "Origin", page, "Access-Control-Request-Method", "POST", "Access-Control-Request-Headers", "authorization,content-type,mcp-protocol-version")
	if !shared(pre) {
		closed = append(closed, c.o.URL)
	}
	if len(closed) > 0 {
		c.warn(name, "Pages of another origin may not use "+strings.Join(closed, ", ")+", so clients that are web pages, such as the Inspector in direct mode, cannot connect.", "If you use such a client, name its origin in server.allowed_origins, and configure the proxy to pass OPTIONS and Access-Control headers.")
		return
	}
	c.pass(name, "cross-origin requests are allowed")
}

// shared reports whether a page of another origin may read the answer (CORS).
func shared(a answer) bool {
	return a.err == nil && a.status < 300 && a.header.Get("Access-Control-Allow-Origin") != ""
}
