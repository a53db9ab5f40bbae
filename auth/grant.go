package auth

import (
	"errors"
	"time"

	"satchel/internal/space"
)

// ClientKind says how the server came to know a client.
type ClientKind string

// The kinds of clients.
const (
	// ClientDocument is a client whose id is the URL of its metadata document
	// (draft-ietf-oauth-client-id-metadata-document).
	ClientDocument ClientKind = "document"
	// ClientRegistered is a client that registered itself (RFC 7591). Anybody can register
	// one.
	ClientRegistered ClientKind = "registered"
	// ClientPreset is a client that an admin created.
	ClientPreset ClientKind = "preset"
)

// Client is a program that asks for a grant. All clients are public: nothing proves what
// they say about themselves. All that is certain is where their redirects go.
type Client struct {
	ID   string
	Kind ClientKind
	// Name and URI are the client's unverified claims. Both may be empty.
	Name, URI    string
	RedirectURIs []string
	Created      time.Time
	// LastUsed is when the client last got a token, to the hour. Zero means never.
	LastUsed time.Time
}

// Consent is a person's grant to a client that has not redeemed it yet.
type Consent struct {
	Client   string // the client's id
	Name     string // the grant's name in lists
	User     space.UserID
	Space    space.SpaceID
	Scopes   []space.Scope
	Resource string // the audience (RFC 8707)
	// RedirectURI is the redirect URI of the authorization request. The token request must
	// repeat it.
	RedirectURI string
	// Challenge is the S256 code challenge (RFC 7636 section 4.2).
	Challenge string
}

// Redemption is a token request with an authorization code.
type Redemption struct {
	Code        string
	Client      string
	RedirectURI string
	Verifier    string // the PKCE verifier
	Resource    string // empty if the client did not repeat it
}

// RefreshRequest is a token request with a refresh token.
type RefreshRequest struct {
	Refresh  string
	Client   string
	Resource string        // empty if the client did not repeat it
	Scopes   []space.Scope // empty for the granted scopes; any other scope causes ErrInvalidScope
}

// Tokens is the answer to a token request.
type Tokens struct {
	Grant    space.GrantID
	Access   Secret
	Expires  time.Time // when Access expires
	Refresh  Secret
	Scopes   []space.Scope
	Resource string
}

// External is a caller with a token of another issuer.
type External struct {
	Issuer, Subject string
	Email           string // empty if the issuer did not verify it
	Name            string // the person's full name; may be empty
	Client          string // the client's id at the issuer
	Scopes          []space.Scope
	Space           string // a reference as in FindSpace of auth/store; empty for the default space
	Expires         time.Time
}

// Errors of token requests (RFC 6749 section 5.2, RFC 8707 section 2). Each is the cause of
// a fault.Invalid with a message for the client.
var (
	// ErrInvalidGrant means that the code or the refresh token is not valid for this request.
	ErrInvalidGrant = errors.New("invalid_grant")
	// ErrInvalidTarget means that the grant is for another resource.
	ErrInvalidTarget = errors.New("invalid_target")
	// ErrInvalidScope means that the request asks for more than was granted.
	ErrInvalidScope = errors.New("invalid_scope")
)
