package space

import "time"

// SecretAllowance records that a person allows a secret in a space, because it is an example or
// is meant to be there.
type SecretAllowance struct {
	Space       SpaceID `json:"space"`
	Fingerprint string  `json:"fingerprint"`
	// Rule and Path show people where the secret was found. If both are empty, the
	// scanner takes them from the last refusal, if this process knows it. The secret is allowed
	// at every path.
	Rule string    `json:"rule"`
	Path Path      `json:"path"`
	By   string    `json:"allowed_by"` // who allowed it, as the audit log names them
	At   time.Time `json:"at"`         // zero means now
}
