package gvisor_test

import (
	"testing"

	"satchel/sandbox/sandboxtest"
)

// TestAsOrdinaryUser runs all other tests again as a user who is not root.
func TestAsOrdinaryUser(t *testing.T) {
	t.Parallel()
	needNoRace(t)
	sandboxtest.AsOrdinaryUser(t, nil, "-test.run=^Test", "-test.skip=^TestAsOrdinaryUser$")
}
