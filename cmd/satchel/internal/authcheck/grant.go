package authcheck

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
)

// challengeS256 and verifier are the example of RFC 7636 appendix B. The checks never use them to
// get a token.
const (
	verifier      = "dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk"
	challengeS256 = "E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM"
)

// authorize sends the authorization request of a client.
func (c *checker) authorize(ctx context.Context, id, redirect string) answer {
	u, err := url.Parse(c.server.AuthorizationEndpoint)
	if err != nil {
		return answer{err: err}
	}
	q := u.Query()
	for k, v := range map[string]string{
		"response_type": "code", "client_id": id, "redirect_uri": redirect, "state": "satchel-auth-check",
		"code_challenge": challengeS256, "code_challenge_method": "S256", "resource": c.metadata.Resource, "scope": c.scope,
	} {
		if v != "" {
			q.Set(k, v)
		}
	}
	u.RawQuery = q.Encode()
	a := c.ask(ctx, http.MethodGet, u.String(), "", "Accept", "text/html")
	a.url = c.server.AuthorizationEndpoint // without the query, which is useless to readers
	return a
}

// sentTo reports whether an answer redirects to the redirect URI of a client.
func sentTo(a answer, redirect string) bool {
	l := a.location()
	r, err := url.Parse(redirect)
	return l != nil && err == nil && l.Scheme == r.Scheme && l.Host == r.Host && l.Path == r.Path
}

// checkUnknownClient sends a request for an unknown client. A redirect would make the server an
// open redirector (RFC 6749 section 4.1.2.1).
func (c *checker) checkUnknownClient(ctx context.Context) {
	const name, redirect = "unknown client", "https://satchel-auth-check.invalid/callback"
	switch a := c.authorize(ctx, "satchel-auth-check-unknown", redirect); {
	case a.err != nil:
		c.fail(name, a.said()+".", "Make the authorization server answer at its authorization_endpoint.")
	case sentTo(a, redirect):
		c.danger(name, "The authorization server redirects to the URI of an unknown client, so anybody can redirect people anywhere.", "Make it show a page with the error instead.")
	case a.status == http.StatusNotFound || a.status == http.StatusMethodNotAllowed || a.status >= 500:
		c.fail(name, a.said()+": nobody can sign in.", "Configure the proxy in front to pass the authorization_endpoint to the server.")
	case a.status == http.StatusTooManyRequests:
		c.warn(name, a.said()+".", waitAMinute)
	case a.status >= 400:
		c.pass(name, "refused with %d and without a redirect", a.status)
	default:
		c.warn(name, a.said()+" for an unknown client.", "Make the authorization server refuse it before people sign in.")
	}
}

// checkKnownClients sends the request of each client with a metadata document. The request must
// lead to a page for sign-in or consent.
func (c *checker) checkKnownClients(ctx context.Context) {
	if !c.server.documents() {
		c.skip("sign-in", "clients cannot name metadata documents here, so the result depends on how they are registered")
		return
	}
	all := knownClients()
	for _, id := range []client{claude, claudeCode, chatGPT, vsCode} {
		name := "sign-in for " + id.name()
		why, fix := "", ""
		for _, k := range all {
			if k.client == id && why == "" && (id != chatGPT || c.server.Iss) {
				why, fix = c.refused(ctx, k.id, k.redirect)
			}
		}
		if why != "" {
			c.fail(name, why, fix, id)
		} else {
			c.pass(name, "leads to a page")
		}
	}
}

// refused returns why the request of a client does not lead to a page, and the fix. Both are
// empty if the request leads to a page.
func (c *checker) refused(ctx context.Context, id, redirect string) (why, fix string) {
	a := c.authorize(ctx, id, redirect)
	switch {
	case a.err != nil:
		return a.said() + ".", "Make the authorization server answer at its authorization_endpoint."
	case sentTo(a, redirect):
		q := a.location().Query()
		if q.Get("code") != "" {
			return "The server issues a code to " + redirect + " without consent.", "Make it ask the person for consent."
		}
		return fmt.Sprintf("The server sends the person back to %s with the error %q: %s.", redirect, short(q.Get("error")), orNothing(q.Get("error_description"))), "Make it allow what the metadata promises: the resource " + short(c.metadata.Resource) + " and the scope " + orNothing(c.scope) + "."
	case a.status == http.StatusOK || a.location() != nil:
		return "", ""
	case a.status == http.StatusTooManyRequests:
		return a.said() + ".", waitAMinute
	}
	why = a.said() + " for " + id + " with the redirect URI " + redirect + "."
	if !strings.HasPrefix(id, "https://") {
		return why, "Make the authorization server accept the clients that it registers."
	}
	return why, "Make sure that the authorization server can fetch that document, whose host refuses some networks, or preset the client."
}

// checkToken requests tokens with an invalid code and an invalid refresh token. Clients start the
// sign-in again only after invalid_grant or invalid_client (RFC 6749 section 5.2).
func (c *checker) checkToken(ctx context.Context) {
	const name = "token endpoint"
	if c.server.TokenEndpoint == "" {
		return
	}
	k := knownClients()[0]
	code := c.postForm(ctx, c.server.TokenEndpoint, url.Values{
		"grant_type": {"authorization_code"}, "code": {"satchel-auth-check-not-a-code"}, "redirect_uri": {k.redirect},
		"client_id": {k.id}, "code_verifier": {verifier}, "resource": {c.metadata.Resource},
	})
	refresh := c.postForm(ctx, c.server.TokenEndpoint, url.Values{
		"grant_type": {"refresh_token"}, "refresh_token": {"satchel-auth-check-not-a-token"}, "client_id": {k.id}, "resource": {c.metadata.Resource},
	})
	dead := []string{"invalid_grant", "invalid_client"}
	for _, a := range []answer{code, refresh} {
		got := a.oauthError()
		switch {
		case a.err != nil || a.html() || a.status == http.StatusNotFound || a.status >= 500 || a.location() != nil:
			c.fail(name, a.said()+".", "Configure the proxy in front to pass POST to the token_endpoint to the authorization server.")
			return
		case a.status == http.StatusTooManyRequests:
			c.warn(name, a.said()+".", waitAMinute)
			return
		case a.status < 400:
			c.danger(name, a.said()+" to a code or a refresh token that was never issued.", "Do not use this authorization server.")
			return
		case got == "":
			c.warn(name, a.said()+", not an OAuth error in JSON (RFC 6749 section 5.2), so Claude does not know that its user must sign in again.", "Use an authorization server that answers invalid_grant.", claude, claudeCode, tools)
			return
		case !slices.Contains(dead, got):
			c.warn(name, fmt.Sprintf("The error to an invalid code or refresh token is %q, not invalid_grant, so Claude does not know that its user must sign in again.", short(got)), "Use an authorization server that answers invalid_grant.", claude, claudeCode)
			return
		}
	}
	if !strings.Contains(strings.ToLower(code.header.Get("Cache-Control")), "no-store") {
		c.warn(name, "Answers may be cached: there is no Cache-Control: no-store (RFC 6749 section 5.1).", "Make the authorization server send it and the proxy in front pass it.")
		return
	}
	c.pass(name, "%s", code.oauthError())
}
