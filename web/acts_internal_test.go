package web

import (
	"testing"

	"satchel/internal/space"
)

// What the pages make is looked up before it is believed, and what an AI makes is
// believed.
func TestToolsThatAreLookedUp(t *testing.T) {
	for _, tool := range pageTools() {
		if !space.MadeHere(tool) {
			t.Errorf("%s is believed of every commit", tool)
		}
	}
	for _, tool := range append(aiTools(), "sync", "", space.Elsewhere) {
		if space.MadeHere(tool) {
			t.Errorf("%q is looked up", tool)
		}
	}
}
