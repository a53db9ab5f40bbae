package agent

import (
	"os/exec"
	"strings"
	"testing"
)

// The agent starts once per sandbox, so nothing heavy may come with it: no
// package but the standard library's, x/sys and the shared words.
func TestImportsAreLight(t *testing.T) {
	out, err := exec.Command("go", "list", "-deps", "-f", "{{if not .Standard}}{{.ImportPath}}{{end}}", ".").Output()
	if err != nil {
		t.Fatal(err)
	}
	got := strings.Fields(string(out))
	allowed := map[string]bool{
		"golang.org/x/sys/unix": true, "satchel/internal/fault": true, "satchel/internal/procmem": true,
		"satchel/internal/space": true, "satchel/sandbox/agent": true,
	}
	for _, p := range got {
		if !allowed[p] {
			t.Errorf("imports %s", p)
		}
	}
	if len(got) != len(allowed) {
		t.Errorf("%v", got)
	}
}
