package auth

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"hash/crc32"
	"log/slog"
	"strings"

	"satchel/internal/fault"
)

// Kind is what a Secret is good for. It begins the secret, so that one kind is
// never taken for another, and so that people and secret scanners know what they
// found.
type Kind string

// The kinds.
const (
	KindKey        Kind = "satchel_"    // an API key
	KindAccess     Kind = "satchel_at_" // an OAuth access token
	KindRefresh    Kind = "satchel_rt_" // an OAuth refresh token
	KindCode       Kind = "satchel_ac_" // an OAuth authorization code
	KindSession    Kind = "satchel_ss_" // a browser's session
	KindFlow       Kind = "satchel_fl_" // a sign-in that is under way
	KindLogin      Kind = "satchel_ll_" // a one-time sign-in link
	KindInvitation Kind = "satchel_iv_" // an invitation
)

const (
	secretBytes   = 32
	secretChars   = 43 // of base64url
	checksumChars = 6
	// maxSecretBytes bounds what a secret carries.
	maxSecretBytes = 128
)

// Secret is a text that gives its bearer a right: an API key, a token, a link. Its form is
// the kind, the bytes in unpadded base64url, and their CRC-32 in the same encoding. The
// checksum lets a scanner recognize real secrets without asking the server.
//
// It prints and logs as its prefix alone, even inside another struct: fmt calls no method
// of an unexported field, but does not follow a pointer there.
type Secret struct{ secret *string }

func makeSecret(s string) Secret { return Secret{&s} }

// NewSecret returns a fresh secret of 256 random bits.
func NewSecret(k Kind) Secret {
	var b [secretBytes]byte
	rand.Read(b[:]) // never fails: crypto/rand.Read panics where the system has no entropy
	return SecretOf(k, b[:])
}

// SecretOf returns the secret that carries b, which nobody can guess: at most
// 128 bytes.
func SecretOf(k Kind, b []byte) Secret {
	body := base64.RawURLEncoding.EncodeToString(b)
	return makeSecret(string(k) + body + checksum(body))
}

// ParseSecret checks that s has the form of a secret of the kind and returns the
// bytes that it carries. The error is a fault.Unauthenticated without s.
func ParseSecret(k Kind, s string) (Secret, []byte, error) {
	body, ok := strings.CutPrefix(s, string(k))
	if n := len(body) - checksumChars; ok && n > 0 && n <= base64.RawURLEncoding.EncodedLen(maxSecretBytes) && checksum(body[:n]) == body[n:] {
		// Strict: of the last character's bits that carry nothing only one
		// spelling is a secret. Line ends, which the decoder skips, have no place.
		if b, err := base64.RawURLEncoding.Strict().DecodeString(body[:n]); err == nil && !strings.ContainsAny(body, "\r\n") {
			return makeSecret(s), b, nil
		}
	}
	return Secret{}, nil, fault.New(fault.Unauthenticated, "The token is malformed.")
}

func checksum(body string) string {
	var sum [4]byte
	binary.BigEndian.PutUint32(sum[:], crc32.ChecksumIEEE([]byte(body)))
	return base64.RawURLEncoding.EncodeToString(sum[:])
}

// Reveal returns the secret, to show it to its owner once; "" of a zero Secret.
func (s Secret) Reveal() string {
	if s.secret == nil {
		return ""
	}
	return *s.secret
}

// Hash is what the server stores of the secret. Plain SHA-256 is enough,
// because 256 random bits cannot be guessed from it.
func (s Secret) Hash() [sha256.Size]byte { return sha256.Sum256([]byte(s.Reveal())) }

// String, GoString, LogValue and MarshalText keep the secret out of everything
// that prints.
func (s Secret) String() string { return string(KindKey) + "…" }

// GoString is String.
func (s Secret) GoString() string { return s.String() }

// LogValue is String.
func (s Secret) LogValue() slog.Value { return slog.StringValue(s.String()) }

// MarshalText is String.
func (s Secret) MarshalText() ([]byte, error) { return []byte(s.String()), nil }
