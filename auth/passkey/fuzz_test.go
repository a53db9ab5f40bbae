package passkey_test

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"testing"
	"time"

	"satchel/auth/passkey"
	"satchel/auth/passkey/passkeytest"
	"satchel/internal/fault"
)

// fixed returns a service and a user with a passkey.
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

// No response causes a panic, and only the authenticator's response is accepted.
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

// check checks that the input was refused, because no input can contain the fresh challenge.
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

// Any bytes of an authenticator about a new key, with valid client data, cause no panic. An
// accepted key has a present and verified person, and the right relying party.
func FuzzAttestation(f *testing.F) {
	s, a, u, good := fixed(f)
	options, flow, err := s.BeginRegistration(u)
	if err != nil {
		f.Fatal(err)
	}
	var g struct {
		ID       string
		Response struct{ AttestationObject string }
	}
	if err := json.Unmarshal(good, &g); err != nil {
		f.Fatal(err)
	}
	object, err := base64.RawURLEncoding.DecodeString(g.Response.AttestationObject)
	if err != nil {
		f.Fatal(err)
	}
	f.Add(object)
	for _, format := range []string{"tpm", "apple", "packed", "fido-u2f", "compound", "android-key", "android-safetynet"} {
		f.Add(bytes.Replace(object, append([]byte{0x64}, "none"...), append([]byte{0x60 | byte(len(format))}, format...), 1))
	}
	// Use another authenticator, because this one is excluded.
	shell, err := passkeytest.New(passkeytest.Options{}).Create(origin, options, passkeytest.Change{})
	if err != nil {
		f.Fatal(err)
	}
	id := base64.RawURLEncoding.EncodeToString(a.Keys()[0].ID)
	u.Credentials = nil
	f.Fuzz(func(t *testing.T, object []byte) {
		var v map[string]any
		if err := json.Unmarshal(shell, &v); err != nil {
			t.Fatal(err)
		}
		v["id"], v["rawId"] = id, id
		v["response"].(map[string]any)["attestationObject"] = base64.RawURLEncoding.EncodeToString(object)
		response, err := json.Marshal(v)
		if err != nil {
			t.Fatal(err)
		}
		_, _, err = s.FinishRegistration(u, flow, response)
		if err != nil {
			check(t, nil, nil, err)
			return
		}
		sum := sha256.Sum256([]byte("satchel.example"))
		i := bytes.Index(object, sum[:])
		if i < 0 || object[i+32]&(passkeytest.UserPresent|passkeytest.UserVerified) != passkeytest.UserPresent|passkeytest.UserVerified {
			t.Fatalf("taken: %x", object)
		}
	})
}

// Any bytes that an authenticator signs, with valid client data, cause no panic. Only bytes
// that the key signed are accepted.
func FuzzAssertion(f *testing.F) {
	s, a, u, _ := fixed(f)
	options, flow, err := s.BeginSignIn()
	if err != nil {
		f.Fatal(err)
	}
	shell, err := a.Get(origin, options, passkeytest.Change{})
	if err != nil {
		f.Fatal(err)
	}
	f.Add([]byte{}, []byte{})
	sum := sha256.Sum256([]byte("satchel.example"))
	for _, flags := range []byte{0x05, 0x85, 0x45, 0xc5, 0x1d} {
		f.Add(append(append(sum[:0:0], sum[:]...), flags, 0, 0, 0, 1, 0xa1, 0x61, 'x', 0x01), []byte{0x30, 6, 2, 1, 1, 2, 1, 1})
	}
	f.Fuzz(func(t *testing.T, data, signature []byte) {
		var v map[string]any
		if err := json.Unmarshal(shell, &v); err != nil {
			t.Fatal(err)
		}
		r := v["response"].(map[string]any)
		r["authenticatorData"] = base64.RawURLEncoding.EncodeToString(data)
		r["signature"] = base64.RawURLEncoding.EncodeToString(signature)
		response, err := json.Marshal(v)
		if err != nil {
			t.Fatal(err)
		}
		id, credential, err := s.FinishSignIn(flow, response, func(_, _ []byte) (passkey.User, error) { return u, nil })
		check(t, id, credential, err)
	})
}
