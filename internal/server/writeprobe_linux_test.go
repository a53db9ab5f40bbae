package server

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"satchel/internal/testenv"
)

// TestReadyWhileTheDiskIsFull: /readyz says that nothing can be saved while that is
// so, and no longer.
func TestReadyWhileTheDiskIsFull(t *testing.T) {
	cfg := settings(t)
	if err := os.MkdirAll(cfg.DataDir, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := unix.Mount("satchel-test", cfg.DataDir, "tmpfs", 0, "size=32m,mode=700"); err != nil {
		testenv.SkipOrFail(t, "a small file system cannot be mounted: "+err.Error())
	}
	t.Cleanup(func() {
		if err := unix.Unmount(cfg.DataDir, 0); err != nil {
			t.Errorf("unmount: %v", err)
		}
	})
	r := boot(t, cfg)
	ready := strings.TrimSuffix(r.URL(), "/mcp") + "/readyz"
	look := func(want int) (body string) {
		t.Helper()
		r.unwritable.last.Store(nil) // as if the last look were long ago
		status, _, body := get(t, ready)
		if status != want {
			t.Fatalf("/readyz: %d %s", status, body)
		}
		return body
	}
	look(200)
	filler := filepath.Join(cfg.DataDir, "filler")
	f, err := os.Create(filler)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	// The server writes meanwhile, so that how much is free cannot be asked for.
	if _, err := f.Write(make([]byte, 33<<20)); !errors.Is(err, unix.ENOSPC) {
		t.Fatal(err)
	}
	if body := look(503); body != "the disk is full\n" {
		t.Errorf("the body is %q", body)
	}
	if err := os.Remove(filler); err != nil {
		t.Fatal(err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	look(200)
}
