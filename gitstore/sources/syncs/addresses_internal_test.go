package syncs

import "testing"

// The address in commits is the source's own, not one of its further addresses.
func TestTheFirstAddress(t *testing.T) {
	for settings, want := range map[string]string{
		`{"additional_syncs":[{"repo":"nuxt/ui"}],"repo":"nuxt/nuxt","branch":"main"}`: "https://github.com/nuxt/nuxt",
		`{"urls":["https://b.example/"],"url":"https://docs.example/"}`:                "https://docs.example/",
		`{"urls":["https://b.example/","https://a.example/"]}`:                         "https://b.example/",
	} {
		for range 20 {
			if got := addresses(settings); len(got) == 0 || got[0] != want {
				t.Fatalf("%s: %q, want %s first", settings, got, want)
			}
		}
	}
}
