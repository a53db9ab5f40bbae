package service

import (
	"strings"
	"testing"

	"satchel/auth"
	"satchel/auth/store"
)

// Any claims of a provider become a user name that is safe in shells, URLs and file
// names.
func TestNameOfAClaimant(t *testing.T) {
	for want, c := range map[string]auth.ExternalIdentity{
		"ada-l":       {GitHubLogin: "Ada-L", Email: "x@example.com"},
		"ada":         {Email: "ada@example.com", Name: "Ada Lovelace"},
		"ada-lovelac": {Name: "Ada Lovelacé"},
		"person":      {Name: "爱达"},
		"a.b":         {Email: "--a.b__@example.com"},
		"etcpasswd":   {Login: "../../etc/passwd"},
	} {
		got := nameOf(c)
		if got != want {
			t.Errorf("%+v is called %q, want %q", c, got, want)
		}
		if err := store.CheckName(got); err != nil {
			t.Errorf("%q: %v", got, err)
		}
	}
	if long := nameOf(auth.ExternalIdentity{Login: strings.Repeat("a", 500)}); store.CheckName(long) != nil {
		t.Errorf("a long login makes %q", long)
	}
}

// Attack: a name hides or reverses the text beside it in a list.
func TestDisplayNamesAreShownAsTheyAre(t *testing.T) {
	for in, want := range map[string]string{
		"Ada  Lovelace":            "Ada Lovelace",
		"Ada\nAdmin":               "Ada Admin",
		"Ada\u202eecnalevoL":       "Ada ecnalevoL",
		"\u200bAda":                "Ada",
		"エイダ\u3000ラブレス":            "エイダ ラブレス",
		strings.Repeat("𝒜", 60):    strings.Repeat("𝒜", 50),
		"":                         "",
		strings.Repeat("a", 1<<16): strings.Repeat("a", maxDisplay),
	} {
		if got := display(in); got != want {
			t.Errorf("%q is shown as %q, want %q", in, got, want)
		}
	}
}
