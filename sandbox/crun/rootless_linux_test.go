package crun_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"satchel/internal/fault"
	"satchel/internal/testenv"
	"satchel/sandbox/crun"
	"satchel/sandbox/sandboxtest"
)

// TestOrdinaryUser says why there are no sandboxes, to a user who is not root.
func TestOrdinaryUser(t *testing.T) {
	testenv.NeedProgram(t, crun.Name)
	if os.Geteuid() == 0 {
		sandboxtest.AsOrdinaryUser(t, nil, "-test.run=^TestOrdinaryUser$")
		return
	}
	r, err := crun.New(crun.Options{RunDir: filepath.Join(t.TempDir(), "run")})
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	err = r.Check(t.Context())
	if said := fault.PublicOf(err); fault.CodeOf(err) != fault.Unavailable || !strings.Contains(said, "map no one but himself") || !strings.Contains(said, "sandbox.runtime: gvisor") {
		t.Errorf("got %v", err)
	}
}
