package passkey

import (
	"bytes"
	"errors"
	"fmt"

	"github.com/go-webauthn/webauthn/protocol"
	"github.com/go-webauthn/webauthn/webauthn"

	"satchel/internal/fault"
)

// BeginRegistration returns the options for a new passkey of the user, as JSON of the form
// {"publicKey": …}. PublicKeyCredential.parseCreationOptionsFromJSON takes the publicKey.
// It also returns the flow, which the caller keeps for one use. The caller checks that the
// user themself is signed in.
func (s *Service) BeginRegistration(u User) (options, data []byte, err error) {
	o, err := ownerOf(u)
	if err != nil {
		return nil, nil, err
	}
	creation, session, err := s.rp.BeginRegistration(o,
		webauthn.WithCredentialParameters(algorithms()),
		webauthn.WithExclusions(webauthn.Credentials(o.credentials).CredentialDescriptors()))
	if err != nil {
		return nil, nil, fmt.Errorf("passkey: %w", err)
	}
	return s.begin(registration, creation, session.Challenge, u.ID)
}

// FinishRegistration checks the browser's response, which is the JSON of
// PublicKeyCredential.toJSON. It returns the passkey's id, and the credential to store. The
// error is a fault: Invalid if the flow has expired or belongs to another user, or if the
// response is malformed; TooLarge if the response is too large; Conflict if the user has the
// passkey already; Unauthenticated if the response does not prove the passkey.
func (s *Service) FinishRegistration(u User, data, response []byte) (id, credential []byte, err error) {
	if err := s.checkSize(response); err != nil {
		return nil, nil, err
	}
	session, err := s.session(registration, data)
	if err != nil {
		return nil, nil, err
	}
	if !bytes.Equal(session.UserID, u.ID) {
		return nil, nil, fault.Wrap(errors.New("passkey: the flow is another user's"), fault.Invalid, "This passkey was asked for elsewhere. Please try again.")
	}
	o, err := ownerOf(u)
	if err != nil {
		return nil, nil, err
	}
	parsed, err := protocol.ParseCredentialCreationResponseBytes(response)
	if err != nil {
		return nil, nil, malformed(err)
	}
	if err := s.checkClient(parsed.Response.CollectedClientData); err != nil {
		return nil, nil, err
	}
	c, err := s.rp.CreateCredential(o, session, parsed)
	if err != nil {
		return nil, nil, s.unverified(err)
	}
	for _, known := range o.credentials {
		if bytes.Equal(known.ID, c.ID) {
			return nil, nil, fault.New(fault.Conflict, "You already have this passkey.")
		}
	}
	if credential, err = encode(*c); err != nil {
		return nil, nil, err
	}
	return c.ID, credential, nil
}

// BeginSignIn returns the options to sign in with any of the person's passkeys for this
// server, as JSON of the form {"publicKey": …}. It also returns the flow, which the caller
// ties to the browser and keeps for one use.
func (s *Service) BeginSignIn() (options, data []byte, err error) {
	assertion, session, err := s.rp.BeginDiscoverableLogin(webauthn.WithUserVerification(protocol.VerificationRequired))
	if err != nil {
		return nil, nil, fmt.Errorf("passkey: %w", err)
	}
	return s.begin(signIn, assertion, session.Challenge, nil)
}

// FinishSignIn checks the browser's response, which is the JSON of
// PublicKeyCredential.toJSON. find returns the user who has the credential. The user's id
// must be the user handle. FinishSignIn returns the passkey's id, and the credential that
// replaces the stored one, because its counter has changed. The error is a fault: Invalid
// if the flow has expired or the response is malformed; TooLarge if the response is too large;
// Unauthenticated if the response does not prove the passkey, or if find returns a
// fault.NotFound; Forbidden if the counter shows that the passkey was copied. The error can
// also be another error of find.
func (s *Service) FinishSignIn(data, response []byte, find func(credentialID, userHandle []byte) (User, error)) (id, credential []byte, err error) {
	if err := s.checkSize(response); err != nil {
		return nil, nil, err
	}
	session, err := s.session(signIn, data)
	if err != nil {
		return nil, nil, err
	}
	parsed, err := protocol.ParseCredentialRequestResponseBytes(response)
	if err != nil {
		return nil, nil, malformed(err)
	}
	if err := s.checkClient(parsed.Response.CollectedClientData); err != nil {
		return nil, nil, err
	}
	var unknown error // the error of find, which go-webauthn turns into text
	_, c, err := s.rp.ValidatePasskeyLogin(func(rawID, userHandle []byte) (webauthn.User, error) {
		u, err := find(rawID, userHandle)
		var o owner
		if err == nil {
			o, err = ownerOf(u)
		}
		unknown = err
		return o, err
	}, session, parsed)
	switch {
	case unknown != nil && fault.CodeOf(unknown) == fault.NotFound:
		return nil, nil, fault.Wrap(unknown, fault.Unauthenticated, "This passkey is not known here. It may have been removed.")
	case unknown != nil:
		return nil, nil, unknown
	case err != nil:
		return nil, nil, s.unverified(err)
	case c.Authenticator.CloneWarning:
		// At least one of two copies of a key is not its owner's, and nobody knows which
		// (WebAuthn Level 3 section 6.1.1).
		s.o.Logger.Warn("a passkey's counter did not move on: there may be a copy of it", "counter", parsed.Response.AuthenticatorData.Counter, "kept", c.Authenticator.SignCount)
		return nil, nil, fault.New(fault.Forbidden, "This passkey may have been copied, because its counter did not increase. Sign in another way, remove it, and add a new one.")
	}
	if credential, err = encode(*c); err != nil {
		return nil, nil, err
	}
	return c.ID, credential, nil
}
