package web

import (
	"testing"

	"satchel/gitstore/sources"
)

// What the form of a source knows of sources is what they say of themselves: an error
// that names another part would mark no field.
func TestTheFormKnowsSources(t *testing.T) {
	if maxSourceName != sources.MaxIDBytes {
		t.Errorf("a name that is made has %d bytes, and one may have %d", maxSourceName, sources.MaxIDBytes)
	}
	for part, want := range map[string]string{
		sources.PartName: "source-id", sources.PartTitle: "source-label", sources.PartDescription: "source-about",
		sources.PartReaders: "source-readers", sources.PartMemory: "source-memory",
	} {
		if got := sourceField(part, publishForm{}); got != want {
			t.Errorf("%s marks %q, want %q", part, got, want)
		}
	}
	if got := sourceField(sources.PartName, publishForm{Change: true}); got != "" {
		t.Errorf("a name that stays marks %q", got)
	}
}
