package auth

import "satchel/internal/fault"

// KeyPrefix begins every API key, so that people and secret scanners know one.
// The whole form is ^satchel_[A-Za-z0-9_-]{49}$: a [Secret] of 32 random bytes.
const KeyPrefix = string(KindKey)

// StdioKey begins the names of the keys that "satchel stdio" makes for its runs, before
// the name of the machine.
const StdioKey = "satchel stdio on "

// NewKey returns a fresh API key of 256 random bits.
func NewKey() Secret { return NewSecret(KindKey) }

// ParseKey checks that s has the form of an API key, so that a token that
// cannot be one costs no look-up. The error is a fault.Unauthenticated without s.
func ParseKey(s string) (Secret, error) {
	key, b, err := ParseSecret(KindKey, s)
	if err != nil || len(b) != secretBytes {
		return Secret{}, fault.New(fault.Unauthenticated, "The token is not an API key of Satchel: one begins with %s and has %d characters.",
			KeyPrefix, len(KeyPrefix)+secretChars+checksumChars)
	}
	return key, nil
}
