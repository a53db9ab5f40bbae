package store

import (
	"bytes"
	"encoding/hex"
	"strings"
	"testing"

	"satchel/auth"
	"satchel/internal/space"
)

// The derivation never changes, so that tokens of one release stay valid in the next.
func TestTokensAreWhatTheyWere(t *testing.T) {
	s := &Store{o: Options{TokenKey: []byte(strings.Repeat("k", 32))}}
	k, err := s.deriveKey(tokenKeyRow{ID: 7, Salt: bytes.Repeat([]byte("s"), 32)})
	if err != nil {
		t.Fatal(err)
	}
	grant := "g_" + strings.Repeat("a", 26)
	refresh, err := k.refresh(grant, 3)
	if err != nil {
		t.Fatal(err)
	}
	p, ok := parseRefresh(refresh.Reveal())
	if !ok || p.keyID != 7 || p.grant != grant || p.generation != 3 || !bytes.Equal(p.hash, hashOf(refresh)) {
		t.Errorf("parsed: %+v, %v", p, ok)
	}
	_, access, err := auth.ParseSecret(auth.KindAccess, k.access(grant, 3, "read write").Reveal())
	if err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct{ name, got, want string }{
		{"refresh", hex.EncodeToString(p.mac), "ac33df42b2632bd6530d5f62ec812d2306ba1378d600d058d90523638081815d"},
		{"access", hex.EncodeToString(access), "a6dd7c44aff29734348dae92b80ad74911198cebfaf0765e9e041939a65c5f02"},
	} {
		if tt.got != tt.want {
			t.Errorf("%s: %s, want %s", tt.name, tt.got, tt.want)
		}
	}
	seen := map[string]string{}
	for name, s := range map[string]auth.Secret{
		"this":             k.access(grant, 3, "read write"),
		"other scopes":     k.access(grant, 3, "read"),
		"other generation": k.access(grant, 4, "read write"),
		"other grant":      k.access("g_"+strings.Repeat("b", 26), 3, "read write"),
		"other key":        tokenKey{7, bytes.Repeat([]byte("x"), 32)}.access(grant, 3, "read write"),
	} {
		if other, ok := seen[s.Reveal()]; ok {
			t.Errorf("%s and %s are one token", name, other)
		}
		seen[s.Reveal()] = name
	}
}

func TestGrantIDsFitIntoRefreshTokens(t *testing.T) {
	for range 100 {
		id := string(space.NewGrantID())
		s, err := tokenKey{1, make([]byte, 32)}.refresh(id, 1)
		if err != nil {
			t.Fatal(err)
		}
		if p, ok := parseRefresh(s.Reveal()); !ok || p.grant != id {
			t.Fatalf("%s came back as %s", id, p.grant)
		}
	}
	if _, err := (tokenKey{1, make([]byte, 32)}).refresh("g_1", 1); err == nil {
		t.Error("an id that is none has a token")
	}
}

// A refresh token of a client is refused or has exactly one spelling.
func FuzzParseRefresh(f *testing.F) {
	s, err := tokenKey{1, make([]byte, 32)}.refresh(string(space.NewGrantID()), 1)
	if err != nil {
		f.Fatal(err)
	}
	f.Add(s.Reveal())
	f.Add("")
	f.Add(auth.NewSecret(auth.KindRefresh).Reveal())
	f.Add(auth.SecretOf(auth.KindRefresh, bytes.Repeat([]byte{0xff}, refreshBytes)).Reveal())
	f.Fuzz(func(t *testing.T, token string) {
		p, ok := parseRefresh(token)
		if !ok {
			return
		}
		_, b, err := auth.ParseSecret(auth.KindRefresh, token)
		if err != nil || p.generation <= 0 || len(p.mac) != 32 || auth.SecretOf(auth.KindRefresh, b).Reveal() != token {
			t.Errorf("%q was taken for %+v", token, p)
		}
		if id, err := idBytes(p.grant); err != nil || !bytes.Equal(id, b[8:24]) {
			t.Errorf("%q is of %q", token, p.grant)
		}
	})
}

// The values are from RFC 7636 appendix B.
func TestVerifiesTheExampleOfTheRFC(t *testing.T) {
	const verifier, challenge = "dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk", "E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM"
	if !verifies(verifier, challenge) || verifies(verifier, challenge+"=") || verifies(verifier[1:], challenge) || verifies(verifier, "") {
		t.Error("the challenge of the example is not verified as it must be")
	}
}
