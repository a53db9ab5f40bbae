package passkey

import (
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/netip"
	"net/url"
	"strings"
	"time"

	"github.com/go-webauthn/webauthn/protocol"
	"github.com/go-webauthn/webauthn/protocol/webauthncose"
	"github.com/go-webauthn/webauthn/webauthn"

	"satchel/internal/fault"
)

// Options configures a Service. Zero fields mean the defaults.
type Options struct {
	// Origin is the origin of the server's pages, such as https://satchel.example.com. It
	// is https, or http on localhost.
	Origin string
	// Name is the name that a device shows for the server. The default is "Satchel".
	Name string
	// Timeout is the maximum time of a ceremony. The default is 5 minutes.
	Timeout time.Duration
	// MaxResponse is the maximum size of a browser's response in bytes. The default is 64 KiB.
	MaxResponse int
	Logger      *slog.Logger
	Now         func() time.Time
}

// Service runs the ceremonies. It is safe for concurrent use.
type Service struct {
	o      Options
	origin string // in the form that browsers send
	id     string // id of the relying party: the host of the origin
	rp     *webauthn.WebAuthn
}

// New returns a Service. The error is a fault.Unavailable if the origin cannot have passkeys:
// browsers require a name instead of an IP address, and https except for localhost.
func New(o Options) (*Service, error) {
	if o.Name == "" {
		o.Name = "Satchel"
	}
	if o.Timeout == 0 {
		o.Timeout = 5 * time.Minute
	}
	if o.MaxResponse == 0 {
		o.MaxResponse = 64 << 10
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	origin, id, err := normalize(o.Origin)
	if err != nil {
		return nil, fault.Wrap(fmt.Errorf("passkey: the origin %q: %w", o.Origin, err), fault.Unavailable, "Passkeys do not work here: the server's address must be a name with https.")
	}
	rp, err := webauthn.New(&webauthn.Config{
		RPID: id, RPDisplayName: o.Name, RPOrigins: []string{origin},
		AttestationPreference: protocol.PreferNoAttestation,
		AuthenticatorSelection: protocol.AuthenticatorSelection{
			RequireResidentKey: protocol.ResidentKeyRequired(),
			ResidentKey:        protocol.ResidentKeyRequirementRequired,
			UserVerification:   protocol.VerificationRequired,
		},
		RPAllowCrossOrigin: false,
		// Satchel requests no extensions, and uses none.
		ExtensionsUnsolicitedOutputPolicy: protocol.UnsolicitedOutputPolicyIgnore,
		Timeouts: webauthn.TimeoutsConfig{
			// The service enforces the time itself, with its own clock.
			Login:        webauthn.TimeoutConfig{Timeout: o.Timeout, TimeoutUVD: o.Timeout},
			Registration: webauthn.TimeoutConfig{Timeout: o.Timeout, TimeoutUVD: o.Timeout},
		},
	})
	if err != nil {
		return nil, fault.Wrap(fmt.Errorf("passkey: the origin %q: %w", o.Origin, err), fault.Unavailable, "Passkeys do not work here: the server's address must be a name with https.")
	}
	return &Service{o: o, origin: origin, id: id, rp: rp}, nil
}

// normalize returns an origin in the form that browsers send, and its host. The origin
// contains the port only if it is not the default of the scheme.
func normalize(s string) (origin, host string, err error) {
	u, err := url.Parse(s)
	if err != nil {
		return "", "", err
	}
	host = strings.ToLower(u.Hostname())
	port := u.Port()
	switch {
	case u.Opaque != "" || u.User != nil || strings.Trim(u.Path, "/") != "" || u.RawQuery != "" || u.Fragment != "" || host == "":
		return "", "", errors.New("it is not an origin")
	case u.Scheme == "http" && host != "localhost" && !strings.HasSuffix(host, ".localhost"), u.Scheme != "http" && u.Scheme != "https":
		return "", "", errors.New("browsers offer passkeys only to https and to localhost")
	}
	if _, err := netip.ParseAddr(host); err == nil {
		return "", "", errors.New("a passkey belongs to a name, not to an IP address")
	}
	origin = u.Scheme + "://" + host
	if port != "" && !(u.Scheme == "https" && port == "443") && !(u.Scheme == "http" && port == "80") {
		origin += ":" + port
	}
	return origin, host, nil
}

// algorithms returns the accepted signature algorithms.
func algorithms() []protocol.CredentialParameter {
	var p []protocol.CredentialParameter
	for _, a := range []webauthncose.COSEAlgorithmIdentifier{webauthncose.AlgES256, webauthncose.AlgEdDSA, webauthncose.AlgRS256} {
		p = append(p, protocol.CredentialParameter{Type: protocol.PublicKeyCredentialType, Algorithm: a})
	}
	return p
}

// User is the owner of passkeys.
type User struct {
	// ID is the user handle that a passkey contains: 1 to 64 bytes without information
	// about the person.
	ID []byte
	// Name identifies one of a person's accounts. Display is the person's name.
	Name, Display string
	// Credentials are the credentials that the caller stored for the person: the results of
	// FinishRegistration and FinishSignIn.
	Credentials [][]byte
}

// owner adapts a User to go-webauthn.
type owner struct {
	User
	credentials []webauthn.Credential
}

func (o owner) WebAuthnID() []byte                         { return o.ID }
func (o owner) WebAuthnName() string                       { return o.Name }
func (o owner) WebAuthnDisplayName() string                { return o.Display }
func (o owner) WebAuthnCredentials() []webauthn.Credential { return o.credentials }

func ownerOf(u User) (owner, error) {
	o := owner{User: u}
	if o.Display == "" {
		o.Display = o.Name
	}
	for _, b := range u.Credentials {
		c, err := decode(b)
		if err != nil {
			return owner{}, err
		}
		o.credentials = append(o.credentials, c)
	}
	return o, nil
}

// The ceremonies.
const (
	registration = "registration"
	signIn       = "sign-in"
)

// flow is the data that the start of a ceremony passes to its end.
type flow struct {
	Ceremony  string    `json:"ceremony"`
	Challenge string    `json:"challenge"`
	User      []byte    `json:"user,omitempty"`
	Expires   time.Time `json:"expires"`
}

func (s *Service) begin(ceremony string, options any, challenge string, user []byte) (public, data []byte, err error) {
	if public, err = json.Marshal(options); err != nil {
		return nil, nil, fmt.Errorf("passkey: %w", err)
	}
	data, err = json.Marshal(flow{ceremony, challenge, user, s.o.Now().Add(s.o.Timeout).UTC().Truncate(time.Second)})
	if err != nil {
		return nil, nil, fmt.Errorf("passkey: %w", err)
	}
	return public, data, nil
}

// session returns the data of a flow in the form of go-webauthn. The error is a
// fault.Invalid if the flow belongs to another ceremony or has expired.
func (s *Service) session(ceremony string, data []byte) (webauthn.SessionData, error) {
	var f flow
	if err := json.Unmarshal(data, &f); err != nil || f.Ceremony != ceremony || f.Challenge == "" {
		return webauthn.SessionData{}, fault.Wrap(errors.New("passkey: the flow is another ceremony's"), fault.Invalid, "This passkey was asked for elsewhere. Please try again.")
	}
	if !s.o.Now().Before(f.Expires) {
		return webauthn.SessionData{}, fault.New(fault.Invalid, "That took too long. Please try again.")
	}
	return webauthn.SessionData{
		Challenge: f.Challenge, RelyingPartyID: s.id, UserID: f.User,
		UserVerification: protocol.VerificationRequired, CredParams: algorithms(),
	}, nil
}

// checkClient checks the origin exactly. go-webauthn ignores case in origins, and
// everything after the host.
func (s *Service) checkClient(c protocol.CollectedClientData) error {
	if c.Origin != s.origin {
		return s.unverified(fmt.Errorf("the response is of the origin %q", c.Origin[:min(len(c.Origin), 200)]))
	}
	if c.CrossOrigin || c.TopOrigin != "" {
		return s.unverified(errors.New("the response is of a frame in another origin"))
	}
	return nil
}

func (s *Service) checkSize(response []byte) error {
	if len(response) > s.o.MaxResponse {
		return fault.New(fault.TooLarge, "The passkey's response has %d bytes, and %d are allowed.", len(response), s.o.MaxResponse)
	}
	return nil
}

func malformed(err error) error {
	return fault.Wrap(fmt.Errorf("passkey: %w", detailed(err)), fault.Invalid, "The passkey's response is malformed. Please try again.")
}

func (s *Service) unverified(err error) error {
	err = fmt.Errorf("passkey: %w", detailed(err))
	s.o.Logger.Warn("a passkey could not be verified", "error", err)
	return fault.Wrap(err, fault.Unauthenticated, "The passkey could not be verified. Please try again.")
}

// detailed adds the details of a go-webauthn error to its text. It shortens them, because
// they may contain data from anybody.
func detailed(err error) error {
	const limit = 500 // in bytes
	var e *protocol.Error
	if errors.As(err, &e) && e.DevInfo != "" {
		return fmt.Errorf("%w: %s", err, e.DevInfo[:min(len(e.DevInfo), limit)])
	}
	return err
}
