package files

import (
	"slices"
	"testing"
)

func TestTermsOf(t *testing.T) {
	got := termsOf(`release "two words" path:"a b/**" -source:space`)
	if !slices.Equal(got, []string{"release", `"two words"`, `path:"a b/**"`, "-source:space"}) {
		t.Errorf("%q", got)
	}
	for term, want := range map[string]string{"-source:space": "source", "word": "", `"a:b"`: "", "kind:memory": "kind"} {
		if n := nameOf(term); n != want {
			t.Errorf("%s: %q", term, n)
		}
	}
}

func TestQueryWordsLeavesOutStopWords(t *testing.T) {
	for q, want := range map[string][]string{
		"when is the boiler serviced": {"boiler", "serviced"},
		"wo steht die Heizung":        {"steht", "heizung"},
		"the and":                     {"the", "and"},
	} {
		if got := queryWords(q); !slices.Equal(got, want) {
			t.Errorf("%s: %q", q, got)
		}
	}
}
