//go:build unix

package gitstore

import (
	"testing"

	"golang.org/x/sys/unix"
)

// A child that was just forked shares the locked file until it runs its own program.
func TestAForkedChildDoesNotKeepTheLock(t *testing.T) {
	dir := t.TempDir()
	held, err := LockDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	child, err := unix.Dup(int(held.f.Fd()))
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(child)
	if err := held.Close(); err != nil {
		t.Fatal(err)
	}
	again, err := LockDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	again.Close()
}
