package oidctest

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/hmac"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"math/big"
	"sync"
)

// keys are the keys of one server, one of each kind. Their ids are unique: another server, or this
// server after Rotate, has other ids.
type keys struct {
	id string
	ec *ecdsa.PrivateKey
	ed ed25519.PrivateKey

	mu sync.Mutex
	rs *rsa.PrivateKey // created when first used, because the creation takes long
}

func (k *keys) rsa() *rsa.PrivateKey {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.rs == nil {
		var err error
		if k.rs, err = rsa.GenerateKey(rand.Reader, 2048); err != nil {
			panic(err)
		}
	}
	return k.rs
}

func newKeys() *keys {
	k := &keys{id: fresh()}
	var err error
	if k.ec, err = ecdsa.GenerateKey(elliptic.P256(), rand.Reader); err != nil {
		panic(err)
	}
	if _, k.ed, err = ed25519.GenerateKey(rand.Reader); err != nil {
		panic(err)
	}
	return k
}

func (k *keys) public() []map[string]string {
	point, err := k.ec.PublicKey.Bytes() // the byte 4, then x and y
	if err != nil {
		panic(err)
	}
	set := []map[string]string{
		{"kty": "EC", "kid": k.id + "-ES256", "use": "sig", "alg": "ES256", "crv": "P-256", "x": base64.RawURLEncoding.EncodeToString(point[1:33]), "y": base64.RawURLEncoding.EncodeToString(point[33:])},
		{"kty": "OKP", "kid": k.id + "-EdDSA", "use": "sig", "alg": "EdDSA", "crv": "Ed25519", "x": base64.RawURLEncoding.EncodeToString(k.ed.Public().(ed25519.PublicKey))},
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.rs != nil {
		set = append(set, map[string]string{
			"kty": "RSA", "kid": k.id + "-RSA", "use": "sig",
			"n": base64.RawURLEncoding.EncodeToString(k.rs.N.Bytes()), "e": base64.RawURLEncoding.EncodeToString(big.NewInt(int64(k.rs.E)).Bytes()),
		})
	}
	return set
}

// sign returns the JWT. The key for HS256 is the client's secret, as in OpenID Connect Core
// 1.0 section 10.1.
func (k *keys) sign(alg, secret string, claims map[string]any, edit func(map[string]any)) string {
	kid := map[string]string{"ES256": "-ES256", "EdDSA": "-EdDSA", "RS256": "-RSA", "PS256": "-RSA"}[alg]
	header := map[string]any{"alg": alg, "typ": "JWT"}
	if kid != "" {
		header["kid"] = k.id + kid
	}
	if edit != nil {
		edit(header)
	}
	input := segment(header) + "." + segment(claims)
	sum := sha256.Sum256([]byte(input))
	var sig []byte
	var err error
	switch alg {
	case "none":
	case "ES256":
		r, s, e := ecdsa.Sign(rand.Reader, k.ec, sum[:])
		if e != nil {
			panic(e)
		}
		sig = make([]byte, 64)
		r.FillBytes(sig[:32])
		s.FillBytes(sig[32:])
	case "EdDSA":
		sig = ed25519.Sign(k.ed, []byte(input))
	case "RS256":
		sig, err = rsa.SignPKCS1v15(rand.Reader, k.rsa(), crypto.SHA256, sum[:])
	case "PS256":
		sig, err = rsa.SignPSS(rand.Reader, k.rsa(), crypto.SHA256, sum[:], &rsa.PSSOptions{SaltLength: rsa.PSSSaltLengthEqualsHash})
	case "HS256":
		m := hmac.New(sha256.New, []byte(secret))
		m.Write([]byte(input))
		sig = m.Sum(nil)
	default:
		panic(fmt.Sprintf("oidctest: no algorithm %q", alg))
	}
	if err != nil {
		panic(err)
	}
	return input + "." + base64.RawURLEncoding.EncodeToString(sig)
}

func segment(v map[string]any) string {
	b, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	return base64.RawURLEncoding.EncodeToString(b)
}
