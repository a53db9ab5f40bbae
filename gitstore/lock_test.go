package gitstore

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"testing"

	"satchel/internal/fault"
	"satchel/internal/testenv"
)

// TestLockOfAKilledProcess: what a process was about to start when it was
// killed holds the lock for a moment. The next server waits for it, and for
// nobody who lives.
func TestLockOfAKilledProcess(t *testing.T) {
	ended := exec.Command(testenv.NeedProgram(t, "git"), "version")
	if err := ended.Run(); err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		holder int
		waits  bool
	}{
		"its holder is gone":   {ended.Process.Pid, runtime.GOOS != "windows"}, // where no other gets its files
		"its holder lives":     {os.Getpid(), false},
		"nobody knows of whom": {0, false},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			held, err := LockDir(dir)
			if err != nil {
				t.Fatal(err)
			}
			text := ""
			if c.holder != 0 {
				text = fmt.Sprintln(c.holder)
			}
			overwrite(t, filepath.Join(dir, ".lock"), text)
			defer held.Close()
			got, err := lockDir(dir, func() { held.Close() })
			switch {
			case c.waits && err != nil:
				t.Error(err)
			case c.waits:
				got.Close()
			case fault.CodeOf(err) != fault.Conflict:
				t.Errorf("%v", err)
			}
		})
	}
}
