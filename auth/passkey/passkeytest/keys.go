package passkeytest

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"fmt"
	"math/big"
)

func generate(algorithm int64) crypto.Signer {
	var k crypto.Signer
	var err error
	switch algorithm {
	case ES256:
		k, err = ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	case EdDSA:
		_, k, err = ed25519.GenerateKey(rand.Reader)
	case RS256:
		k, err = rsa.GenerateKey(rand.Reader, 2048)
	default:
		err = fmt.Errorf("passkeytest: no algorithm %d", algorithm)
	}
	if err != nil {
		panic(err)
	}
	return k
}

func sign(algorithm int64, k crypto.Signer, message []byte) []byte {
	digest, hash := message, crypto.Hash(0)
	if algorithm != EdDSA {
		sum := sha256.Sum256(message)
		digest, hash = sum[:], crypto.SHA256
	}
	s, err := k.Sign(rand.Reader, digest, hash)
	if err != nil {
		panic(err)
	}
	return s
}

// publicKey returns the COSE key (RFC 9053 section 7).
func publicKey(algorithm int64, k crypto.PublicKey) []byte {
	switch k := k.(type) {
	case *ecdsa.PublicKey:
		point, err := k.Bytes() // the byte 4, then x and y
		if err != nil {
			panic(err)
		}
		return cborMap(cborInt(1), cborInt(2), cborInt(3), cborInt(algorithm), cborInt(-1), cborInt(1), cborInt(-2), cborBytes(point[1:33]), cborInt(-3), cborBytes(point[33:]))
	case ed25519.PublicKey:
		return cborMap(cborInt(1), cborInt(1), cborInt(3), cborInt(algorithm), cborInt(-1), cborInt(6), cborInt(-2), cborBytes(k))
	case *rsa.PublicKey:
		return cborMap(cborInt(1), cborInt(3), cborInt(3), cborInt(algorithm), cborInt(-1), cborBytes(k.N.Bytes()), cborInt(-2), cborBytes(big.NewInt(int64(k.E)).Bytes()))
	}
	panic(fmt.Sprintf("passkeytest: no COSE key of a %T", k))
}

// The functions below write CBOR (RFC 8949), as far as an authenticator needs it.

func cborHead(major byte, n uint64) []byte {
	switch {
	case n < 24:
		return []byte{major<<5 | byte(n)}
	case n < 1<<8:
		return []byte{major<<5 | 24, byte(n)}
	case n < 1<<16:
		return []byte{major<<5 | 25, byte(n >> 8), byte(n)}
	}
	panic("passkeytest: too long for its CBOR")
}

func cborInt(n int64) []byte {
	if n < 0 {
		return cborHead(1, uint64(-1-n))
	}
	return cborHead(0, uint64(n))
}

func cborBytes(b []byte) []byte { return append(cborHead(2, uint64(len(b))), b...) }
func cborText(s string) []byte  { return append(cborHead(3, uint64(len(s))), s...) }

// cborMap returns a map from alternating keys and values.
func cborMap(items ...[]byte) []byte {
	b := cborHead(5, uint64(len(items)/2))
	for _, i := range items {
		b = append(b, i...)
	}
	return b
}
