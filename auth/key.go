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

// KeyPrefix begins every API key, so that people and secret scanners know one.
// The whole form is ^satchel_[A-Za-z0-9_-]{49}$: 32 random bytes and their
// CRC-32 checksum, each in unpadded base64url. By the checksum a scanner tells
// a key from text that only looks like one, without asking the server.
const KeyPrefix = "satchel_"

const (
	keySecretBytes = 32
	keySecretChars = 43 // of base64url
	keyChars       = len(KeyPrefix) + keySecretChars + 6
)

// Key is the secret of an API key. It prints and logs as its prefix alone, also
// from inside another struct: fmt calls no method of a field that is not
// exported, but it does not follow a pointer there.
type Key struct{ secret *string }

func makeKey(s string) Key { return Key{&s} }

// NewKey returns a fresh key of 256 random bits.
func NewKey() Key {
	var b [keySecretBytes]byte
	rand.Read(b[:]) // never fails: crypto/rand.Read panics where the system has no entropy
	body := base64.RawURLEncoding.EncodeToString(b[:])
	return makeKey(KeyPrefix + body + keyChecksum(body))
}

// ParseKey checks that s has the form of a key, so that a token that cannot be
// one costs no look-up. The error is a fault.Unauthenticated without s.
func ParseKey(s string) (Key, error) {
	body, ok := strings.CutPrefix(s, KeyPrefix)
	if ok && len(s) == keyChars && keyChecksum(body[:keySecretChars]) == body[keySecretChars:] {
		// Strict: of the last character's bits that carry nothing only one
		// spelling is a key.
		if _, err := base64.RawURLEncoding.Strict().DecodeString(body[:keySecretChars]); err == nil {
			return makeKey(s), nil
		}
	}
	return Key{}, fault.New(fault.Unauthenticated, "The token is not an API key of Satchel: one begins with %s and has %d characters.", KeyPrefix, keyChars)
}

func keyChecksum(body string) string {
	var sum [4]byte
	binary.BigEndian.PutUint32(sum[:], crc32.ChecksumIEEE([]byte(body)))
	return base64.RawURLEncoding.EncodeToString(sum[:])
}

// Reveal returns the secret, to show it to its owner once; "" of a zero Key.
func (k Key) Reveal() string {
	if k.secret == nil {
		return ""
	}
	return *k.secret
}

// Hash is what the server stores of the key. Plain SHA-256 is enough, because
// 256 random bits cannot be guessed from it.
func (k Key) Hash() [sha256.Size]byte { return sha256.Sum256([]byte(k.Reveal())) }

// String, GoString, LogValue and MarshalText keep the secret out of everything
// that prints.
func (k Key) String() string { return KeyPrefix + "…" }

// GoString is String.
func (k Key) GoString() string { return k.String() }

// LogValue is String.
func (k Key) LogValue() slog.Value { return slog.StringValue(k.String()) }

// MarshalText is String.
func (k Key) MarshalText() ([]byte, error) { return []byte(k.String()), nil }
