package access

import (
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rsa"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"github.com/go-jose/go-jose/v4"
)

const (
	// maxKeys is the maximum number of keys in a set. Most issuers publish two to ten, and
	// Entra about twenty.
	maxKeys = 100
	// RSA keys below the minimum can be broken (NIST SP 800-131A). Above the maximum,
	// verifying a signature costs too much.
	minRSABits, maxRSABits = 2048, 8192
)

// kind is the kind of key that an algorithm needs.
type kind struct {
	family string // kty of the JWK
	curve  elliptic.Curve
}

// kindOf returns the kind of key that an algorithm needs. ok is false for the algorithm
// none, for algorithms with a shared secret, and for other spellings, because names are
// case-sensitive (RFC 7515 section 4.1.1).
func kindOf(alg string) (k kind, ok bool) {
	switch alg {
	case "ES256":
		return kind{"EC", elliptic.P256()}, true
	case "ES384":
		return kind{"EC", elliptic.P384()}, true
	case "ES512":
		return kind{"EC", elliptic.P521()}, true
	case "RS256", "RS384", "RS512", "PS256", "PS384", "PS512":
		return kind{family: "RSA"}, true
	case "EdDSA":
		return kind{family: "OKP"}, true
	}
	return kind{}, false
}

type key struct {
	id     string
	alg    string // empty if the issuer does not state it
	kind   kind
	public any // *ecdsa.PublicKey, *rsa.PublicKey or ed25519.PublicKey
}

// fits reports whether the key may verify a token with the algorithm.
func (k key) fits(alg string) bool {
	want, ok := kindOf(alg)
	if !ok || want != k.kind {
		return false
	}
	// RFC 9864 gave EdDSA with the curve Ed25519 its own name.
	return k.alg == "" || k.alg == alg || alg == "EdDSA" && k.alg == "Ed25519"
}

// parseKeys reads a JWK Set (RFC 7517 section 5). It omits unusable keys, as the RFC
// requires, and describes them in skipped. The error reports a set that is too large or has
// no usable key.
func parseKeys(body []byte) (keys []key, skipped []string, err error) {
	var set struct {
		Keys []json.RawMessage `json:"keys"`
	}
	if err := json.Unmarshal(body, &set); err != nil {
		return nil, nil, fmt.Errorf("key set: %w", err)
	}
	if len(set.Keys) > maxKeys {
		return nil, nil, fmt.Errorf("key set of %d keys: more than %d", len(set.Keys), maxKeys)
	}
	for i, raw := range set.Keys {
		k, err := parseKey(raw)
		if err != nil {
			skipped = append(skipped, fmt.Sprintf("key %d: %s", i, err))
			continue
		}
		keys = append(keys, k)
	}
	if len(keys) == 0 {
		return nil, skipped, errors.New("key set without a public key that can verify tokens")
	}
	return keys, skipped, nil
}

func parseKey(raw []byte) (key, error) {
	var meta struct {
		Kty    string   `json:"kty"`
		Use    string   `json:"use"`
		KeyOps []string `json:"key_ops"`
	}
	if err := json.Unmarshal(raw, &meta); err != nil {
		return key{}, errors.New("not a JSON Web Key")
	}
	switch {
	case meta.Kty == "oct":
		return key{}, errors.New("a shared secret")
	case meta.Use != "" && meta.Use != "sig":
		return key{}, fmt.Errorf("for %.20q, not for signatures", meta.Use)
	case meta.KeyOps != nil && !slices.Contains(meta.KeyOps, "verify"):
		return key{}, errors.New("not for verifying")
	}
	var j jose.JSONWebKey
	if err := j.UnmarshalJSON(raw); err != nil {
		return key{}, fmt.Errorf("cannot be read: %w", err)
	}
	if !j.IsPublic() { // everybody who has read the private key can sign with it
		return key{}, errors.New("a private key")
	}
	k := key{id: j.KeyID, alg: j.Algorithm, public: j.Key}
	switch p := j.Key.(type) {
	case *ecdsa.PublicKey:
		k.kind = kind{"EC", p.Curve}
	case *rsa.PublicKey:
		if bits := p.N.BitLen(); bits < minRSABits || bits > maxRSABits {
			return key{}, fmt.Errorf("RSA of %d bits", bits)
		}
		k.kind = kind{family: "RSA"}
	case ed25519.PublicKey:
		k.kind = kind{family: "OKP"}
	default:
		return key{}, errors.New("of a kind that is not used here")
	}
	return k, nil
}
