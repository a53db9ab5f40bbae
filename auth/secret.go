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

// Kind is what a Secret is used for. Each secret begins with its kind. So no kind can be
// used in place of another, and people and secret scanners recognize what they found.
type Kind string

// The kinds of secrets.
const (
	KindKey        Kind = "satchel_"    // an API key
	KindAccess     Kind = "satchel_at_" // an OAuth access token
	KindRefresh    Kind = "satchel_rt_" // an OAuth refresh token
	KindCode       Kind = "satchel_ac_" // an OAuth authorization code
	KindSession    Kind = "satchel_ss_" // a browser's session
	KindFlow       Kind = "satchel_fl_" // a sign-in in progress
	KindLogin      Kind = "satchel_ll_" // a one-time sign-in link
	KindInvitation Kind = "satchel_iv_" // an invitation
)

const (
	secretBytes   = 32
	secretChars   = 43 // characters of base64url for secretBytes
	checksumChars = 6
	// maxSecretBytes bounds the bytes in a secret.
	maxSecretBytes = 128
)

// Secret is a text that gives its bearer a right, such as an API key, a token or a link. It
// consists of the kind, the bytes in unpadded base64url, and their CRC-32 in the same
// encoding. The checksum lets a scanner recognize real secrets without asking the server.
//
// A Secret prints and logs as "satchel_…". If a Secret is in an unexported field of another struct,
// fmt does not call its methods. fmt then prints only an address, because it does not follow nested
// pointers.
type Secret struct{ secret *string }

func makeSecret(s string) Secret { return Secret{&s} }

// NewSecret returns a fresh secret of 256 random bits.
func NewSecret(k Kind) Secret {
	var b [secretBytes]byte
	rand.Read(b[:]) // cannot fail: crypto/rand.Read panics if the system has no entropy
	return SecretOf(k, b[:])
}

// SecretOf returns the secret that holds b, at most 128 bytes. Nobody must be able to guess b.
func SecretOf(k Kind, b []byte) Secret {
	body := base64.RawURLEncoding.EncodeToString(b)
	return makeSecret(string(k) + body + checksum(body))
}

// ParseSecret checks that s has the form of a secret of the kind, and returns its bytes.
// The error is a fault.Unauthenticated that does not contain s.
func ParseSecret(k Kind, s string) (Secret, []byte, error) {
	body, ok := strings.CutPrefix(s, string(k))
	if n := len(body) - checksumChars; ok && n > 0 && n <= base64.RawURLEncoding.EncodedLen(maxSecretBytes) && checksum(body[:n]) == body[n:] {
		// Strict accepts one spelling only: the unused bits of the last character must be
		// zero. The decoder would skip line ends, so they are refused first.
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

// Reveal returns the secret, so that its owner can see it once. It returns "" for a zero
// Secret.
func (s Secret) Reveal() string {
	if s.secret == nil {
		return ""
	}
	return *s.secret
}

// Hash returns the hash that the server stores. Plain SHA-256 is enough, because nobody can
// guess 256 random bits.
func (s Secret) Hash() [sha256.Size]byte { return sha256.Sum256([]byte(s.Reveal())) }

// String returns "satchel_…". Like GoString, LogValue and MarshalText, it keeps the secret
// out of all output.
func (s Secret) String() string { return string(KindKey) + "…" }

// GoString returns the same as String.
func (s Secret) GoString() string { return s.String() }

// LogValue returns the same as String.
func (s Secret) LogValue() slog.Value { return slog.StringValue(s.String()) }

// MarshalText returns the same as String.
func (s Secret) MarshalText() ([]byte, error) { return []byte(s.String()), nil }
