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

// TestLockOfAKilledProcess checks that the next server waits for a lock whose holder was
// killed, because a process that the holder was starting may keep the lock for a moment. The
// server does not wait for a holder that is alive.
func TestLockOfAKilledProcess(t *testing.T) {
	ended := exec.Command(testenv.NeedProgram(t, "git"), "version")
	if err := ended.Run(); err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		holder int
		waits  bool
	}{
		"its holder is gone":   {ended.Process.Pid, runtime.GOOS != "windows"}, // on Windows, no other process gets the holder's files
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
