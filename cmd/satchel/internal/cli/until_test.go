package cli

import (
	"regexp"
	"testing"
	"time"
)

// When something ends is told with its zone, since who is told may be elsewhere.
func TestUntilNamesItsZone(t *testing.T) {
	if got := until(time.Date(2026, 11, 20, 17, 20, 0, 0, time.UTC)); !regexp.MustCompile(`^2026-11-\d\d \d\d:\d\d [A-Z+-]`).MatchString(got) {
		t.Error(got)
	}
}
