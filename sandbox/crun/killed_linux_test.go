package crun_test

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"satchel/internal/fault"
	"satchel/internal/space"
	"satchel/sandbox/crun"
	"satchel/sandbox/oci"
	"satchel/sandbox/sandboxtest"
)

// TestKilledWhileItStarts: whoever ends crun, or process 1 before it runs, says
// nothing against the machine, and the error does not either. What fails by
// itself is told apart.
func TestKilledWhileItStarts(t *testing.T) {
	real, err := exec.LookPath(crun.Name)
	if err != nil {
		real = "/no/crun" // newRuntime skips
	}
	for _, tt := range []struct {
		name, script string
		want         bool // that it was killed
	}{
		{"crun create", `[ "$verb" = create ] && kill -9 $$`, true},
		{"crun start", `[ "$verb" = start ] && kill -9 $$`, true},
		{"process 1 before its start", `[ "$verb" = start ] && kill -9 $(cat "$run/bundles/$id/pid") && sleep 0.1`, true},
		{"crun fails by itself", `[ "$verb" = create ] && exit 1`, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			dir := t.TempDir()
			armed := filepath.Join(dir, "armed")
			script := "#!/bin/sh\nrun=${2%/state}; verb=; for id; do case $id in create|start) verb=$id;; esac; done\n" +
				"if [ -e " + armed + " ]; then " + tt.script + "; fi\nexec " + real + ` "$@"` + "\n"
			if err := os.WriteFile(filepath.Join(dir, crun.Name), []byte(script), 0o755); err != nil {
				t.Fatal(err)
			}
			t.Setenv("PATH", dir+":"+os.Getenv("PATH"))
			r := newRuntime(t, standIn()...)
			if err := os.WriteFile(armed, nil, 0o600); err != nil {
				t.Fatal(err)
			}
			_, err := r.Start(t.Context(), space.SandboxSpec{
				ID: oci.NewID(), Seed: sandboxtest.NewSeed(t), Limits: space.Limits{Memory: 512 << 20},
			})
			if err == nil || errors.Is(err, space.ErrKilled) != tt.want || strings.Contains(fault.PublicOf(err), "doctor") == tt.want {
				t.Errorf("%v", err)
			}
			if err := os.Remove(armed); err != nil {
				t.Fatal(err)
			}
			s, _ := start(t, r)
			if got := ask(t, s, "echo next"); got != "next" {
				t.Errorf("the next sandbox says %q", got)
			}
		})
	}
}
