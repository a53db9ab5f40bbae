package passkey_test

import (
	"bytes"
	"encoding/base64"
	"strings"
	"testing"

	"satchel/auth/passkey"
	"satchel/auth/passkey/passkeytest"
	"satchel/internal/fault"
)

func counter(n uint32) *uint32 { return &n }

func flip(b []byte) []byte { b[len(b)-1] ^= 1; return b }

var strange = base64.RawURLEncoding.EncodeToString(bytes.Repeat([]byte{7}, 32))

func TestRegistrationAttacks(t *testing.T) {
	inner := func(name string, v any) func(map[string]any) {
		return func(m map[string]any) { m["response"].(map[string]any)[name] = v }
	}
	for _, c := range []struct {
		name   string
		change passkeytest.Change
		code   fault.Code
		why    string
	}{
		{"a page of another origin", passkeytest.Change{Origin: "https://evil.example"}, fault.Unauthenticated, "origin"},
		{"a page of a sub domain", passkeytest.Change{Origin: "https://user-content.satchel.example"}, fault.Unauthenticated, "origin"},
		{"the same host at another port", passkeytest.Change{Origin: origin + ":8443"}, fault.Unauthenticated, "origin"},
		{"the same host without TLS", passkeytest.Change{Origin: "http://satchel.example"}, fault.Unauthenticated, "origin"},
		{"an origin that only looks the same", passkeytest.Change{Origin: "https://satchel.example/evil"}, fault.Unauthenticated, "origin"},
		{"an origin in capitals", passkeytest.Change{Origin: "https://SATCHEL.example"}, fault.Unauthenticated, "origin"},
		{"an origin without end", passkeytest.Change{Origin: strings.Repeat("a", 40_000)}, fault.Unauthenticated, "origin"},
		{"a ceremony without end", passkeytest.Change{Type: strings.Repeat("a", 40_000)}, fault.Unauthenticated, "ceremony"},
		{"an app", passkeytest.Change{Origin: "android:apk-key-hash:AAAA"}, fault.Unauthenticated, "origin"},
		{"another relying party", passkeytest.Change{RPID: "evil.example"}, fault.Unauthenticated, "RP Hash"},
		{"another challenge", passkeytest.Change{Challenge: strange}, fault.Unauthenticated, "challenge"},
		{"no challenge", passkeytest.Change{Challenge: " "}, fault.Unauthenticated, "challenge"},
		{"the response of a sign-in", passkeytest.Change{Type: "webauthn.get"}, fault.Unauthenticated, "ceremony"},
		{"a frame in another page", passkeytest.Change{CrossOrigin: true}, fault.Unauthenticated, "frame"},
		{"a frame that names the page", passkeytest.Change{TopOrigin: "https://evil.example"}, fault.Unauthenticated, "frame"},
		{"a person who is not there", passkeytest.Change{Clear: passkeytest.UserPresent}, fault.Unauthenticated, "user presence"},
		{"a person who is not verified", passkeytest.Change{Clear: passkeytest.UserVerified}, fault.Unauthenticated, "user verification"},
		{"backed up though it cannot be", passkeytest.Change{Set: passkeytest.BackedUp}, fault.Unauthenticated, "backup"},
		{"another credential's id outside", passkeytest.Change{Response: func(m map[string]any) { m["id"], m["rawId"] = "AAAA", "AAAA" }}, fault.Unauthenticated, "credential id"},
		{"two ids", passkeytest.Change{Response: func(m map[string]any) { m["rawId"] = "AAAA" }}, fault.Invalid, "rawId"},
		{"an id without end", passkeytest.Change{ID: bytes.Repeat([]byte{1}, 2000)}, fault.Invalid, ""},
		{"no credential in it", passkeytest.Change{AuthenticatorData: func(b []byte) []byte { return b[:37] }}, fault.Invalid, ""},
		{"cut off", passkeytest.Change{AuthenticatorData: func(b []byte) []byte { return b[:len(b)-9] }}, fault.Invalid, ""},
		{"bytes after the key", passkeytest.Change{AuthenticatorData: func(b []byte) []byte { return append(b, 0, 1, 2) }}, fault.Invalid, ""},
		{"no JSON inside", passkeytest.Change{ClientData: func([]byte) []byte { return []byte("<html>") }}, fault.Invalid, ""},
		{"no attestation", passkeytest.Change{Response: inner("attestationObject", "")}, fault.Invalid, ""},
		{"an attestation that is no CBOR", passkeytest.Change{Response: inner("attestationObject", "____")}, fault.Invalid, ""},
		{"another kind of credential", passkeytest.Change{Response: func(m map[string]any) { m["type"] = "password" }}, fault.Invalid, "type"},
		{"a response without end", passkeytest.Change{Response: func(m map[string]any) { m["padding"] = strings.Repeat("a", 70_000) }}, fault.TooLarge, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := setup(t)
			err := w.register(t, 0, passkeytest.New(passkeytest.Options{}), c.change)
			refused(t, err, c.code, c.why)
		})
	}
	t.Run("an algorithm that was not asked for", func(t *testing.T) {
		// The key has the algorithm ES384, which is not among the options.
		w := setup(t)
		err := w.register(t, 0, passkeytest.New(passkeytest.Options{}), passkeytest.Change{AuthenticatorData: func(b []byte) []byte {
			return bytes.Replace(b, []byte{0x01, 0x02, 0x03, 0x26}, []byte{0x01, 0x02, 0x03, 0x38, 0x22}, 1)
		}})
		if code := fault.CodeOf(err); code != fault.Unauthenticated && code != fault.Invalid {
			t.Errorf("got %v", err)
		}
	})
	t.Run("a response twice", func(t *testing.T) {
		w := setup(t)
		a := passkeytest.New(passkeytest.Options{})
		flow, response := w.create(t, 0, a, passkeytest.Change{})
		_, credential, err := w.service.FinishRegistration(w.users[0], flow, response)
		if err != nil {
			t.Fatal(err)
		}
		w.users[0].Credentials = append(w.users[0].Credentials, credential)
		_, again, err := w.service.BeginRegistration(w.users[0])
		if err != nil {
			t.Fatal(err)
		}
		_, _, err = w.service.FinishRegistration(w.users[0], again, response)
		refused(t, err, fault.Unauthenticated, "challenge")
		_, _, err = w.service.FinishRegistration(w.users[0], flow, response)
		refused(t, err, fault.Conflict, "already")
	})
	t.Run("another user's flow", func(t *testing.T) {
		w := setup(t)
		flow, response := w.create(t, 1, passkeytest.New(passkeytest.Options{}), passkeytest.Change{})
		_, _, err := w.service.FinishRegistration(w.users[0], flow, response)
		refused(t, err, fault.Invalid, "another user's")
	})
	t.Run("a flow that is no flow", func(t *testing.T) {
		w := setup(t)
		_, signIn, err := w.service.BeginSignIn()
		if err != nil {
			t.Fatal(err)
		}
		for _, flow := range [][]byte{nil, []byte("{}"), []byte("null"), signIn, []byte(`{"ceremony":"registration","user":"dV9hZGE=","expires":"2040-01-01T00:00:00Z"}`)} {
			_, _, err := w.service.FinishRegistration(w.users[0], flow, []byte("{}"))
			refused(t, err, fault.Invalid, "another ceremony")
		}
	})
}

func TestSignInAttacks(t *testing.T) {
	for _, c := range []struct {
		name   string
		change passkeytest.Change
		code   fault.Code
		why    string
	}{
		{"phishing: a page of another origin", passkeytest.Change{Origin: "https://satchel.example.evil.example"}, fault.Unauthenticated, "origin"},
		{"a page of a sub domain", passkeytest.Change{Origin: "https://user-content.satchel.example"}, fault.Unauthenticated, "origin"},
		{"the same host at another port", passkeytest.Change{Origin: origin + ":8443"}, fault.Unauthenticated, "origin"},
		{"the same host without TLS", passkeytest.Change{Origin: "http://satchel.example"}, fault.Unauthenticated, "origin"},
		{"an origin that only looks the same", passkeytest.Change{Origin: origin + "/"}, fault.Unauthenticated, "origin"},
		{"another relying party", passkeytest.Change{RPID: "evil.example"}, fault.Unauthenticated, "RP Hash"},
		{"another challenge", passkeytest.Change{Challenge: strange}, fault.Unauthenticated, "challenge"},
		{"the response of a registration", passkeytest.Change{Type: "webauthn.create"}, fault.Unauthenticated, "ceremony"},
		{"a frame in another page", passkeytest.Change{CrossOrigin: true}, fault.Unauthenticated, "frame"},
		{"a frame that names the page", passkeytest.Change{CrossOrigin: true, TopOrigin: origin}, fault.Unauthenticated, "frame"},
		{"a person who is not there", passkeytest.Change{Clear: passkeytest.UserPresent}, fault.Unauthenticated, "user presence"},
		{"a person who is not verified", passkeytest.Change{Clear: passkeytest.UserVerified}, fault.Unauthenticated, "user verification"},
		{"another user's handle", passkeytest.Change{UserHandle: []byte("u_eve")}, fault.Unauthenticated, "handle"},
		{"a handle of nobody", passkeytest.Change{UserHandle: []byte("u_nobody")}, fault.Unauthenticated, "handle"},
		{"no handle", passkeytest.Change{NoHandle: true}, fault.Unauthenticated, "handle"},
		{"an unknown credential", passkeytest.Change{ID: []byte("unknown")}, fault.Unauthenticated, "no such passkey"},
		{"two ids", passkeytest.Change{Response: func(m map[string]any) { m["rawId"] = "AAAA" }}, fault.Invalid, "rawId"},
		{"a tampered signature", passkeytest.Change{Response: func(m map[string]any) {
			r := m["response"].(map[string]any)
			b, err := base64.RawURLEncoding.DecodeString(r["signature"].(string))
			if err != nil {
				panic(err)
			}
			r["signature"] = base64.RawURLEncoding.EncodeToString(flip(b))
		}}, fault.Unauthenticated, "signature"},
		{"no signature", passkeytest.Change{Sign: func([]byte) []byte { return nil }}, fault.Unauthenticated, "signature"},
		{"a signature of zeros", passkeytest.Change{Sign: func([]byte) []byte { return []byte{0x30, 6, 2, 1, 0, 2, 1, 0} }}, fault.Unauthenticated, "signature"},
		{"authenticator data changed after signing", passkeytest.Change{AuthenticatorData: flip}, fault.Unauthenticated, "signature"},
		{"client data changed after signing", passkeytest.Change{ClientData: func(b []byte) []byte { return bytes.Replace(b, []byte("{"), []byte("{ "), 1) }}, fault.Unauthenticated, "signature"},
		{"a device key that turned into a synced one", passkeytest.Change{Set: passkeytest.BackupEligible | passkeytest.BackedUp}, fault.Unauthenticated, "backup"},
		{"backed up though it cannot be", passkeytest.Change{Set: passkeytest.BackedUp}, fault.Unauthenticated, "backup"},
		{"authenticator data cut off", passkeytest.Change{AuthenticatorData: func(b []byte) []byte { return b[:36] }}, fault.Invalid, ""},
		{"bytes after the authenticator data", passkeytest.Change{AuthenticatorData: func(b []byte) []byte { return append(b, 1, 2, 3) }}, fault.Invalid, ""},
		{"no JSON inside", passkeytest.Change{ClientData: func([]byte) []byte { return []byte("<html>") }}, fault.Invalid, ""},
		{"another kind of credential", passkeytest.Change{Response: func(m map[string]any) { m["type"] = "password" }}, fault.Invalid, "type"},
		{"a response without end", passkeytest.Change{Response: func(m map[string]any) { m["padding"] = strings.Repeat("a", 70_000) }}, fault.TooLarge, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := setup(t)
			a := passkeytest.New(passkeytest.Options{})
			if err := w.register(t, 0, a, passkeytest.Change{}); err != nil {
				t.Fatal(err)
			}
			if err := w.register(t, 1, passkeytest.New(passkeytest.Options{}), passkeytest.Change{}); err != nil {
				t.Fatal(err)
			}
			id, credential, err := w.signIn(t, a, c.change)
			refused(t, err, c.code, c.why)
			if id != nil || credential != nil {
				t.Errorf("something came with the error: %x %s", id, credential)
			}
			if _, _, err := w.signIn(t, a, passkeytest.Change{}); err != nil {
				t.Errorf("the good passkey does not work any more: %v", err)
			}
		})
	}
	t.Run("a response replayed", func(t *testing.T) {
		w := setup(t)
		a := passkeytest.New(passkeytest.Options{})
		if err := w.register(t, 0, a, passkeytest.Change{}); err != nil {
			t.Fatal(err)
		}
		flow, response := w.get(t, a, passkeytest.Change{})
		if _, _, err := w.service.FinishSignIn(flow, response, w.find); err != nil {
			t.Fatal(err)
		}
		_, another, err := w.service.BeginSignIn()
		if err != nil {
			t.Fatal(err)
		}
		_, _, err = w.service.FinishSignIn(another, response, w.find)
		refused(t, err, fault.Unauthenticated, "challenge")
	})
	t.Run("one's own key under somebody else's credential", func(t *testing.T) {
		w := setup(t)
		ada, eve := passkeytest.New(passkeytest.Options{}), passkeytest.New(passkeytest.Options{})
		if err := w.register(t, 0, ada, passkeytest.Change{}); err != nil {
			t.Fatal(err)
		}
		if err := w.register(t, 1, eve, passkeytest.Change{}); err != nil {
			t.Fatal(err)
		}
		_, _, err := w.signIn(t, eve, passkeytest.Change{ID: ada.Keys()[0].ID, UserHandle: []byte("u_ada")})
		refused(t, err, fault.Unauthenticated, "signature")
		_, _, err = w.signIn(t, eve, passkeytest.Change{UserHandle: []byte("u_ada")})
		refused(t, err, fault.Unauthenticated, "handle")
	})
	t.Run("a careless store finds a user who has no such credential", func(t *testing.T) {
		w := setup(t)
		a := passkeytest.New(passkeytest.Options{})
		if err := w.register(t, 1, a, passkeytest.Change{}); err != nil {
			t.Fatal(err)
		}
		flow, response := w.get(t, a, passkeytest.Change{UserHandle: []byte("u_ada")})
		_, _, err := w.service.FinishSignIn(flow, response, func(_, handle []byte) (passkey.User, error) {
			return passkey.User{ID: handle, Name: "ada"}, nil
		})
		refused(t, err, fault.Unauthenticated, "credential")
	})
	t.Run("a flow that is no flow", func(t *testing.T) {
		w := setup(t)
		_, registration, err := w.service.BeginRegistration(w.users[0])
		if err != nil {
			t.Fatal(err)
		}
		for _, flow := range [][]byte{nil, []byte("{}"), []byte("null"), registration, []byte(`{"ceremony":"sign-in","expires":"2040-01-01T00:00:00Z"}`)} {
			_, _, err := w.service.FinishSignIn(flow, []byte("{}"), w.find)
			refused(t, err, fault.Invalid, "another ceremony")
		}
	})
}

func TestCopiesAreFoundByTheirCounter(t *testing.T) {
	w := setup(t)
	a := passkeytest.New(passkeytest.Options{Counts: true})
	if err := w.register(t, 0, a, passkeytest.Change{}); err != nil {
		t.Fatal(err)
	}
	keep := func(a *passkeytest.Authenticator, c passkeytest.Change) error {
		_, credential, err := w.signIn(t, a, c)
		if err == nil {
			w.users[0].Credentials[0] = credential
		}
		return err
	}
	if err := keep(a, passkeytest.Change{}); err != nil {
		t.Fatal(err)
	}
	thief := a.Copy()
	if err := keep(a, passkeytest.Change{}); err != nil {
		t.Fatal(err)
	}
	refused(t, keep(thief, passkeytest.Change{}), fault.Forbidden, "copied")
	if !strings.Contains(w.log.String(), "there may be a copy") {
		t.Errorf("the log does not say so: %s", w.log)
	}
	if err := keep(a, passkeytest.Change{}); err != nil {
		t.Errorf("its owner is locked out: %v", err)
	}
	refused(t, keep(a, passkeytest.Change{Counter: counter(0)}), fault.Forbidden, "copied")
	refused(t, keep(a, passkeytest.Change{Counter: counter(3)}), fault.Forbidden, "copied")
	if err := keep(a, passkeytest.Change{Counter: counter(4_000_000_000)}); err != nil {
		t.Error(err)
	}
}

func TestBackupStateIsFollowed(t *testing.T) {
	w := setup(t)
	a := passkeytest.New(passkeytest.Options{Synced: true})
	if err := w.register(t, 0, a, passkeytest.Change{}); err != nil {
		t.Fatal(err)
	}
	_, credential, err := w.signIn(t, a, passkeytest.Change{Clear: passkeytest.BackedUp})
	if err != nil {
		t.Fatal(err)
	}
	if bytes.Contains(credential, []byte(`"backedUp"`)) || !bytes.Contains(credential, []byte(`"backupEligible":true`)) {
		t.Errorf("kept was %s", credential)
	}
}
