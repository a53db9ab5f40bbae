package passkey

import (
	"encoding/json"
	"fmt"

	"github.com/go-webauthn/webauthn/protocol"
	"github.com/go-webauthn/webauthn/webauthn"
)

// record is the stored form of a passkey. It does not depend on go-webauthn, so that stored
// passkeys stay readable.
type record struct {
	ID         []byte   `json:"id"`
	PublicKey  []byte   `json:"publicKey"` // in COSE format
	AAGUID     []byte   `json:"aaguid,omitempty"`
	Counter    uint32   `json:"counter,omitempty"`
	Transports []string `json:"transports,omitempty"`
	// BackupEligible reports whether the passkey can be synced between devices. It never
	// changes. BackedUp reports whether the passkey is synced (WebAuthn Level 3 section
	// 6.1.3).
	BackupEligible bool `json:"backupEligible,omitempty"`
	BackedUp       bool `json:"backedUp,omitempty"`
}

// maxTransports is the maximum number of a passkey's transports to store. Seven are defined.
const maxTransports = 10

func encode(c webauthn.Credential) ([]byte, error) {
	r := record{
		ID: c.ID, PublicKey: c.PublicKey, AAGUID: c.Authenticator.AAGUID, Counter: c.Authenticator.SignCount,
		BackupEligible: c.Flags.BackupEligible, BackedUp: c.Flags.BackupState,
	}
	for _, t := range c.Transport {
		if len(r.Transports) < maxTransports && len(t) <= 32 {
			r.Transports = append(r.Transports, string(t))
		}
	}
	b, err := json.Marshal(r)
	if err != nil {
		return nil, fmt.Errorf("passkey: %w", err)
	}
	return b, nil
}

func decode(b []byte) (webauthn.Credential, error) {
	var r record
	if err := json.Unmarshal(b, &r); err != nil {
		return webauthn.Credential{}, fmt.Errorf("passkey: a stored credential: %w", err)
	}
	c := webauthn.Credential{
		ID: r.ID, PublicKey: r.PublicKey,
		Flags:         webauthn.CredentialFlags{UserPresent: true, UserVerified: true, BackupEligible: r.BackupEligible, BackupState: r.BackedUp},
		Authenticator: webauthn.Authenticator{AAGUID: r.AAGUID, SignCount: r.Counter},
	}
	for _, t := range r.Transports {
		c.Transport = append(c.Transport, protocol.AuthenticatorTransport(t))
	}
	return c, nil
}
