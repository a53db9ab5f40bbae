package auth

import "satchel/internal/fault"

// KeyPrefix begins every API key, so that people and secret scanners recognize it. A whole
// key matches ^satchel_[A-Za-z0-9_-]{49}$: it is a [Secret] of 32 random bytes.
const KeyPrefix = string(KindKey)

// StdioKey begins the names of the keys that "satchel stdio" creates for its runs. The name
// of the machine follows.
const StdioKey = "satchel stdio on "

// NewKey returns a fresh API key of 256 random bits.
func NewKey() Secret { return NewSecret(KindKey) }

// ParseKey checks that s has the form of an API key, so that other tokens cost no look-up.
// The error is a fault.Unauthenticated that does not contain s.
func ParseKey(s string) (Secret, error) {
	key, b, err := ParseSecret(KindKey, s)
	if err != nil || len(b) != secretBytes {
		return Secret{}, fault.New(fault.Unauthenticated, "The key is not a Satchel key. Satchel keys begin with %s and have %d characters.",
			KeyPrefix, len(KeyPrefix)+secretChars+checksumChars)
	}
	return key, nil
}
