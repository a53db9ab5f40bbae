package cli

import (
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"

	"satchel/internal/testenv"
)

// TestDoctorWhileTheDiskIsFull: nothing can be saved then, which is no mere warning.
func TestDoctorWhileTheDiskIsFull(t *testing.T) {
	dir := t.TempDir()
	if err := unix.Mount("satchel-test", dir, "tmpfs", 0, "size=1m,mode=700"); err != nil {
		testenv.SkipOrFail(t, "a small file system cannot be mounted: "+err.Error())
	}
	t.Cleanup(func() {
		if err := unix.Unmount(dir, 0); err != nil {
			t.Errorf("unmount: %v", err)
		}
	})
	if f := dataDirectory(dir); !f.Optional {
		t.Errorf("with little room: %+v", f)
	}
	filler := filepath.Join(dir, "filler")
	f, err := os.Create(filler)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if err := unix.Fallocate(int(f.Fd()), 0, 0, 1<<20); err != nil {
		t.Fatal(err)
	}
	if f := dataDirectory(dir); f.OK || f.Optional || f.Remedy == "" {
		t.Errorf("without room: %+v", f)
	}
	left, err := filepath.Glob(filepath.Join(dir, ".doctor-*"))
	if err != nil || len(left) > 0 {
		t.Errorf("%q is left, %v", left, err)
	}
}
