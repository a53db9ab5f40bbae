package access

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/golang-jwt/jwt/v5"

	"satchel/auth"
	"satchel/internal/fault"
	"satchel/internal/space"
)

// Verifier verifies the access tokens of one issuer. It is safe for concurrent use. Close
// ends its background work.
type Verifier struct {
	o       Options
	keys    *keyring
	require []required
}

// New returns a verifier, which begins to fetch the issuer's keys. It returns an error for
// invalid options, but not if the issuer does not answer.
func New(o Options) (*Verifier, error) {
	o = o.withDefaults()
	if err := o.check(); err != nil {
		return nil, fmt.Errorf("external issuer: %w", err)
	}
	v := &Verifier{o: o, require: parseRequired(o.RequireClaims)}
	v.keys = newKeyring(o)
	return v, nil
}

// Close stops fetching keys, and waits until all fetches have ended. Once the keys are too
// old, tokens are refused with fault.Unavailable.
func (v *Verifier) Close() { v.keys.close() }

// Verify returns the person and the client that a token names, and the same person in the form
// that allow lists use. The caller must check that the person is a user.
//
// A valid token has exactly three parts, an algorithm of Algorithms that fits the type of
// the issuer's key, no critical extension (RFC 7515 section 4.1.11), the issuer's
// signature, a typ of Types (RFC 9068 section 4), exactly the issuer as iss, one of
// Audience in aud, an exp in the future, no nbf or iat in the future, a sub, a client, and the
// RequireClaims. Verify rejects tokens that are bound to a key of the client (RFC 7800),
// because nothing here verifies that key. It also rejects ID tokens and logout tokens.
//
// The error is a fault.Unauthenticated for an invalid token. It is a fault.Forbidden for a
// valid token without a scope that counts here. For that error, auth.ErrorCode returns
// insufficient_scope, so that a client asks for more. It is a fault.Unavailable if there
// are no current keys of the issuer, or if the key is unknown and the issuer is
// unreachable. It can also be a fault.Canceled.
func (v *Verifier) Verify(ctx context.Context, bearer string) (auth.External, auth.ExternalIdentity, error) {
	e, who, err := v.verify(ctx, bearer)
	if err != nil {
		v.o.Logger.DebugContext(ctx, "token of another issuer refused", "issuer", v.o.Issuer, "error", err)
	}
	return e, who, err
}

func (v *Verifier) verify(ctx context.Context, bearer string) (auth.External, auth.ExternalIdentity, error) {
	t, err := parse(bearer)
	if err != nil {
		return auth.External{}, auth.ExternalIdentity{}, notValid(err)
	}
	if !slices.Contains(v.o.Algorithms, t.alg) {
		return auth.External{}, auth.ExternalIdentity{}, notValid(fmt.Errorf("the algorithm %.40q", t.alg))
	}
	if err := v.keys.verify(ctx, t); err != nil {
		return auth.External{}, auth.ExternalIdentity{}, err
	}
	payload, err := decode(t.payload)
	if err != nil {
		return auth.External{}, auth.ExternalIdentity{}, notValid(err)
	}
	c, err := readObject(payload)
	if err != nil {
		return auth.External{}, auth.ExternalIdentity{}, notValid(fmt.Errorf("claims: %w", err))
	}
	return v.judge(t, c)
}

// notValid returns the error for a token that is malformed or that the issuer did not sign. Why
// the token is not valid is only in the wrapped error, for the log.
func notValid(err error) error {
	return fault.Wrap(err, fault.Unauthenticated, "The token is not valid.")
}

// token is a token that is not verified yet.
type token struct {
	alg, typ, kid string
	typed         bool   // the header has a typ
	signed        string // the signed bytes
	payload       string
	signature     []byte
}

func parse(bearer string) (token, error) {
	if len(bearer) > auth.MaxBearerBytes {
		return token{}, errors.New("too long")
	}
	header, rest, _ := strings.Cut(bearer, ".")
	payload, signature, ok := strings.Cut(rest, ".")
	if !ok || strings.Contains(signature, ".") {
		return token{}, errors.New("not three parts")
	}
	t := token{payload: payload, signed: bearer[:len(header)+1+len(payload)]}
	var err error
	if t.signature, err = decode(signature); err != nil {
		return token{}, err
	}
	if len(t.signature) == 0 {
		return token{}, errors.New("no signature")
	}
	h, err := decode(header)
	if err != nil {
		return token{}, err
	}
	o, err := readObject(h)
	if err != nil {
		return token{}, fmt.Errorf("header: %w", err)
	}
	// jku, jwk, x5u and x5c name keys that the sender chose, so they are ignored.
	if _, ok := o["crit"]; ok {
		return token{}, errors.New("header: a critical extension")
	}
	for _, f := range [...]struct {
		name string
		to   *string
	}{{"alg", &t.alg}, {"typ", &t.typ}, {"kid", &t.kid}} {
		v, there := o[f.name]
		if *f.to, ok = v.(string); there && !ok {
			return token{}, fmt.Errorf("header: %s is no text", f.name)
		}
	}
	_, t.typed = o["typ"]
	return t, nil
}

// decode decodes base64url without padding (RFC 7515 section 2). It accepts only the
// canonical form: no spaces, no line ends, no trailing bits.
func decode(s string) ([]byte, error) {
	if strings.ContainsAny(s, "\r\n") { // the decoder would skip these
		return nil, errors.New("not base64url")
	}
	b, err := base64.RawURLEncoding.Strict().DecodeString(s)
	if err != nil {
		return nil, errors.New("not base64url")
	}
	return b, nil
}

// verify reports whether the key verifies the signature.
func (t token) verify(k key) bool {
	method := jwt.GetSigningMethod(t.alg)
	return method != nil && k.fits(t.alg) && method.Verify(t.signed, t.signature, k.public) == nil
}

// judge applies the rules to a token with a verified signature. Its messages may give the
// reason, because only the bearer of such a token sees them.
func (v *Verifier) judge(t token, c claims) (auth.External, auth.ExternalIdentity, error) {
	refuse := func(format string, args ...any) (auth.External, auth.ExternalIdentity, error) {
		return auth.External{}, auth.ExternalIdentity{}, fault.New(fault.Unauthenticated, format, args...)
	}
	if iss, _ := c["iss"].(string); iss != v.o.Issuer {
		return refuse("The token comes from an issuer that this server does not accept.")
	}
	if why := v.notAccess(t, c); why != "" {
		return refuse("%s", why)
	}
	if !c.audience(v.o.Audience) {
		return refuse("The token is for another resource than this server.")
	}
	if why := c.lifetime(v.o.Now(), v.o.ClockSkew); why != "" {
		return refuse("%s", why)
	}
	sub, ok := text(c["sub"], maxSubject)
	if !ok {
		return refuse("The token names no person: it needs the claim sub.")
	}
	client := c.client(v.o.ClientClaims)
	if client == "" {
		return refuse("The token names no client: it is a person's own session and was not given to a client.")
	}
	for _, r := range v.require {
		if !r.holds(c) {
			return refuse("The token does not have the claim %s that this server requires.", r.name)
		}
	}
	scopes := v.scopes(c)
	if len(scopes) == 0 {
		none := auth.Principal{}.Require(space.ScopeRead) // an error that auth.ErrorCode recognizes
		return auth.External{}, auth.ExternalIdentity{}, fault.Wrap(none, fault.Forbidden, "The token has no scope that lets its client read or write here.")
	}
	who := auth.ExternalIdentity{Issuer: v.o.Issuer, Subject: sub, Email: c.email(v.o.EmailClaim, v.o.VerifiedClaim),
		Name: c.name(v.o.NameClaim), Login: c.name("preferred_username")}
	sp, _ := c.lookup(v.o.SpaceClaim)
	name, _ := text(sp, maxName)
	return auth.External{Issuer: who.Issuer, Subject: who.Subject, Email: who.Email, Name: who.Name,
		Client: client, Scopes: scopes, Space: name, Expires: c.expires(v.o.ClockSkew)}, who, nil
}

// notAccess returns the reason why a token cannot be used as an access token. It returns "" if
// the token can be used.
func (v *Verifier) notAccess(t token, c claims) string {
	const another = "The token is not an access token."
	typ := mediaType(t.typ)
	if !t.typed {
		typ = "jwt"
	}
	if len(v.o.Types) > 0 && !slices.ContainsFunc(v.o.Types, func(s string) bool { return mediaType(s) == typ }) {
		return another
	}
	switch typ {
	case "logout+jwt", "secevent+jwt", "dpop+jwt", "id+jwt":
		return another
	}
	for _, name := range []string{"events", "at_hash", "c_hash", "s_hash", "nonce"} { // claims of logout tokens and ID tokens
		if _, ok := c[name]; ok && (name == "events" || typ != "at+jwt") {
			return another
		}
	}
	for _, name := range []string{"typ", "token_use"} { // the claims in which Keycloak and Cognito state the purpose of a token
		s, _ := c[name].(string)
		switch strings.ToLower(s) {
		case "id", "refresh", "offline", "logout":
			return another
		}
	}
	if _, ok := c["cnf"]; ok {
		return "The token is bound to a key of its client (DPoP or mutual TLS), which this server does not check."
	}
	return ""
}

// mediaType normalizes a typ for comparison (RFC 7515 section 4.1.9).
func mediaType(typ string) string {
	return strings.TrimPrefix(strings.ToLower(typ), "application/")
}

// scopes returns our scopes for the scopes of the token.
func (v *Verifier) scopes(c claims) []space.Scope {
	has := map[string]bool{}
	for _, name := range v.o.ScopeClaims {
		value, _ := c.lookup(name)
		for _, s := range words(value) {
			has[s] = true
		}
	}
	mapped := func(names []string) bool { return slices.ContainsFunc(names, func(s string) bool { return has[s] }) }
	var out []space.Scope
	if mapped(v.o.ReadScopes) {
		out = append(out, space.ScopeRead)
	}
	if mapped(v.o.WriteScopes) {
		out = append(out, space.ScopeWrite)
	}
	if len(out) == 0 {
		for _, s := range v.o.DefaultScopes {
			out = append(out, space.Scope(s))
		}
	}
	return out
}
