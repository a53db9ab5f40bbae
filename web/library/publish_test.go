package library

import (
	"testing"

	"satchel/internal/space"
)

// An error that names a field of a source marks that field of the form.
func TestTheFormMarksEachFieldOfASource(t *testing.T) {
	for field, want := range map[string]string{
		space.SourceName: "source-id", space.SourceTitle: "source-label", space.SourceDescription: "source-about",
		space.SourceReaders: "source-readers", space.SourceMemory: "source-memory",
	} {
		if got := sourceField(field, publishForm{}); got != want {
			t.Errorf("%s marks %q, want %q", field, got, want)
		}
	}
	if got := sourceField(space.SourceName, publishForm{Change: true}); got != "" {
		t.Errorf("a name that stays marks %q", got)
	}
}
