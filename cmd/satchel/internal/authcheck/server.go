package authcheck

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
)

// serverMetadata has the fields of an authorization server's metadata (RFC 8414 section 2) that the
// checks use.
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

	at string // the URL where the metadata was found
}

// documents reports whether clients may use a metadata document as their id. Claude does so only
// if the server also accepts clients without a secret.
func (s *serverMetadata) documents() bool {
	return s.Documents && slices.Contains(s.AuthMethods, "none")
}

// places returns the URLs at which clients look for the metadata of an issuer, in order.
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

// checkServerMetadata finds the metadata of the first authorization server.
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
			why = place + " is not the metadata of an authorization server"
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
		c.fail(name, first+".", "Start the authorization server, make it reachable from the public internet, and serve its metadata at "+places(u)[0]+".")
	case c.server.Issuer != issuer:
		c.fail(name, fmt.Sprintf("%s names the issuer %q, not %q; clients compare them byte for byte.", c.server.at, short(c.server.Issuer), issuer), "Make both identical, including the slash at the end: auth.issuer.url, or server.public_url.")
	case first != "":
		c.warn(name, "It is only at "+c.server.at+": "+first+". Clients from before November 2025 look there.", "Use current clients, or make the authorization server answer there too.")
	default:
		c.pass(name, "at %s", c.server.at)
	}
}

// checkIdentification checks in the metadata how clients identify themselves, and whether the
// server supports what they require.
func (c *checker) checkIdentification() {
	s := c.server
	switch {
	case s.AuthorizationEndpoint == "" || s.TokenEndpoint == "":
		c.fail("endpoints", "The metadata lacks the authorization_endpoint or the token_endpoint.", "Make the authorization server name both.")
	case !secure(s.AuthorizationEndpoint) || !secure(s.TokenEndpoint) || s.RegistrationEndpoint != "" && !secure(s.RegistrationEndpoint):
		c.fail("endpoints", "The metadata names endpoints that are not https.", "Set server.public_url to an https URL; at another issuer, its own.")
	case s.ResponseTypes != nil && !slices.Contains(s.ResponseTypes, "code"):
		c.fail("endpoints", "The authorization server issues no codes: response_types_supported has no code.", "Make it support the authorization code grant.")
	case s.GrantTypes != nil && !slices.Contains(s.GrantTypes, "refresh_token"):
		c.warn("endpoints", "The authorization server issues no refresh tokens, so people must sign in again whenever a token expires.", "Make it support the grant refresh_token.")
	default:
		c.pass("endpoints", "%s, %s", s.AuthorizationEndpoint, s.TokenEndpoint)
	}
	if slices.Contains(s.Challenges, "S256") {
		c.pass("PKCE", "S256")
	} else {
		c.fail("PKCE", "The metadata does not list S256 in code_challenge_methods_supported, which clients require.", "Make the authorization server support PKCE with S256, and list it.")
	}
	const name = "client identification"
	register := s.RegistrationEndpoint != ""
	const preset = "Create a client at the authorization server, and enter its id in the settings of each client."
	switch {
	case s.documents() && register:
		c.pass(name, "by metadata document or registration")
	case s.documents():
		c.warn(name, "Clients cannot register, but Cursor and others have no metadata document.", "Set auth.registration, or create a client for these and give them its id.", cursor, tools)
	case register && s.Documents:
		c.warn(name, "Clients may name metadata documents, but Claude registers at each new connection, because token_endpoint_auth_methods_supported has no none.", "Make it list none, for public clients.")
	case register:
		c.warn(name, "Clients cannot name metadata documents, so they register at each new connection.", "Set auth.client_documents; at another issuer, make it expire unused clients.")
	default:
		c.warn(name, "Clients can neither name a metadata document nor register.", preset, allClients()...)
	}
	if !s.Iss {
		c.warn("issuer in answers", "Authorization answers do not name their issuer (RFC 9207), so clients cannot detect mixed-up answers, and ChatGPT uses another redirect URI for each app.", "If ChatGPT is preset, allow the redirect URI that it shows.")
	}
}

// secure reports whether secrets may be sent to a URL.
func secure(s string) bool {
	u, err := url.Parse(s)
	return err == nil && u.Host != "" && (u.Scheme == "https" || u.Scheme == "http" && local(u))
}

// checkRegistration registers a client if Options.Register is set.
func (c *checker) checkRegistration(ctx context.Context) {
	const name = "registration"
	switch {
	case c.server.RegistrationEndpoint == "":
		c.skip(name, "there is none")
		return
	case !c.o.Register:
		c.skip(name, "only with --register, because the registered client may remain until it expires")
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
		c.warn(name, a.said()+": its limit is reached.", waitAMinute)
	case why != "":
		c.fail(name, a.said()+reported(a)+".", "Set auth.registration, and configure the proxy to pass POST to the endpoint.", c.registering()...)
	case got.ID == "" || !slices.Contains(got.URIs, redirect):
		c.fail(name, "The answer has no client_id, or not the requested redirect URI.", "Make the authorization server accept http redirect URIs on loopback addresses (RFC 8252 section 7.3).", c.registering()...)
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

// registering returns the clients that must register at this server, or nil if all must.
func (c *checker) registering() []client {
	if c.server.documents() {
		return []client{cursor, tools}
	}
	return nil
}

// reported returns a colon and the code of an OAuth error, or "" if there is no code.
func reported(a answer) string {
	if code := a.oauthError(); code != "" {
		return ": " + short(code)
	}
	return ""
}
