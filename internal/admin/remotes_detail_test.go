package admin_test

import (
	"testing"

	"satchel/internal/admin"
)

// Attack: a token in an address gets into the audit log.
func TestPlaceOfHoldsNoSecret(t *testing.T) {
	for address, want := range map[string]string{
		"https://ann:canary@git.example.com:8443/a/b.git?token=canary#canary": "https://git.example.com:8443/a/b.git",
		" https://git.example.com/a ":                                         "https://git.example.com/a",
		"git@example.com:canary":                                              "",
		"canary":                                                              "",
		"https://%zz:canary@x":                                                "",
	} {
		if got := admin.PlaceOf(address); got != want {
			t.Errorf("%q is %q, want %q", address, got, want)
		}
	}
}
