package secretscan

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"slices"
)

const (
	maxJWT    = 8 << 10 // bytes: longer than fits in a request's header
	minJWTSig = 43      // base64 digits of the shortest signature, of HS256
)

// jwtPlaceholders are what examples of tokens claim, compared in lower case.
var jwtPlaceholders = [...]string{"1234567890", "1516239022", "john doe", "jane doe", "johndoe", "example", "supabase-demo"}

// jwtIssued are the claims of which whoever issues tokens sets one; tests and
// examples leave them out.
var jwtIssued = [...]string{"exp", "iat", "jti"}

// jwt tells where a signed JSON Web Token ends that begins the content; 0 where
// there is none, where it is an example, or where it is meant to be public, as
// Supabase's key for everyone is.
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

// signedHeader tells whether a token's first part names how it is signed.
func signedHeader(part []byte) bool {
	text, err := base64.RawURLEncoding.DecodeString(string(part))
	if err != nil {
		return false
	}
	var h struct{ Alg string }
	return json.Unmarshal(text, &h) == nil && h.Alg != ""
}
