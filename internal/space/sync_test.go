package space_test

import (
	"testing"

	"satchel/internal/space"
)

// Commits and pages name each kind of change that a sync made, and no others.
func TestSyncCountsText(t *testing.T) {
	for want, c := range map[string]space.SyncCounts{
		"": {Files: 7},
		"1 added, 2 changed, 3 renamed, 4 deleted": {Added: 1, Changed: 2, Renamed: 3, Deleted: 4},
		"4 deleted": {Deleted: 4},
	} {
		if got := c.Text(); got != want {
			t.Errorf("%+v: %q, want %q", c, got, want)
		}
	}
}
