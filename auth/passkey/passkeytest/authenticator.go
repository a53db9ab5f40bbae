package passkeytest

import (
	"bytes"
	"crypto"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"sync"
)

// The flags of authenticator data (WebAuthn Level 3 section 6.1).
const (
	UserPresent    byte = 1 << 0
	UserVerified   byte = 1 << 2
	BackupEligible byte = 1 << 3
	BackedUp       byte = 1 << 4
	attested       byte = 1 << 6
)

// The algorithms (RFC 9053, RFC 8812).
const (
	ES256 int64 = -7
	EdDSA int64 = -8
	RS256 int64 = -257
)

// Options configures an Authenticator. Zero fields mean the defaults.
type Options struct {
	// Algorithm is the only algorithm of the authenticator. The default is ES256.
	Algorithm int64
	// Counts adds counters to keys. Keys that are synced between devices have none.
	Counts bool
	// Synced marks keys as backed up.
	Synced bool
}

// Key is a discoverable credential.
type Key struct {
	ID         []byte
	RPID       string
	UserHandle []byte
	Counter    uint32

	private crypto.Signer
}

// Authenticator stores keys. It is safe for concurrent use.
type Authenticator struct {
	o    Options
	mu   sync.Mutex
	keys []*Key
}

// New returns an Authenticator without keys.
func New(o Options) *Authenticator {
	if o.Algorithm == 0 {
		o.Algorithm = ES256
	}
	return &Authenticator{o: o}
}

// Keys returns the keys, oldest first. A change to a key changes the authenticator's own
// key. Do not change keys while the authenticator is in use.
func (a *Authenticator) Keys() []*Key {
	a.mu.Lock()
	defer a.mu.Unlock()
	return slices.Clone(a.keys)
}

// Copy returns an authenticator with a copy of every key, as a thief would have.
func (a *Authenticator) Copy() *Authenticator {
	c := &Authenticator{o: a.o}
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, k := range a.keys {
		twin := *k
		c.keys = append(c.keys, &twin)
	}
	return c
}

// Change describes faults of the browser or the authenticator. A field that is set replaces or
// changes what they would send.
type Change struct {
	Origin      string // the origin in the client data
	RPID        string // the relying party whose hash is in the authenticator data
	Challenge   string // the challenge in the client data, as base64url
	Type        string // the type in the client data, such as webauthn.get
	CrossOrigin bool
	TopOrigin   string
	Clear, Set  byte    // flags to clear and to set
	Counter     *uint32 // replaces the counter of the key
	UserHandle  []byte
	NoHandle    bool
	ID          []byte // the browser's id of the credential
	// If Sign is set, it creates the signature, and the key is not used.
	Sign func(message []byte) []byte
	// ClientData and AuthenticatorData change the bytes after they were signed.
	ClientData, AuthenticatorData func([]byte) []byte
	// Response changes the JSON object before it is encoded.
	Response func(map[string]any)
}

// Create does the same as navigator.credentials.create on a page of an origin. options has
// the form {"publicKey": …}. Create returns the JSON of the credential.
func (a *Authenticator) Create(origin string, options []byte, c Change) ([]byte, error) {
	var o struct {
		PublicKey struct {
			RP        struct{ ID string }
			User      struct{ ID string }
			Challenge string
			Params    []struct {
				Alg int64
			} `json:"pubKeyCredParams"`
			Exclude   []struct{ ID string } `json:"excludeCredentials"`
			Selection struct {
				ResidentKey      string
				UserVerification string
			} `json:"authenticatorSelection"`
			Attestation string
		}
	}
	if err := json.Unmarshal(options, &o); err != nil {
		return nil, err
	}
	p := o.PublicKey
	handle, err := base64.RawURLEncoding.DecodeString(p.User.ID)
	if err != nil || len(handle) == 0 || len(handle) > 64 {
		return nil, fmt.Errorf("passkeytest: the user id %q", p.User.ID)
	}
	if err := mayUse(origin, p.RP.ID); err != nil {
		return nil, err
	}
	if !slices.ContainsFunc(p.Params, func(x struct{ Alg int64 }) bool { return x.Alg == a.o.Algorithm }) {
		return nil, errors.New("passkeytest: NotSupportedError: no algorithm that the authenticator knows")
	}
	for _, k := range a.Keys() {
		for _, e := range p.Exclude {
			if e.ID == base64.RawURLEncoding.EncodeToString(k.ID) {
				return nil, errors.New("passkeytest: InvalidStateError: the authenticator has a credential of the list already")
			}
		}
	}
	k := &Key{ID: random(16), RPID: p.RP.ID, UserHandle: handle, private: generate(a.o.Algorithm)}
	a.mu.Lock()
	a.keys = append(a.keys, k)
	a.mu.Unlock()
	id := k.ID
	if c.ID != nil {
		id = c.ID
	}
	data := a.authenticatorData(k, c, attested)
	data = append(data, make([]byte, 16)...) // the AAGUID of authenticators that do not identify themselves
	data = append(data, byte(len(id)>>8), byte(len(id)))
	data = append(data, id...)
	data = append(data, publicKey(a.o.Algorithm, k.private.Public())...)
	client := clientData("webauthn.create", p.Challenge, origin, c)
	if c.AuthenticatorData != nil {
		data = c.AuthenticatorData(data)
	}
	if c.ClientData != nil {
		client = c.ClientData(client)
	}
	object := cborMap(
		cborText("fmt"), cborText("none"),
		cborText("attStmt"), cborMap(),
		cborText("authData"), cborBytes(data),
	)
	return encode(id, map[string]any{
		"clientDataJSON": encoded(client), "attestationObject": encoded(object), "transports": []string{"internal", "hybrid"},
	}, c)
}

// Get does the same as navigator.credentials.get on a page of an origin. options has the form
// {"publicKey": …}. Get uses the newest key that fits, and returns the JSON of the credential.
func (a *Authenticator) Get(origin string, options []byte, c Change) ([]byte, error) {
	var o struct {
		PublicKey struct {
			Challenge string
			RPID      string
			Allow     []struct{ ID string } `json:"allowCredentials"`
		}
	}
	if err := json.Unmarshal(options, &o); err != nil {
		return nil, err
	}
	p := o.PublicKey
	if err := mayUse(origin, p.RPID); err != nil {
		return nil, err
	}
	var k *Key
	for _, candidate := range a.Keys() {
		allowed := len(p.Allow) == 0 || slices.ContainsFunc(p.Allow, func(x struct{ ID string }) bool { return x.ID == encoded(candidate.ID) })
		if candidate.RPID == p.RPID && allowed {
			k = candidate
		}
	}
	if k == nil {
		return nil, errors.New("passkeytest: NotAllowedError: no key fits")
	}
	if a.o.Counts {
		a.mu.Lock()
		k.Counter++
		a.mu.Unlock()
	}
	data := a.authenticatorData(k, c, 0)
	client := clientData("webauthn.get", p.Challenge, origin, c)
	sum := sha256.Sum256(client)
	message := slices.Concat(data, sum[:])
	signature := sign(a.o.Algorithm, k.private, message)
	if c.Sign != nil {
		signature = c.Sign(message)
	}
	if c.AuthenticatorData != nil {
		data = c.AuthenticatorData(data)
	}
	if c.ClientData != nil {
		client = c.ClientData(client)
	}
	response := map[string]any{"clientDataJSON": encoded(client), "authenticatorData": encoded(data), "signature": encoded(signature)}
	switch {
	case c.UserHandle != nil:
		response["userHandle"] = encoded(c.UserHandle)
	case !c.NoHandle:
		response["userHandle"] = encoded(k.UserHandle)
	}
	id := k.ID
	if c.ID != nil {
		id = c.ID
	}
	return encode(id, response, c)
}

// mayUse checks the rule of WebAuthn Level 3 section 5.1.3: a page may use its own host, or
// a parent domain of it, as relying party.
func mayUse(origin, rpID string) error {
	u, err := url.Parse(origin)
	if err != nil || rpID == "" || u.Hostname() != rpID && !strings.HasSuffix(u.Hostname(), "."+rpID) {
		return fmt.Errorf("passkeytest: SecurityError: %q may not use %q", origin, rpID)
	}
	return nil
}

func (a *Authenticator) authenticatorData(k *Key, c Change, flags byte) []byte {
	rpID := k.RPID
	if c.RPID != "" {
		rpID = c.RPID
	}
	flags |= UserPresent | UserVerified
	if a.o.Synced {
		flags |= BackupEligible | BackedUp
	}
	flags = flags&^c.Clear | c.Set
	a.mu.Lock()
	counter := k.Counter
	a.mu.Unlock()
	if c.Counter != nil {
		counter = *c.Counter
	}
	sum := sha256.Sum256([]byte(rpID))
	return slices.Concat(sum[:], []byte{flags, byte(counter >> 24), byte(counter >> 16), byte(counter >> 8), byte(counter)})
}

func clientData(kind, challenge, origin string, c Change) []byte {
	if c.Type != "" {
		kind = c.Type
	}
	if c.Challenge != "" {
		challenge = c.Challenge
	}
	if c.Origin != "" {
		origin = c.Origin
	}
	v := map[string]any{"type": kind, "challenge": challenge, "origin": origin, "crossOrigin": c.CrossOrigin}
	if c.TopOrigin != "" {
		v["topOrigin"] = c.TopOrigin
	}
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		panic(err)
	}
	return bytes.TrimSpace(b.Bytes())
}

func encode(id []byte, response map[string]any, c Change) ([]byte, error) {
	v := map[string]any{
		"id": encoded(id), "rawId": encoded(id), "type": "public-key", "response": response,
		"authenticatorAttachment": "platform", "clientExtensionResults": map[string]any{},
	}
	if c.Response != nil {
		c.Response(v)
	}
	return json.Marshal(v)
}

func encoded(b []byte) string { return base64.RawURLEncoding.EncodeToString(b) }

func random(n int) []byte {
	b := make([]byte, n)
	rand.Read(b) // never fails
	return b
}
