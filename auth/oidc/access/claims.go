package access

import (
	"encoding/json"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"
)

// Limits on values from a token in bytes.
const (
	maxSubject = 255 // OpenID Connect Core section 2
	maxClient  = 512 // ids may be URLs
	maxName    = 200
	maxEmail   = 254 // RFC 5321 section 4.5.3.1.3
)

// claims are the claims of a token with a verified signature.
type claims map[string]any

// lookup returns the claim with the literal name, such as https://example.com/email. If there is
// none, a dot in the name may be a step into an object, as in realm_access.roles.
func (c claims) lookup(name string) (any, bool) {
	if name == "" { // not configured
		return nil, false
	}
	if v, ok := c[name]; ok {
		return v, true
	}
	for i := range len(name) {
		if name[i] != '.' {
			continue
		}
		if inner, ok := c[name[:i]].(map[string]any); ok {
			if v, ok := claims(inner).lookup(name[i+1:]); ok {
				return v, true
			}
		}
	}
	return nil, false
}

// text returns a claim that identifies something. It returns false if the claim is empty, longer
// than limit, or has control characters or U+FFFD. All lone surrogates in JSON become U+FFFD, so
// different values would look the same.
func text(v any, limit int) (string, bool) {
	s, ok := v.(string)
	if !ok || s == "" || len(s) > limit {
		return "", false
	}
	for _, r := range s {
		if unicode.IsControl(r) || r == unicode.ReplacementChar {
			return "", false
		}
	}
	return s, true
}

// words returns the words of a text, or the texts of a list.
func words(v any) []string {
	switch v := v.(type) {
	case string:
		return strings.Fields(v)
	case []any:
		var out []string
		for _, e := range v {
			if s, ok := e.(string); ok {
				out = append(out, s)
			}
		}
		return out
	}
	return nil
}

// audience reports whether aud, a text or a list (RFC 7519 section 4.1.3), contains one of
// our audiences.
func (c claims) audience(ours []string) bool {
	switch v := c["aud"].(type) {
	case string:
		return slices.Contains(ours, v)
	case []any:
		return slices.ContainsFunc(v, func(e any) bool { s, ok := e.(string); return ok && slices.Contains(ours, s) })
	}
	return false
}

// lifetime returns the reason why a token is not valid now. It returns "" for a valid one
// (RFC 7519 sections 4.1.4 to 4.1.6).
func (c claims) lifetime(now time.Time, skew time.Duration) string {
	if exp, ok := seconds(c["exp"]); !ok {
		return "The token does not say when it expires."
	} else if !now.Before(exp.Add(skew)) {
		return "The token has expired."
	}
	for _, name := range []string{"nbf", "iat"} {
		v, there := c[name]
		if !there {
			continue
		}
		if from, ok := seconds(v); !ok || now.Before(from.Add(-skew)) {
			return "The token is not valid yet: the clocks of its issuer and this server differ, or it was made for later."
		}
	}
	return ""
}

// expires returns the time at which lifetime no longer accepts the token.
func (c claims) expires(skew time.Duration) time.Time {
	exp, _ := seconds(c["exp"])
	return exp.Add(skew)
}

// seconds returns the time of a NumericDate. It rejects years after 9999, which overflow
// elsewhere.
func seconds(v any) (time.Time, bool) {
	n, ok := v.(json.Number)
	if !ok {
		return time.Time{}, false
	}
	f, err := n.Float64()
	if err != nil || f < 0 || f > 253402300799 { // the end of the year 9999
		return time.Time{}, false
	}
	whole, fraction := math.Modf(f)
	return time.Unix(int64(whole), int64(fraction*1e9)), true
}

// client returns the first claim that names the client, or "" if there is none.
func (c claims) client(names []string) string {
	for _, name := range names {
		v, _ := c.lookup(name)
		if s, ok := text(v, maxClient); ok {
			return s
		}
	}
	return ""
}

// email returns the person's address if the issuer has verified it. If verified is empty, all
// addresses count as verified.
func (c claims) email(claim, verified string) string {
	if claim == "" {
		return ""
	}
	if verified != "" {
		v, _ := c.lookup(verified)
		if b, ok := v.(bool); !(ok && b) && v != "true" {
			return ""
		}
	}
	v, _ := c.lookup(claim)
	s, ok := text(v, maxEmail)
	local, domain, _ := strings.Cut(s, "@")
	if !ok || local == "" || domain == "" || strings.Contains(domain, "@") || strings.ContainsAny(s, " \t<>\",;") {
		return ""
	}
	return s
}

// name returns a claim to show to people, on one line and limited in length.
func (c claims) name(claim string) string {
	v, _ := c.lookup(claim)
	s, _ := v.(string)
	s = strings.Join(strings.FieldsFunc(s, func(r rune) bool { return unicode.IsSpace(r) || unicode.IsControl(r) }), " ")
	if len(s) <= maxName {
		return s
	}
	end := maxName
	for !utf8.RuneStart(s[end]) {
		end--
	}
	return s[:end]
}

// required is a claim that must have a given value.
type required struct{ name, value string }

func parseRequired(pairs []string) []required {
	var out []required
	for _, p := range pairs {
		name, value, _ := strings.Cut(p, "=")
		out = append(out, required{name, value})
	}
	return out
}

// holds reports whether the claim is the value, or a list that contains the value.
func (r required) holds(c claims) bool {
	v, ok := c.lookup(r.name)
	if !ok {
		return false
	}
	if l, ok := v.([]any); ok {
		return slices.ContainsFunc(l, r.is)
	}
	return r.is(v)
}

func (r required) is(v any) bool {
	switch v := v.(type) {
	case string:
		return v == r.value
	case bool:
		return strconv.FormatBool(v) == r.value
	case json.Number:
		return v.String() == r.value
	}
	return false
}
