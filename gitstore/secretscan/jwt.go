package secretscan

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"slices"
)

const (
	maxJWT    = 8 << 10 // in bytes: a longer token does not fit in a request's header
	minJWTSig = 43      // base64 digits of the shortest signature, which is that of HS256
)

// jwtPlaceholders are values in the claims of example tokens, in lower case.
var jwtPlaceholders = [...]string{"1234567890", "1516239022", "john doe", "jane doe", "johndoe", "example", "supabase-demo"}

// jwtIssued lists claims of which a real token has at least one. Many tokens in tests and
// examples have none. The examples that have one are found by the values in jwtPlaceholders.
var jwtIssued = [...]string{"exp", "iat", "jti"}

// jwt returns the length of the signed JSON Web Token at the start of the content. It
// returns 0 if there is none, or if the token is an example or is meant to be public,
// such as Supabase's anon key.
func jwt(content []byte) int {
	header, rest, ok := bytes.Cut(content[:min(len(content), maxJWT)], []byte{'.'})
	if !ok || !signedHeader(header) {
		return 0
	}
	claims, rest, ok := bytes.Cut(rest, []byte{'.'})
	if !ok {
		return 0
	}
	sig := 0
	for sig < len(rest) && (isWord(rest[sig]) || rest[sig] == '-') {
		sig++
	}
	if sig < minJWTSig {
		return 0
	}
	text, err := base64.RawURLEncoding.DecodeString(string(claims))
	var claimed map[string]any
	if err != nil || json.Unmarshal(text, &claimed) != nil || claimed["role"] == "anon" {
		return 0
	}
	if !slices.ContainsFunc(jwtIssued[:], func(c string) bool { _, ok := claimed[c]; return ok }) {
		return 0
	}
	low := bytes.ToLower(text)
	if slices.ContainsFunc(jwtPlaceholders[:], func(p string) bool { return bytes.Contains(low, []byte(p)) }) {
		return 0
	}
	return len(header) + 1 + len(claims) + 1 + sig
}

// signedHeader reports whether the first part of a token names a signature algorithm.
func signedHeader(part []byte) bool {
	text, err := base64.RawURLEncoding.DecodeString(string(part))
	if err != nil {
		return false
	}
	var h struct{ Alg string }
	return json.Unmarshal(text, &h) == nil && h.Alg != ""
}
