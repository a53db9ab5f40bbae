package web

import (
	"testing"

	"satchel/gitstore/sources"
)

// An error that names a field of a source marks that field of the form.
func TestTheFormMarksEachFieldOfASource(t *testing.T) {
	for field, want := range map[string]string{
		sources.FieldName: "source-id", sources.FieldTitle: "source-label", sources.FieldDescription: "source-about",
		sources.FieldReaders: "source-readers", sources.FieldMemory: "source-memory",
	} {
		if got := sourceField(field, publishForm{}); got != want {
			t.Errorf("%s marks %q, want %q", field, got, want)
		}
	}
	if got := sourceField(sources.FieldName, publishForm{Change: true}); got != "" {
		t.Errorf("a name that stays marks %q", got)
	}
}
