package authcheck

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
)

// serverMetadata is what is used of RFC 8414 section 2.
type serverMetadata struct {
	Issuer                string   `json:"issuer"`
	AuthorizationEndpoint string   `json:"authorization_endpoint"`
	TokenEndpoint         string   `json:"token_endpoint"`
	RegistrationEndpoint  string   `json:"registration_endpoint"`
	ResponseTypes         []string `json:"response_types_supported"`
	GrantTypes            []string `json:"grant_types_supported"`
	Challenges            []string `json:"code_challenge_methods_supported"`
	AuthMethods           []string `json:"token_endpoint_auth_methods_supported"`
	Documents             bool     `json:"client_id_metadata_document_supported"`
	Iss                   bool     `json:"authorization_response_iss_parameter_supported"`

	at string // where it was found
}

// documents reports whether clients may name a metadata document: Claude does where
// it also needs no secret.
func (s *serverMetadata) documents() bool {
	return s.Documents && slices.Contains(s.AuthMethods, "none")
}

// places are where clients look for the metadata of an issuer, in their order.
func places(issuer *url.URL) []string {
	const oauth, openid = "/.well-known/oauth-authorization-server", "/.well-known/openid-configuration"
	path := strings.TrimSuffix(issuer.EscapedPath(), "/")
	base := origin(issuer)
	all := []string{base + oauth + path, base + openid + path}
	if path != "" {
		all = append(all, base+path+openid)
	}
	return all
}

// checkServerMetadata looks for the metadata of the first authorization server.
func (c *checker) checkServerMetadata(ctx context.Context) {
	const name = "server metadata"
	if c.metadata == nil || len(c.metadata.AuthorizationServers) == 0 {
		return
	}
	issuer := c.metadata.AuthorizationServers[0]
	u, err := url.Parse(issuer)
	if err != nil {
		return
	}
	var first string
	for _, place := range places(u) {
		var m serverMetadata
		a := c.get(ctx, place)
		why := a.object(&m)
		if why == "" && m.AuthorizationEndpoint == "" {
			why = place + " is no metadata of an authorization server"
		}
		if why == "" {
			m.at = place
			c.server = &m
			break
		}
		if first == "" {
			first = why
		}
	}
	switch {
	case c.server == nil:
		c.fail(name, first+".", "Start the authorization server, let the public internet reach it, and let its metadata be at "+places(u)[0]+".")
	case c.server.Issuer != issuer:
		c.fail(name, fmt.Sprintf("%s says that its issuer is %q, not %q: clients compare them byte for byte.", c.server.at, short(c.server.Issuer), issuer), "Let both have the same bytes, the slash at the end included: auth.issuer.url, or server.public_url.")
	case first != "":
		c.warn(name, "It is at "+c.server.at+" alone: "+first+". Clients of the time before November 2025 look there.", "Use current clients, or let the authorization server answer there too.")
	default:
		c.pass(name, "at %s", c.server.at)
	}
}

// checkIdentification judges by the metadata how clients say who they are, and
// whether they will go on.
func (c *checker) checkIdentification() {
	s := c.server
	switch {
	case s.AuthorizationEndpoint == "" || s.TokenEndpoint == "":
		c.fail("endpoints", "The metadata names no authorization_endpoint and token_endpoint.", "Let the authorization server name both.")
	case !secure(s.AuthorizationEndpoint) || !secure(s.TokenEndpoint) || s.RegistrationEndpoint != "" && !secure(s.RegistrationEndpoint):
		c.fail("endpoints", "The metadata names endpoints that are not https.", "Set server.public_url to an https URL; at another issuer, its own.")
	case s.ResponseTypes != nil && !slices.Contains(s.ResponseTypes, "code"):
		c.fail("endpoints", "The authorization server gives no codes: response_types_supported has no code.", "Let it support the authorization code grant.")
	case s.GrantTypes != nil && !slices.Contains(s.GrantTypes, "refresh_token"):
		c.warn("endpoints", "The authorization server gives no refresh tokens, so that people sign in again whenever a token ends.", "Let it support the grant refresh_token.")
	default:
		c.pass("endpoints", "%s, %s", s.AuthorizationEndpoint, s.TokenEndpoint)
	}
	if slices.Contains(s.Challenges, "S256") {
		c.pass("PKCE", "S256")
	} else {
		c.fail("PKCE", "The metadata does not list S256 in code_challenge_methods_supported, without which clients stop.", "Let the authorization server support PKCE with S256, and say so.")
	}
	const name = "client identification"
	register := s.RegistrationEndpoint != ""
	const preset = "Make a client at the authorization server, and give its id to each client in its settings."
	switch {
	case s.documents() && register:
		c.pass(name, "by metadata document or registration")
	case s.documents():
		c.warn(name, "Clients cannot register, and Cursor and others have no metadata document.", "Set auth.registration, or make a client for these and give them its id.", cursor, tools)
	case register && s.Documents:
		c.warn(name, "Clients may name metadata documents, but Claude registers at each fresh connection, since token_endpoint_auth_methods_supported has no none.", "Let it list none, for public clients.")
	case register:
		c.warn(name, "Clients cannot name metadata documents, and register at each fresh connection.", "Set auth.client_documents; at another issuer, let it expire unused clients.")
	default:
		c.warn(name, "Clients can neither name a metadata document nor register.", preset, allClients()...)
	}
	if !s.Iss {
		c.warn("issuer in answers", "Authorization answers do not name their issuer (RFC 9207), so that a client cannot tell a mixed-up answer; ChatGPT uses another redirect URI for each app.", "Where ChatGPT is preset, allow the redirect URI that it shows.")
	}
}

// secure reports whether a URL may carry secrets.
func secure(s string) bool {
	u, err := url.Parse(s)
	return err == nil && u.Host != "" && (u.Scheme == "https" || u.Scheme == "http" && local(u))
}

// checkRegistration registers a client where that was asked for.
func (c *checker) checkRegistration(ctx context.Context) {
	const name = "registration"
	switch {
	case c.server.RegistrationEndpoint == "":
		c.skip(name, "there is none")
		return
	case !c.o.Register:
		c.skip(name, "only with --register, since it leaves a client behind until it expires")
		return
	}
	const redirect = "http://127.0.0.1:49154/callback"
	a := c.ask(ctx, http.MethodPost, c.server.RegistrationEndpoint, `{"client_name":"satchel auth check","redirect_uris":["`+redirect+`"],"grant_types":["authorization_code","refresh_token"],"response_types":["code"],"token_endpoint_auth_method":"none"}`,
		"Content-Type", "application/json", "Accept", "application/json")
	var got struct {
		ID    string   `json:"client_id"`
		URIs  []string `json:"redirect_uris"`
		URI   string   `json:"registration_client_uri"`
		Token string   `json:"registration_access_token"`
	}
	created := a
	if a.status == http.StatusCreated {
		created.status = http.StatusOK // RFC 7591 section 3.2.1
	}
	switch why := created.object(&got); {
	case a.status == http.StatusTooManyRequests:
		c.warn(name, a.said()+": its limit is reached.", "Check again later; behind a proxy, name it in server.trusted_proxies, so that not all clients are counted as one.")
	case why != "":
		c.fail(name, a.said()+reported(a)+".", "Set auth.registration, and let the proxy pass POST to the endpoint.", c.registering()...)
	case got.ID == "" || !slices.Contains(got.URIs, redirect):
		c.fail(name, "The answer has no client_id, or not the redirect URI that was asked for.", "Let the authorization server take http redirect URIs on loopback addresses (RFC 8252 section 7.3).", c.registering()...)
	default:
		c.pass(name, "a client was registered")
		if why, fix := c.refused(ctx, got.ID, redirect); why != "" {
			c.fail("sign-in for a registered client", why, fix, c.registering()...)
		} else {
			c.pass("sign-in for a registered client", "leads to a page")
		}
	}
	if got.Token != "" && secure(got.URI) { // RFC 7592 section 2.3
		c.ask(ctx, http.MethodDelete, got.URI, "", "Authorization", "Bearer "+got.Token)
	}
}

// registering are the clients that must register here.
func (c *checker) registering() []client {
	if c.server.documents() {
		return []client{cursor, tools}
	}
	return nil
}

// reported is what an error of OAuth says.
func reported(a answer) string {
	if code := a.oauthError(); code != "" {
		return ": " + short(code)
	}
	return ""
}
