//go:build conformance

package mcp

import (
	"os/exec"
	"testing"

	"satchel/internal/testenv"
)

// TestConformance runs both required sets of the protocol's conformance suite.
// The real binary is held to the same by e2e/conformance.
func TestConformance(t *testing.T) {
	testenv.NeedProgram(t, "node")
	testenv.NeedProgram(t, "npm")
	r := newRig(t)
	run := exec.Command("../e2e/conformance/run.sh", r.http.URL+"/mcp", "ann")
	out, err := run.CombinedOutput()
	t.Logf("%s", out)
	if err != nil {
		t.Fatal(err)
	}
}
