package gvisor_test

import (
	"testing"

	"satchel/internal/space"
)

func TestSandboxRunsProcessOne(t *testing.T) {
	s := start(t, newRuntime(t), space.SandboxSpec{})
	for _, c := range []struct{ command, want string }{
		{"echo hi", "hi"},
		{"id -u", "0"},
		{"cat /.satchel/lower/note.md", "a note"},
		{"cat /.satchel/git/HEAD", "ref: refs/heads/main"},
		{"cat /library/page.md", "a page"},
		{"hostname", "satchel"},
		{"pwd", "/"},
		{"awk 'BEGIN { print 1+1 }'", "2"},
	} {
		if got := bash(t, s, c.command); got != c.want {
			t.Errorf("%s: got %q, want %q", c.command, got, c.want)
		}
	}
}
