package language

import (
	"slices"
	"strings"
	"testing"
)

func TestOtherForms(t *testing.T) {
	for word, want := range map[string]string{
		"repo": "repository", "repository": "repo", "repositories": "repo", "repos": "repository", "docs": "documentation",
		"i18n": "internationalization internationalisation", "internationalisation": "i18n", "dependencies": "dep",
		"report": "", "director": "", "propert": "", "directories": "dir", "s": "", "": "", "ies": "", "javascripts": "js",
	} {
		if got := strings.Join(OtherForms(word), " "); got != want {
			t.Errorf("%q: %q, want %q", word, got, want)
		}
	}
	first := OtherForms("repo")
	first[0] = "changed"
	if !slices.Equal(OtherForms("repo"), []string{"repository"}) {
		t.Error("a caller can change the list")
	}
}

func TestIsRequest(t *testing.T) {
	for word, want := range map[string]bool{"learn": true, "introduction": true, "middleware": false, "": false} {
		if IsRequest(word) != want {
			t.Errorf("%q: %v", word, !want)
		}
	}
}
