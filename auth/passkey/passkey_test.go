package passkey_test

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"errors"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"satchel/auth/passkey"
	"satchel/auth/passkey/passkeytest"
	"satchel/internal/fault"
)

const origin = "https://satchel.example"

type world struct {
	service *passkey.Service
	log     *bytes.Buffer

	mu   sync.Mutex
	time time.Time
	// Each of the users has their stored credentials.
	users []passkey.User
}

func setup(t *testing.T) *world {
	t.Helper()
	w := &world{log: &bytes.Buffer{}, time: time.Date(2030, 5, 1, 12, 0, 0, 0, time.UTC)}
	s, err := passkey.New(passkey.Options{Origin: origin, Name: "Satchel", Logger: slog.New(slog.NewTextHandler(w.log, nil)), Now: func() time.Time {
		w.mu.Lock()
		defer w.mu.Unlock()
		return w.time
	}})
	if err != nil {
		t.Fatal(err)
	}
	w.service = s
	w.users = []passkey.User{{ID: []byte("u_ada"), Name: "ada", Display: "Ada Lovelace"}, {ID: []byte("u_eve"), Name: "eve"}}
	return w
}

func (w *world) advance(d time.Duration) { w.mu.Lock(); w.time = w.time.Add(d); w.mu.Unlock() }

// create starts a registration, and returns the authenticator's response.
func (w *world) create(t *testing.T, user int, a *passkeytest.Authenticator, c passkeytest.Change) (flow, response []byte) {
	t.Helper()
	options, flow, err := w.service.BeginRegistration(w.users[user])
	if err != nil {
		t.Fatal(err)
	}
	if response, err = a.Create(origin, options, c); err != nil {
		t.Fatal(err)
	}
	return flow, response
}

// get starts a sign-in, and returns the authenticator's response.
func (w *world) get(t *testing.T, a *passkeytest.Authenticator, c passkeytest.Change) (flow, response []byte) {
	t.Helper()
	options, flow, err := w.service.BeginSignIn()
	if err != nil {
		t.Fatal(err)
	}
	if response, err = a.Get(origin, options, c); err != nil {
		t.Fatal(err)
	}
	return flow, response
}

// register registers a passkey for a user, and stores it.
func (w *world) register(t *testing.T, user int, a *passkeytest.Authenticator, c passkeytest.Change) error {
	t.Helper()
	flow, response := w.create(t, user, a, c)
	id, credential, err := w.service.FinishRegistration(w.users[user], flow, response)
	if err != nil {
		return err
	}
	if keys := a.Keys(); !bytes.Equal(id, keys[len(keys)-1].ID) {
		t.Errorf("the id is %x", id)
	}
	w.users[user].Credentials = append(w.users[user].Credentials, credential)
	return nil
}

// find finds a user as a store does: only by the credential.
func (w *world) find(credentialID, _ []byte) (passkey.User, error) {
	for _, u := range w.users {
		for _, c := range u.Credentials {
			var r struct{ ID []byte }
			if err := json.Unmarshal(c, &r); err != nil {
				return passkey.User{}, err
			}
			if bytes.Equal(r.ID, credentialID) {
				return u, nil
			}
		}
	}
	return passkey.User{}, fault.New(fault.NotFound, "There is no such passkey.")
}

func (w *world) signIn(t *testing.T, a *passkeytest.Authenticator, c passkeytest.Change) (id, credential []byte, err error) {
	t.Helper()
	flow, response := w.get(t, a, c)
	return w.service.FinishSignIn(flow, response, w.find)
}

func refused(t *testing.T, err error, code fault.Code, why string) {
	t.Helper()
	if err != nil && len(err.Error()) > 2000 {
		t.Errorf("the error has %d bytes", len(err.Error()))
	}
	if fault.CodeOf(err) != code {
		t.Fatalf("got %v (%s), want a fault of %s", err, fault.CodeOf(err), code)
	}
	if !strings.Contains(strings.ToLower(err.Error()), strings.ToLower(why)) {
		t.Errorf("it was refused for another reason: %v", err)
	}
	if p := fault.PublicOf(err); !strings.HasSuffix(p, ".") || strings.Contains(strings.ToLower(p), "challenge") {
		t.Errorf("the public message is %q", p)
	}
}

func TestSignsInWithEveryAlgorithm(t *testing.T) {
	for name, o := range map[string]passkeytest.Options{
		"ES256":                     {Algorithm: passkeytest.ES256},
		"EdDSA":                     {Algorithm: passkeytest.EdDSA},
		"RS256":                     {Algorithm: passkeytest.RS256},
		"with a counter":            {Counts: true},
		"synced between devices":    {Synced: true},
		"Ed25519 with a counter":    {Algorithm: passkeytest.EdDSA, Counts: true},
		"synced and with a counter": {Synced: true, Counts: true},
	} {
		t.Run(name, func(t *testing.T) {
			w := setup(t)
			a := passkeytest.New(o)
			if err := w.register(t, 0, a, passkeytest.Change{}); err != nil {
				t.Fatal(err)
			}
			for range 3 {
				id, credential, err := w.signIn(t, a, passkeytest.Change{})
				if err != nil {
					t.Fatal(err)
				}
				if !bytes.Equal(id, a.Keys()[0].ID) {
					t.Errorf("the id is %x", id)
				}
				w.users[0].Credentials[0] = credential
				if len(credential) > 2<<10 {
					t.Errorf("a credential has %d bytes", len(credential))
				}
				var r struct {
					Counter                  uint32
					BackupEligible, BackedUp bool
					Transports               []string
				}
				if err := json.Unmarshal(credential, &r); err != nil {
					t.Fatal(err)
				}
				if r.Counter != a.Keys()[0].Counter || r.BackupEligible != o.Synced || r.BackedUp != o.Synced || len(r.Transports) != 2 {
					t.Errorf("kept was %s", credential)
				}
			}
		})
	}
}

// Browsers and password managers send more than requested (WebAuthn Level 3 section 9.4
// requires servers to accept this).
func TestWhatWasNotAskedForIsIgnored(t *testing.T) {
	w := setup(t)
	a := passkeytest.New(passkeytest.Options{})
	more := passkeytest.Change{Response: func(m map[string]any) {
		m["clientExtensionResults"] = map[string]any{
			"credProps": map[string]any{"rk": true}, "appid": false, "prf": map[string]any{"enabled": true}, "example.invented": []int{1},
		}
		m["invented"] = true
		m["response"].(map[string]any)["publicKeyAlgorithm"] = -7
	}}
	if err := w.register(t, 0, a, more); err != nil {
		t.Fatal(err)
	}
	if _, _, err := w.signIn(t, a, more); err != nil {
		t.Fatal(err)
	}
}

func TestTheOptionsAskForWhatTheyMust(t *testing.T) {
	w := setup(t)
	a := passkeytest.New(passkeytest.Options{})
	if err := w.register(t, 0, a, passkeytest.Change{}); err != nil {
		t.Fatal(err)
	}
	options, flow, err := w.service.BeginRegistration(w.users[0])
	if err != nil {
		t.Fatal(err)
	}
	var o struct {
		PublicKey struct {
			RP               struct{ ID, Name string }
			User             struct{ ID, Name, DisplayName string }
			Challenge        string
			PubKeyCredParams []struct {
				Type string
				Alg  int
			}
			Timeout                int
			ExcludeCredentials     []struct{ Type, ID string }
			AuthenticatorSelection struct {
				ResidentKey, UserVerification string
				RequireResidentKey            bool
			}
			Attestation string
		}
	}
	if err := json.Unmarshal(options, &o); err != nil {
		t.Fatal(err)
	}
	p := o.PublicKey
	if p.RP.ID != "satchel.example" || p.RP.Name != "Satchel" || p.User.Name != "ada" || p.User.DisplayName != "Ada Lovelace" ||
		p.User.ID != base64.RawURLEncoding.EncodeToString([]byte("u_ada")) || p.Timeout != 300_000 || (p.Attestation != "none" && p.Attestation != "") ||
		p.AuthenticatorSelection.ResidentKey != "required" || !p.AuthenticatorSelection.RequireResidentKey || p.AuthenticatorSelection.UserVerification != "required" {
		t.Errorf("got %s", options)
	}
	if len(p.ExcludeCredentials) != 1 || p.ExcludeCredentials[0].ID != base64.RawURLEncoding.EncodeToString(a.Keys()[0].ID) {
		t.Errorf("excluded are %v", p.ExcludeCredentials)
	}
	if len(p.PubKeyCredParams) != 3 || p.PubKeyCredParams[0].Alg != -7 || p.PubKeyCredParams[1].Alg != -8 || p.PubKeyCredParams[2].Alg != -257 {
		t.Errorf("the algorithms are %v", p.PubKeyCredParams)
	}
	if b, err := base64.RawURLEncoding.DecodeString(p.Challenge); err != nil || len(b) != 32 {
		t.Errorf("the challenge is %q", p.Challenge)
	}
	if len(flow) > 512 {
		t.Errorf("the flow has %d bytes", len(flow))
	}
	if _, err := a.Create(origin, options, passkeytest.Change{}); err == nil {
		t.Error("an authenticator registered twice")
	}

	options, flow, err = w.service.BeginSignIn()
	if err != nil {
		t.Fatal(err)
	}
	var s struct{ PublicKey map[string]any }
	if err := json.Unmarshal(options, &s); err != nil {
		t.Fatal(err)
	}
	if s.PublicKey["rpId"] != "satchel.example" || s.PublicKey["userVerification"] != "required" || s.PublicKey["timeout"] != 300_000.0 || s.PublicKey["allowCredentials"] != nil {
		t.Errorf("got %s", options)
	}
	if len(flow) > 512 {
		t.Errorf("the flow has %d bytes", len(flow))
	}
	other, _, err := w.service.BeginSignIn()
	if err != nil || bytes.Equal(other, options) {
		t.Errorf("two sign-ins have one challenge (%v)", err)
	}
}

func TestWhereThereCanBePasskeys(t *testing.T) {
	for o, id := range map[string]string{
		"https://satchel.example":      "satchel.example",
		"https://satchel.example/":     "satchel.example",
		"https://Satchel.Example:443":  "satchel.example",
		"https://satchel.example:8443": "satchel.example",
		"http://localhost:8080":        "localhost",
		"http://satchel.localhost":     "satchel.localhost",
	} {
		s, err := passkey.New(passkey.Options{Origin: o})
		if err != nil {
			t.Errorf("%s: %v", o, err)
			continue
		}
		options, _, err := s.BeginSignIn()
		if err != nil || !bytes.Contains(options, []byte(`"rpId":"`+id+`"`)) {
			t.Errorf("%s: %s, %v", o, options, err)
		}
	}
	for _, o := range []string{
		"", "satchel.example", "http://satchel.example", "http://127.0.0.1:8080", "https://192.0.2.1", "https://[2001:db8::1]", "http://[::1]:8080",
		"https://satchel.example/path", "https://a@satchel.example", "https://satchel.example?q", "ftp://satchel.example", "http://localhost.example.com", "https://sat_chel .example",
	} {
		if _, err := passkey.New(passkey.Options{Origin: o}); fault.CodeOf(err) != fault.Unavailable {
			t.Errorf("%q: got %v", o, err)
		}
	}
}

func TestACeremonyEnds(t *testing.T) {
	w := setup(t)
	a := passkeytest.New(passkeytest.Options{})
	flow, response := w.create(t, 0, a, passkeytest.Change{})
	w.advance(5 * time.Minute)
	_, _, err := w.service.FinishRegistration(w.users[0], flow, response)
	refused(t, err, fault.Invalid, "too long")

	if err := w.register(t, 0, a, passkeytest.Change{}); err != nil {
		t.Fatal(err)
	}
	flow, response = w.get(t, a, passkeytest.Change{})
	w.advance(5 * time.Minute)
	_, _, err = w.service.FinishSignIn(flow, response, w.find)
	refused(t, err, fault.Invalid, "too long")
}

func TestAnErrorOfTheStoreIsNobodysFault(t *testing.T) {
	w := setup(t)
	a := passkeytest.New(passkeytest.Options{})
	if err := w.register(t, 0, a, passkeytest.Change{}); err != nil {
		t.Fatal(err)
	}
	broken := errors.New("the database is away")
	for name, find := range map[string]func(_, _ []byte) (passkey.User, error){
		"an error": func(_, _ []byte) (passkey.User, error) { return passkey.User{}, broken },
		"a credential that nobody can read": func(_, _ []byte) (passkey.User, error) {
			return passkey.User{ID: []byte("u_ada"), Credentials: [][]byte{[]byte("?")}}, nil
		},
	} {
		flow, response := w.get(t, a, passkeytest.Change{})
		if _, _, err := w.service.FinishSignIn(flow, response, find); fault.CodeOf(err) != fault.Internal {
			t.Errorf("%s: got %v (%s)", name, err, fault.CodeOf(err))
		}
	}
	if _, _, err := w.service.BeginRegistration(passkey.User{ID: []byte("u"), Name: "u", Credentials: [][]byte{[]byte("?")}}); err == nil {
		t.Error("a credential that nobody can read was taken")
	}
}
