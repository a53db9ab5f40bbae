package agent

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"satchel/internal/testenv"
	"satchel/sandbox/protocol"
)

// whatRootIsFor does what the agent needs its capabilities for, and writes down
// how it went, up to the first command that is not answered.
func whatRootIsFor(t *testing.T, s *sandbox) string {
	t.Helper()
	var w strings.Builder
	must(t, os.Chown(filepath.Join(s.lower, "a.txt"), 0, 0)) // as a checkout by root is
	must(t, os.Chmod(filepath.Join(s.lower, "a.txt"), 0o666))
	unanswered := false
	run := func(name string, r protocol.ExecRequest) {
		if unanswered {
			return
		}
		ctx := testenv.Context(t)
		r.HeadTail = 1000
		res, err := s.Client.Exec(ctx, r, nil)
		fmt.Fprintf(&w, "%s: %d %q %d %q %v\n", name, res.End, text(res.Stdout), res.ExitCode, res.Signal, err)
		unanswered = ctx.Err() != nil
	}
	run("files", protocol.ExecRequest{Command: "echo x >> a.txt; rm b.txt; mkdir d; echo > d/f; chmod 0 d; echo ok > ~/x && stat -c %a a.txt"})
	run("leftovers", protocol.ExecRequest{Command: "trap '' TERM; setsid sleep 1001 & setsid sleep 1002 & :"})
	run("none left", protocol.ExecRequest{Command: "cat /proc/[0-9]*/cmdline 2>/dev/null | tr '\\0' ' ' | grep -c 'slee[p] 100'"})
	run("read-only", protocol.ExecRequest{ReadOnly: true, Command: "echo x > a.txt; id -u; id -G | wc -w; grep CapBnd /proc/self/status"})
	run("writer", protocol.ExecRequest{Background: true, Command: "exec 3>busy; echo > ready; exec sleep 1003"})
	run("ready", protocol.ExecRequest{Command: "until [ -e ready ]; do sleep 0.02; done; echo > /dev/stdout"})
	if unanswered {
		return w.String()
	}
	b, err := s.Collect(testenv.Context(t), protocol.CollectLimits{})
	fmt.Fprintf(&w, "%v %s", err, brief(byPath(b)))
	return w.String()
}

// Each capability is there because something fails without it.
func TestEachCapabilityIsNeeded(t *testing.T) {
	t.Parallel()
	want := whatRootIsFor(t, startSandbox(t, sandboxOption{seed: testSeed}))
	for _, line := range []string{"files: 0 \"666\\n\" 0", "none left: 0 \"0\\n\"", "1001\\n2\\n", "CapBnd:\\t0000000000000000", "\"b.txt\" deleted", "\"busy\" busy", "\"d/f\" problem"} {
		if !strings.Contains(want, line) {
			t.Errorf("with all of them there is no %s in\n%s", line, want)
		}
	}
	for i, c := range protocol.Capabilities {
		t.Run(c, func(t *testing.T) {
			t.Parallel()
			caps := slices.Delete(slices.Clone(protocol.Capabilities), i, i+1)
			s, err := trySandbox(t, sandboxOption{seed: testSeed, caps: caps})
			if err != nil {
				t.Logf("it does not start: %.200v", err)
				return
			}
			got := whatRootIsFor(t, s)
			if got == want {
				t.Errorf("nothing fails without it:\n%s", got)
			}
			t.Logf("%s", firstDifference(got, want))
		})
	}
}

func firstDifference(got, want string) string {
	a, b := strings.Split(got, "\n"), strings.Split(want, "\n")
	for i := range a {
		if i >= len(b) || a[i] != b[i] {
			return fmt.Sprintf("without it: %s", a[i])
		}
	}
	return "less"
}
