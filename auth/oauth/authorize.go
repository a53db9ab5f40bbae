package oauth

import (
	"context"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"satchel/auth"
	"satchel/internal/fault"
	"satchel/internal/space"
)

// IssuerParameter is the query parameter with the issuer that the client expects in the answer. The
// pages add it when they redirect an authorization request from another of the server's origins to
// Options.Issuer. A client that adds it gains nothing, because only the server's issuers are valid.
const IssuerParameter = "issuer"

const (
	maxClientID = maxURL
	maxState    = 4096
	maxScope    = 1024 // bytes of the parameter
	maxResource = 8    // number of resource parameters
	// challengeSize is the length of a SHA-256 hash in base64url. A verifier has at least this
	// length, and at most maxVerifier (RFC 7636 sections 4.1 and 4.2).
	challengeSize, maxVerifier = 43, 128
)

// PageError is an error to show to the person. It is never sent to a redirect URI, because
// the client or the redirect URI is unknown (RFC 6749 section 4.1.2.1).
type PageError struct {
	Status      int
	Title, Text string
	// Err is the cause, for logs only. It may be nil.
	Err error
}

// Error returns the page's text with the cause, for logs.
func (e *PageError) Error() string {
	if e.Err != nil {
		return e.Title + ": " + e.Text + ": " + e.Err.Error()
	}
	return e.Title + ": " + e.Text
}

// Unwrap returns the cause.
func (e *PageError) Unwrap() error { return e.Err }

// RedirectError is an error that a redirect returns to the client.
type RedirectError struct {
	// URL is the address to which the browser goes: a checked redirect of the client.
	URL string
	// Code is the error code of RFC 6749 section 4.1.2.1, for logs.
	Code, Description string
	// Known is Request.Known. If it is false, do not redirect automatically: no person has
	// agreed to go to this client. An automatic redirect would make the server an open
	// redirector for everybody who registers a client (RFC 9700 section 4.11.2).
	Known bool
}

// Error returns the error without the URL, because the URL contains the client's state.
func (e *RedirectError) Error() string { return e.Code + ": " + e.Description }

// Request is a valid authorization request that needs a person's consent.
type Request struct {
	Client      auth.Client
	RedirectURI string
	// RedirectHost shows people where the browser goes: a host, with its port if it is not
	// the default, or an application's scheme with a colon, such as "cursor:".
	RedirectHost string
	// RedirectOrigin is the origin for form-action in a content security policy. It is
	// empty for an application's scheme, because a page can only link to it.
	RedirectOrigin string
	// Loopback reports whether the browser stays on the person's machine.
	Loopback bool
	// App reports whether the redirect opens an application by its own scheme.
	App bool
	// Scopes are the scopes that the person can grant: the requested ones, or all if the
	// client requested none.
	Scopes []space.Scope
	State  string
	// Resource is always the server's own resource.
	Resource  string
	Challenge string
	// Issuer is the issuer in the metadata that the client read. The client compares it
	// with iss in the answer (RFC 9207 section 2.4).
	Issuer string
	// Known reports whether the client is a vendor's pinned client and the browser goes to
	// this vendor. The names of other clients are unproven: on the person's machine, any
	// program can claim to be Claude Code.
	Known bool
}

// named names a client in a sentence. Anybody can register a client with any name, so the name is in
// quotes.
func named(c auth.Client) string {
	if c.Name == "" {
		return "The client"
	}
	return "The client that calls itself “" + strings.NewReplacer("“", "'", "”", "'").Replace(c.Name) + "”"
}

// Authorize checks an authorization request. The error is a *PageError or a *RedirectError.
// Authorize changes nothing and grants nothing. For each request, the caller asks the
// person for consent, and then calls Approve or Deny.
func (s *Server) Authorize(ctx context.Context, q url.Values) (*Request, error) {
	if len(q["client_id"]) > 1 || len(q["redirect_uri"]) > 1 {
		return nil, badRequest("The client sent client_id or redirect_uri twice.", nil)
	}
	id, redirect := q.Get("client_id"), q.Get("redirect_uri")
	switch {
	case id == "":
		return nil, badRequest("The client did not say which one it is (client_id).", nil)
	case !isVisible(id, maxClientID):
		return nil, badRequest("The client's client_id is malformed.", nil)
	case redirect == "":
		return nil, badRequest("The client did not say where to return to (redirect_uri).", nil)
	}
	client, known, err := s.client(ctx, id, redirect)
	if err != nil {
		return nil, pageOf(err)
	}
	if !slices.ContainsFunc(client.RedirectURIs, func(r string) bool { return sameRedirect(r, redirect) }) {
		return nil, badRequest(named(client)+" asked Satchel to send you to an address that it has not registered. For your safety, nothing was sent there.", nil)
	}
	u, err := checkRedirect(redirect)
	if err != nil {
		return nil, badRequest("The client asked to return to an address that cannot be used.", err)
	}
	r := &Request{
		Client: client, RedirectURI: redirect, State: q.Get("state"), Resource: s.o.Resource,
		Challenge: q.Get("code_challenge"), Known: known && vouched(u), Loopback: u.scheme == "http",
		Issuer: s.o.Issuer,
	}
	if names := q[IssuerParameter]; len(names) > 0 && s.issuers[names[len(names)-1]] != "" {
		r.Issuer = names[len(names)-1]
	}
	switch u.scheme {
	case "https", "http":
		r.RedirectHost = strings.ToLower(u.host)
		if u.port != "" && !(u.scheme == "https" && u.port == "443") {
			r.RedirectHost += ":" + u.port
		}
		r.RedirectOrigin = u.scheme + "://" + r.RedirectHost
	default:
		r.App, r.RedirectHost = true, u.scheme+":"
	}
	if code, description := s.check(r, q); code != "" {
		return nil, &RedirectError{URL: s.errorURL(r, code, description), Code: code, Description: description, Known: r.Known}
	}
	return r, nil
}

// vouched reports whether the vendor of a pinned document receives the answer. It returns
// false for loopback, because any program can listen there. It also returns false for a
// vendor's page that passes the answer to a program, such as VS Code's page.
func vouched(u parsedURL) bool {
	return u.scheme == "https" && !strings.EqualFold(u.host, "vscode.dev") && !strings.EqualFold(u.host, "insiders.vscode.dev")
}

// check checks a request with a valid redirect. It sets r.Scopes, and removes a state that
// cannot be returned. code is empty if the request is valid.
func (s *Server) check(r *Request, q url.Values) (code, description string) {
	if len(q["state"]) > 1 || len(r.State) > maxState {
		r.State = ""
		return "invalid_request", "The state is sent twice or too long."
	}
	for name, values := range q {
		if len(values) > 1 && name != "resource" {
			// The message omits the name, because the name comes from the request.
			return "invalid_request", "A parameter is sent twice."
		}
	}
	switch {
	case q.Get("request") != "":
		return "request_not_supported", "Send the parameters themselves, not a request object."
	case q.Get("request_uri") != "":
		return "request_uri_not_supported", "Send the parameters themselves, not a request_uri."
	case q.Get("response_type") == "":
		return "invalid_request", "response_type is missing."
	case q.Get("response_type") != "code":
		return "unsupported_response_type", "response_type must be code."
	case q.Get("response_mode") != "" && q.Get("response_mode") != "query":
		return "invalid_request", "response_mode must be query."
	case r.Challenge == "":
		return "invalid_request", "code_challenge is missing: PKCE is required."
	case q.Get("code_challenge_method") != "S256":
		return "invalid_request", "code_challenge_method must be S256."
	case len(r.Challenge) != challengeSize || !isVerifier(r.Challenge) || strings.ContainsAny(r.Challenge, ".~"):
		return "invalid_request", "code_challenge must be a SHA-256 in base64url without padding."
	}
	if len(q["resource"]) > maxResource {
		return "invalid_target", "Too many resources are named."
	}
	if _, ok := s.resource(q["resource"]); !ok {
		return "invalid_target", "The resource must be " + s.o.Resource + "."
	}
	scopes, ok := askedScopes(q.Get("scope"))
	if !ok {
		return "invalid_scope", "The scope is malformed."
	}
	r.Scopes = scopes
	return "", ""
}

// isVerifier reports whether s has the form of RFC 7636 section 4.1.
func isVerifier(s string) bool {
	if len(s) < challengeSize || len(s) > maxVerifier {
		return false
	}
	for i := range len(s) {
		if !isUnreserved(s[i]) {
			return false
		}
	}
	return true
}

// isVisible reports whether s has only VSCHAR (RFC 6749 appendix A), as in ids, codes and
// tokens, and is not longer than most bytes.
func isVisible(s string, most int) bool {
	for i := range len(s) {
		if s[i] < ' ' || s[i] > 0x7e {
			return false
		}
	}
	return len(s) <= most
}

// askedScopes returns the known scopes in a list (RFC 6749 section 3.3), or all offered
// ones if the list has none. Clients also ask for openid and offline_access, even if a
// server does not offer them. ok is false if s is malformed.
func askedScopes(s string) (scopes []space.Scope, ok bool) {
	scopes, ok = knownScopes(s)
	if len(scopes) == 0 {
		scopes = offered()
	}
	return scopes, ok
}

func knownScopes(s string) (scopes []space.Scope, ok bool) {
	if !isVisible(s, maxScope) || strings.ContainsAny(s, "\"\\") {
		return nil, false
	}
	asked := strings.Fields(s)
	for _, o := range offered() {
		if slices.Contains(asked, string(o)) {
			scopes = append(scopes, o)
		}
	}
	return scopes, true
}

// Approve returns the redirect after the person has granted scopes of r.Scopes on a space.
// The caller checks that the answer comes from the person. The error is a fault of the
// store, such as a fault.Forbidden if the user is not a member of the space, or a
// fault.Invalid for scopes that the client did not request.
func (s *Server) Approve(ctx context.Context, user space.UserID, r *Request, sp space.SpaceID, scopes []space.Scope) (redirect string, err error) {
	if len(scopes) == 0 {
		return "", fault.New(fault.Invalid, "Choose what the application may do.")
	}
	for _, sc := range scopes {
		if !slices.Contains(r.Scopes, sc) {
			return "", fault.New(fault.Invalid, "The application did not ask for the scope %q.", sc)
		}
	}
	if !slices.ContainsFunc(r.Client.RedirectURIs, func(u string) bool { return sameRedirect(u, r.RedirectURI) }) {
		return "", fault.New(fault.Invalid, "The client asked to continue at an address that it has not registered.")
	}
	code, err := s.o.Store.CreateCode(ctx, auth.Consent{
		Client: r.Client.ID, Name: grantName(r), User: user, Space: sp, Scopes: scopes,
		Resource: s.o.Resource, RedirectURI: r.RedirectURI, Challenge: r.Challenge,
	})
	if err != nil {
		return "", err
	}
	return withQuery(r.RedirectURI, "code", code.Reveal(), "state", r.State, "iss", r.Issuer), nil
}

// Deny returns the redirect after the person has refused.
func (s *Server) Deny(r *Request) (redirect string) {
	return s.errorURL(r, "access_denied", "The person refused.")
}

func (s *Server) errorURL(r *Request, code, description string) string {
	return withQuery(r.RedirectURI, "error", code, "error_description", describe(description), "state", r.State, "iss", r.Issuer)
}

// grantName returns the name of the grant in lists.
func grantName(r *Request) string {
	if r.Client.Name != "" {
		return r.Client.Name
	}
	return strings.TrimSuffix(r.RedirectHost, ":")
}

func badRequest(text string, err error) *PageError {
	return &PageError{Status: http.StatusBadRequest, Title: "This client cannot be connected", Text: text, Err: err}
}

// pageOf returns the page for a client that cannot be loaded.
func pageOf(err error) *PageError {
	p := &PageError{Title: "The client is not known", Text: fault.PublicOf(err), Err: err}
	switch fault.CodeOf(err) {
	case fault.NotFound, fault.Invalid, fault.TooLarge, fault.Forbidden:
		p.Status = http.StatusBadRequest
	case fault.Limited, fault.Unavailable, fault.Canceled:
		p.Status, p.Title = http.StatusServiceUnavailable, "The client could not be checked"
	default:
		p.Status, p.Title = http.StatusInternalServerError, "Something went wrong"
	}
	return p
}
