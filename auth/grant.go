package auth

import (
	"errors"
	"time"

	"satchel/internal/space"
)

// ClientKind is how a client became known.
type ClientKind string

// The kinds of clients.
const (
	// ClientDocument is one whose id is the URL of its metadata document
	// (draft-ietf-oauth-client-id-metadata-document).
	ClientDocument ClientKind = "document"
	// ClientRegistered registered itself (RFC 7591). Anybody can.
	ClientRegistered ClientKind = "registered"
	// ClientPreset was made by an admin.
	ClientPreset ClientKind = "preset"
)

// Client is a program that asks for a grant. All are public clients: what they
// say of themselves is not proven, and where their redirect goes is all that is
// known of them.
type Client struct {
	ID   string
	Kind ClientKind
	// Name and URI are what the client calls itself, unverified; may be empty.
	Name, URI    string
	RedirectURIs []string
	Created      time.Time
	// LastUsed is when it last got a token, to the hour; zero: never.
	LastUsed time.Time
}

// Consent is what a person granted to a client, until the client redeems it.
type Consent struct {
	Client   string // the id
	Name     string // what the grant is called in lists
	User     space.UserID
	Space    space.SpaceID
	Scopes   []space.Scope
	Resource string // the audience (RFC 8707)
	// RedirectURI is the one that the request named, which the token request must
	// repeat.
	RedirectURI string
	// Challenge is the S256 code challenge (RFC 7636 section 4.2).
	Challenge string
}

// Redemption is a token request with an authorization code.
type Redemption struct {
	Code        string
	Client      string
	RedirectURI string
	Verifier    string // of PKCE
	Resource    string // empty: the client did not name it again
}

// RefreshRequest is a token request with a refresh token.
type RefreshRequest struct {
	Refresh  string
	Client   string
	Resource string        // empty: the client did not name it again
	Scopes   []space.Scope // empty: as before; never more than was granted
}

// Tokens are what a client is given.
type Tokens struct {
	Grant    space.GrantID
	Access   Secret
	Expires  time.Time // of Access
	Refresh  Secret
	Scopes   []space.Scope
	Resource string
}

// External is a caller whom another issuer's token proves.
type External struct {
	Issuer, Subject string
	Email           string // empty if the issuer did not verify it
	Name            string // how a person would write it; may be empty
	Client          string // the client's id at the issuer
	Scopes          []space.Scope
	Space           string // as Store.FindSpace takes it; empty: the person's first
	Expires         time.Time
}

// Errors of token requests (RFC 6749 section 5.2, RFC 8707 section 2), as the cause of a
// fault.Invalid whose message the client may see.
var (
	// ErrInvalidGrant: the code or the refresh token is invalid here.
	ErrInvalidGrant = errors.New("invalid_grant")
	// ErrInvalidTarget: the resource is not the granted one.
	ErrInvalidTarget = errors.New("invalid_target")
	// ErrInvalidScope: more is asked for than was granted.
	ErrInvalidScope = errors.New("invalid_scope")
)
