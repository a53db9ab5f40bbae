package textedit_test

import (
	"strings"
	"testing"

	"satchel/internal/textedit"
)

// TestReplaceInOneLongLine checks that the time of a replacement does not grow with the
// product of the line's length and the occurrences: that would take hours here.
func TestReplaceInOneLongLine(t *testing.T) {
	for _, end := range []string{"", "\n", "\r\n"} {
		text := strings.Repeat("a", 1<<20) + end
		got, err := textedit.Apply(text, []textedit.Edit{{Old: "a", New: "c", All: true}}, 4<<20)
		if err != nil || got != strings.Repeat("c", 1<<20)+end {
			t.Errorf("%q: %d bytes, %v", end, len(got), err)
		}
	}
}
