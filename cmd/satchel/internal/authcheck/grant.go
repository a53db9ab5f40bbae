package authcheck

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
)

// challengeS256 and verifier are a pair of RFC 7636, whose values do not matter:
// nothing is ever granted.
const (
	verifier      = "dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk"
	challengeS256 = "E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM"
)

// authorize makes the request with which a client sends a person's browser.
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
	a.url = c.server.AuthorizationEndpoint // without the query, which nobody reads
	return a
}

// sentTo reports whether a redirect leads to a client.
func sentTo(a answer, redirect string) bool {
	l := a.location()
	r, err := url.Parse(redirect)
	return l != nil && err == nil && l.Scheme == r.Scheme && l.Host == r.Host && l.Path == r.Path
}

// checkUnknownClient asks for a client that nobody knows: a redirect would make
// the server lead anybody anywhere (RFC 6749 section 4.1.2.1).
func (c *checker) checkUnknownClient(ctx context.Context) {
	const name, redirect = "unknown client", "https://satchel-auth-check.invalid/callback"
	switch a := c.authorize(ctx, "satchel-auth-check-unknown", redirect); {
	case a.err != nil:
		c.fail(name, a.said()+".", "Let the authorization server answer at its authorization_endpoint.")
	case sentTo(a, redirect):
		c.danger(name, "The authorization server redirects to the URI of a client that it does not know, so that anybody can lead people from it to anywhere.", "Let it show a page with the error in its place.")
	case a.status == http.StatusNotFound || a.status == http.StatusMethodNotAllowed || a.status >= 500:
		c.fail(name, a.said()+": nobody can sign in.", "Let the proxy in front pass the authorization_endpoint to the server.")
	case a.status == http.StatusTooManyRequests:
		c.warn(name, a.said()+".", "Wait a minute and check again; behind a proxy, name it in server.trusted_proxies, so that not all are counted as one.")
	case a.status >= 400:
		c.pass(name, "refused with %d and without a redirect", a.status)
	default:
		c.warn(name, a.said()+" for a client that it does not know.", "Let the authorization server refuse it before people sign in.")
	}
}

// checkKnownClients asks as each client with a metadata document does: their
// person must come to a page to sign in or to consent.
func (c *checker) checkKnownClients(ctx context.Context) {
	if !c.server.documents() {
		c.skip("sign-in", "clients cannot name metadata documents here, so that what they would meet depends on what they are registered as")
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

// refused says why a client's person does not come to a page.
func (c *checker) refused(ctx context.Context, id, redirect string) (why, fix string) {
	a := c.authorize(ctx, id, redirect)
	switch {
	case a.err != nil:
		return a.said() + ".", "Let the authorization server answer at its authorization_endpoint."
	case sentTo(a, redirect):
		q := a.location().Query()
		if q.Get("code") != "" {
			return "The server gives a code to " + redirect + " without asking anybody.", "Let it ask the person for consent."
		}
		return fmt.Sprintf("The server sends the person back to %s with the error %q: %s.", redirect, short(q.Get("error")), orNothing(q.Get("error_description"))), "Let it allow what the metadata promises: the resource " + short(c.metadata.Resource) + " and the scope " + orNothing(c.scope) + "."
	case a.status == http.StatusOK || a.location() != nil:
		return "", ""
	case a.status == http.StatusTooManyRequests:
		return a.said() + ".", "Wait a minute and check again; behind a proxy, name it in server.trusted_proxies, so that not all are counted as one."
	}
	why = a.said() + " for " + id + " with the redirect URI " + redirect + "."
	if !strings.HasPrefix(id, "https://") {
		return why, "Let the authorization server take the clients that it registers."
	}
	return why, "Let the authorization server fetch that document, whose host refuses some networks, or preset the client."
}

// checkToken asks for tokens with a code and a refresh token that nobody gave.
// Clients begin again where they hear invalid_grant (RFC 6749 section 5.2).
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
			c.fail(name, a.said()+".", "Let the proxy in front pass POST to the token_endpoint to the authorization server.")
			return
		case a.status == http.StatusTooManyRequests:
			c.warn(name, a.said()+".", "Wait a minute and check again; behind a proxy, name it in server.trusted_proxies, so that not all are counted as one.")
			return
		case a.status < 400:
			c.danger(name, a.said()+" to a code or a refresh token that nobody gave.", "Do not use this authorization server.")
			return
		case got == "":
			c.warn(name, a.said()+", not an error of OAuth in JSON (RFC 6749 section 5.2); Claude does not learn that it must ask its user again.", "Use an authorization server that answers invalid_grant.", claude, claudeCode, tools)
			return
		case !slices.Contains(dead, got):
			c.warn(name, fmt.Sprintf("The error to a code or a refresh token that is no good is %q, not invalid_grant; Claude does not learn that it must ask its user again.", short(got)), "Use an authorization server that answers invalid_grant.", claude, claudeCode)
			return
		}
	}
	if !strings.Contains(strings.ToLower(code.header.Get("Cache-Control")), "no-store") {
		c.warn(name, "Answers may be cached: there is no Cache-Control: no-store (RFC 6749 section 5.1).", "Let the authorization server send it, and the proxy in front pass it.")
		return
	}
	c.pass(name, "%s", code.oauthError())
}
