package auth

import (
	"context"
	"errors"
	"net/http"
	"strings"

	"satchel/internal/fault"
)

// MaxBearerBytes bounds the size of a bearer token. Signed tokens of large organizations
// can have a few thousand bytes.
const MaxBearerBytes = 16 << 10

var (
	errNoToken   = errors.New("no bearer token")
	errMalformed = errors.New("malformed authorization header")
	errScope     = errors.New("insufficient scope")
)

// bearer returns the token from `Bearer 1*SP b64token` (RFC 6750 section 2.1). It ignores the
// case of the scheme, and requires exactly one header. A token in the query never counts: RFC
// 6750 section 2.3 allows it, but it ends up in logs. A token in a form does not count either.
func bearer(headers []string) (string, error) {
	if len(headers) == 0 {
		return "", errNoToken
	}
	if len(headers) > 1 {
		return "", errMalformed
	}
	scheme, token, _ := strings.Cut(headers[0], " ")
	if !strings.EqualFold(scheme, "Bearer") {
		if scheme == "" || !isToken68(scheme) {
			return "", errMalformed
		}
		return "", errNoToken // another scheme
	}
	token = strings.TrimLeft(token, " ")
	if len(token) > MaxBearerBytes || !isToken68(token) {
		return "", errMalformed
	}
	return token, nil
}

// isToken68 reports whether s has the form 1*( ALPHA / DIGIT / "-" / "." / "_" / "~" / "+"
// / "/" ) *"=".
func isToken68(s string) bool {
	s = strings.TrimRight(s, "=")
	for i := range len(s) {
		c := s[i]
		if !(c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || strings.IndexByte("-._~+/", c) >= 0) {
			return false
		}
	}
	return s != ""
}

// Authenticate returns the principal that makes a request. If the caller is at fault, the
// error is a fault.Unauthenticated, and ErrorCode returns its RFC 6750 code.
func Authenticate(ctx context.Context, r *http.Request, v Verifier) (Principal, error) {
	token, err := bearer(r.Header.Values("Authorization"))
	switch {
	case errors.Is(err, errNoToken):
		return Principal{}, fault.Wrap(err, fault.Unauthenticated, "This needs a token: send the header Authorization: Bearer TOKEN.")
	case err != nil:
		return Principal{}, fault.Wrap(err, fault.Unauthenticated, "The Authorization header is malformed: send one, of the form Bearer TOKEN.")
	}
	return v.Verify(ctx, token)
}

// ErrorCode returns the code of RFC 6750 section 3.1 for an error of Authenticate, of a
// Verifier or of Principal.Require. The codes are invalid_request (a malformed header),
// invalid_token and insufficient_scope. It returns "" for any other error, and for a
// request without a token, because the challenge must then carry no error.
func ErrorCode(err error) string {
	switch {
	case errors.Is(err, errNoToken):
		return ""
	case errors.Is(err, errMalformed):
		return "invalid_request"
	case errors.Is(err, errScope):
		return "insufficient_scope"
	case fault.CodeOf(err) == fault.Unauthenticated:
		return "invalid_token"
	}
	return ""
}

// Challenge is the WWW-Authenticate header of a refusal (RFC 6750 section 3, RFC 9728
// section 5.1). Header omits empty fields.
type Challenge struct {
	Realm string
	// Error is a code of RFC 6750. It is empty if the request had no token.
	Error       string
	Description string
	// Scope lists the scopes that the request needs, separated by spaces.
	Scope string
	// ResourceMetadata is the absolute URL of the protected resource metadata.
	ResourceMetadata string
}

// ChallengeOf returns the challenge that answers err. The caller sets Realm, Scope and
// ResourceMetadata.
func ChallengeOf(err error) Challenge {
	c := Challenge{Error: ErrorCode(err)}
	if c.Error != "" {
		c.Description = fault.PublicOf(err)
	}
	return c
}

// Header returns the value of the header. It replaces bytes that RFC 6750 does not allow in
// a parameter, such as line ends. So no field can add a parameter or a header.
func (c Challenge) Header() string {
	var b strings.Builder
	b.WriteString("Bearer")
	sep := " "
	for _, p := range [...]struct{ name, value string }{
		{"realm", c.Realm},
		{"error", c.Error},
		{"error_description", c.Description},
		{"scope", c.Scope},
		{"resource_metadata", c.ResourceMetadata},
	} {
		if p.value == "" {
			continue
		}
		b.WriteString(sep)
		sep = ", "
		b.WriteString(p.name)
		b.WriteString(`="`)
		for _, r := range p.value {
			switch {
			case r == '"':
				b.WriteByte('\'')
			case r < 0x20 || r > 0x7e || r == '\\':
				b.WriteByte('?')
			default:
				b.WriteRune(r)
			}
		}
		b.WriteByte('"')
	}
	return b.String()
}
