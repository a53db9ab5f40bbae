package passkey_test

import (
	"testing"
	"time"

	"satchel/auth/passkey"
	"satchel/auth/passkey/passkeytest"
	"satchel/internal/fault"
)

// fixed returns a service, and a user with a passkey.
func fixed(f *testing.F) (*passkey.Service, *passkeytest.Authenticator, passkey.User, []byte) {
	f.Helper()
	s, err := passkey.New(passkey.Options{Origin: origin, Now: func() time.Time { return time.Unix(1_900_000_000, 0) }})
	if err != nil {
		f.Fatal(err)
	}
	a := passkeytest.New(passkeytest.Options{})
	u := passkey.User{ID: []byte("u_ada"), Name: "ada"}
	options, flow, err := s.BeginRegistration(u)
	if err != nil {
		f.Fatal(err)
	}
	response, err := a.Create(origin, options, passkeytest.Change{})
	if err != nil {
		f.Fatal(err)
	}
	_, credential, err := s.FinishRegistration(u, flow, response)
	if err != nil {
		f.Fatal(err)
	}
	u.Credentials = [][]byte{credential}
	return s, a, u, response
}

func seeds(f *testing.F, good []byte) {
	f.Add(good)
	f.Add(good[:len(good)/2])
	for _, s := range []string{"", "{}", "null", `{"id":"AAAA","rawId":"AAAA","type":"public-key","response":{}}`,
		`{"id":"AAAA","rawId":"AAAA","type":"public-key","response":{"clientDataJSON":"e30","attestationObject":"oA","authenticatorData":"","signature":""}}`} {
		f.Add([]byte(s))
	}
}

// No response makes a panic, and none but the authenticator's is taken.
func FuzzRegistration(f *testing.F) {
	s, _, u, good := fixed(f)
	seeds(f, good)
	_, flow, err := s.BeginRegistration(u)
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, response []byte) {
		id, credential, err := s.FinishRegistration(u, flow, response)
		check(t, id, credential, err)
	})
}

func FuzzSignIn(f *testing.F) {
	s, a, u, _ := fixed(f)
	options, _, err := s.BeginSignIn()
	if err != nil {
		f.Fatal(err)
	}
	good, err := a.Get(origin, options, passkeytest.Change{})
	if err != nil {
		f.Fatal(err)
	}
	seeds(f, good)
	_, flow, err := s.BeginSignIn()
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, response []byte) {
		id, credential, err := s.FinishSignIn(flow, response, func(_, _ []byte) (passkey.User, error) { return u, nil })
		check(t, id, credential, err)
	})
}

// check: the challenge is none that the input could have been made for.
func check(t *testing.T, id, credential []byte, err error) {
	t.Helper()
	if err == nil || id != nil || credential != nil {
		t.Fatalf("taken: %x %s", id, credential)
	}
	switch fault.CodeOf(err) {
	case fault.Invalid, fault.TooLarge, fault.Unauthenticated:
	default:
		t.Fatalf("a bad response is an error of the kind %s: %v", fault.CodeOf(err), err)
	}
}
