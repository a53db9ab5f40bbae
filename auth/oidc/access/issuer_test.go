package access_test

import (
	"bytes"
	"context"
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"encoding/base64"
	"encoding/json"
	"errors"
	"io"
	"maps"
	"net/http"
	"sync"
	"testing"
	"time"

	"github.com/go-jose/go-jose/v4"
	"github.com/golang-jwt/jwt/v5"
	"go.uber.org/goleak"

	"satchel/auth"
	"satchel/auth/oidc/access"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const (
	issuerURL = "https://login.example.com/realms/acme"
	resource  = "https://satchel.example.com/mcp"
)

// signer is a key pair of an issuer.
type signer struct {
	kid, alg string
	private  crypto.Signer
}

// The keys are created once, because RSA keys take long.
var (
	ec      = sync.OnceValue(func() signer { return newEC("ec-1") })
	ecOther = sync.OnceValue(func() signer { return newEC("ec-2") })
	rsaKey  = sync.OnceValue(func() signer { return signer{"rsa-1", "RS256", newRSA(2048)} })
	weakRSA = sync.OnceValue(func() signer { return signer{"rsa-weak", "RS256", newRSA(1024)} })
	edKey   = sync.OnceValue(func() signer {
		_, k, err := ed25519.GenerateKey(rand.Reader)
		if err != nil {
			panic(err)
		}
		return signer{"ed-1", "EdDSA", k}
	})
)

func newEC(kid string) signer {
	k, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		panic(err)
	}
	return signer{kid, "ES256", k}
}

func newRSA(bits int) *rsa.PrivateKey {
	k, err := rsa.GenerateKey(rand.Reader, bits)
	if err != nil {
		panic(err)
	}
	return k
}

// jwk returns the public key in the issuer's form. more adds or replaces members.
func (s signer) jwk(more ...map[string]any) map[string]any {
	b, err := jose.JSONWebKey{Key: s.private.Public(), KeyID: s.kid, Use: "sig"}.MarshalJSON()
	if err != nil {
		panic(err)
	}
	var m map[string]any
	if err := json.Unmarshal(b, &m); err != nil {
		panic(err)
	}
	for _, o := range more {
		for k, v := range o {
			if m[k] = v; v == nil {
				delete(m, k)
			}
		}
	}
	return m
}

func b64(b []byte) string { return base64.RawURLEncoding.EncodeToString(b) }

// raw signs header and payload as given.
func (s signer) raw(header, payload string) string {
	text := b64([]byte(header)) + "." + b64([]byte(payload))
	sig, err := jwt.GetSigningMethod(s.alg).Sign(text, s.private)
	if err != nil {
		panic(err)
	}
	return text + "." + b64(sig)
}

type obj = map[string]any

func toJSON(v any) string {
	b, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	return string(b)
}

// token signs claims, with the header of the issuer's access tokens. Members that are nil
// are omitted.
func (s signer) token(claims obj, header ...obj) string {
	h := obj{"alg": s.alg, "kid": s.kid, "typ": "at+jwt"}
	for _, o := range header {
		maps.Copy(h, o)
	}
	maps.DeleteFunc(h, func(_ string, v any) bool { return v == nil })
	return s.raw(toJSON(h), toJSON(claims))
}

// good returns the claims of a valid token, with changes.
func good(now time.Time, change ...obj) obj {
	c := obj{
		"iss": issuerURL, "sub": "person-1", "aud": resource, "client_id": "client-1", "scope": "openid read write",
		"iat": now.Unix(), "exp": now.Add(time.Hour).Unix(),
		"email": "ada@example.com", "email_verified": true, "name": "Ada Lovelace",
	}
	for _, o := range change {
		maps.Copy(c, o)
	}
	maps.DeleteFunc(c, func(_ string, v any) bool { return v == nil })
	return c
}

// issuer answers in memory, so that it works with synctest's clock.
type issuer struct {
	url string

	mu      sync.Mutex
	keys    []map[string]any
	down    bool
	hang    bool              // answers only when the request ends
	answers map[string]string // by path; replaces the normal answer
	asked   map[string]int    // by path
	gate    chan struct{}     // requests of keys wait for it
}

func newIssuer(keys ...signer) *issuer {
	is := &issuer{url: issuerURL, asked: map[string]int{}, answers: map[string]string{}}
	is.publish(keys...)
	return is
}

func (is *issuer) publish(keys ...signer) {
	is.mu.Lock()
	defer is.mu.Unlock()
	is.keys = nil
	for _, k := range keys {
		is.keys = append(is.keys, k.jwk())
	}
}

func (is *issuer) set(f func(*issuer)) {
	is.mu.Lock()
	defer is.mu.Unlock()
	f(is)
}

// fetched returns how often the keys were requested.
func (is *issuer) fetched() int {
	is.mu.Lock()
	defer is.mu.Unlock()
	return is.asked["/keys"]
}

// requests returns how often each path was requested.
func (is *issuer) requests() map[string]int {
	is.mu.Lock()
	defer is.mu.Unlock()
	return maps.Clone(is.asked)
}

func (is *issuer) RoundTrip(r *http.Request) (*http.Response, error) {
	is.mu.Lock()
	is.asked[r.URL.Path]++
	down, hang, gate := is.down, is.hang, is.gate
	body, known := is.answers[r.URL.Path]
	switch {
	case known:
	case r.URL.Path == "/realms/acme/.well-known/openid-configuration":
		body, known = toJSON(obj{"issuer": is.url, "jwks_uri": "https://login.example.com/keys"}), true
	case r.URL.Path == "/keys":
		body, known = toJSON(obj{"keys": is.keys}), true
	}
	is.mu.Unlock()
	if gate != nil && r.URL.Path == "/keys" {
		<-gate
	}
	if hang {
		<-r.Context().Done()
		return nil, r.Context().Err()
	}
	if down {
		return nil, errors.New("connection refused")
	}
	status := http.StatusOK
	if !known || body == "" {
		status = http.StatusNotFound
	}
	return &http.Response{StatusCode: status, Header: http.Header{}, Body: io.NopCloser(bytes.NewReader([]byte(body))), Request: r}, nil
}

// options returns the defaults of the configuration, with changes.
func (is *issuer) options(change ...func(*access.Options)) access.Options {
	o := access.Options{
		Issuer: is.url, Resource: resource,
		Types: []string{"at+jwt", "JWT"}, ScopeClaims: []string{"scope", "scp"},
		ReadScopes: []string{"read"}, WriteScopes: []string{"write"},
		EmailClaim: "email", VerifiedClaim: "email_verified", NameClaim: "name",
		ClockSkew: time.Minute, KeysMaxAge: 15 * time.Minute, OutageGrace: 24 * time.Hour,
		HTTP: &http.Client{Transport: is},
	}
	for _, f := range change {
		f(&o)
	}
	return o
}

func (is *issuer) verifier(t testing.TB, change ...func(*access.Options)) *access.Verifier {
	t.Helper()
	v, err := access.New(is.options(change...))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(v.Close)
	return v
}

func verify(v *access.Verifier, token string) (auth.External, error) {
	e, _, err := v.Verify(context.Background(), token)
	return e, err
}
