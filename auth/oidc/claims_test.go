package oidc_test

import (
	"strings"
	"testing"

	"satchel/auth/oidc"
	"satchel/auth/oidc/oidctest"
)

func TestAddressesCountOnlyWhereVerified(t *testing.T) {
	for _, c := range []struct {
		name     string
		email    string
		verified any
		want     string
	}{
		{"verified", "ada@example.com", true, "ada@example.com"},
		{"verified, as a text", "ada@example.com", "true", "ada@example.com"},
		{"not verified", "ada@example.com", false, ""},
		{"not verified, as a text", "ada@example.com", "false", ""},
		{"nothing said", "ada@example.com", nil, ""},
		{"a number", "ada@example.com", 1, ""},
		{"a word", "ada@example.com", "yes", ""},
		{"a list", "ada@example.com", []bool{true}, ""},
		{"no address", "not an address", true, ""},
		{"an address with a name", "Ada <ada@example.com>", true, ""},
		{"two addresses", "ada@example.com,eve@example.org", true, ""},
	} {
		for _, lean := range []bool{false, true} {
			t.Run(c.name+map[bool]string{false: " in the ID token", true: " at the userinfo endpoint"}[lean], func(t *testing.T) {
				w := setup(t, oidctest.Options{}, oidc.Options{})
				w.issuer.SignIn(oidctest.Person{Subject: "s", Email: c.email, Verified: c.verified, Name: "N"})
				w.issuer.Behave(oidctest.Behaviour{LeanIDToken: lean})
				who, err := w.signIn(t, nil)
				if err != nil {
					t.Fatal(err)
				}
				if who.Email != c.want {
					t.Errorf("the address is %q, want %q", who.Email, c.want)
				}
			})
		}
	}
	t.Run("attack: an address of the ID token verified at the userinfo endpoint", func(t *testing.T) {
		w := setup(t, oidctest.Options{}, oidc.Options{})
		w.issuer.SignIn(oidctest.Person{Subject: "s", Email: "victim@example.com"})
		w.issuer.Behave(oidctest.Behaviour{Userinfo: func(c map[string]any) { c["email"], c["email_verified"] = "own@example.org", true }})
		who, err := w.signIn(t, nil)
		if err != nil {
			t.Fatal(err)
		}
		if who.Email != "" {
			t.Errorf("the address is %q", who.Email)
		}
	})
}

func TestNamesAreFitForALine(t *testing.T) {
	w := setup(t, oidctest.Options{}, oidc.Options{})
	w.issuer.SignIn(oidctest.Person{Subject: "s", Name: " Ada\n\u202e\x00 L. " + strings.Repeat("é", 200), Username: "a\tb"})
	who, err := w.signIn(t, nil)
	if err != nil {
		t.Fatal(err)
	}
	if !strings.HasPrefix(who.Name, "Ada L. é") || len(who.Name) > 200 || who.Login != "ab" {
		t.Errorf("the name is %q, the login %q", who.Name, who.Login)
	}
}
