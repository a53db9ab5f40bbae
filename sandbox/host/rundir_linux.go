package host

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"

	"satchel/internal/fault"
)

// LockRunDir creates a runtime's run directory and locks it, so that no other server
// destroys what runs there. Closing the file unlocks it. LockRunDir waits up to patience,
// because processes of a killed server may hold the lock until they have ended. If
// another server uses the directory, the error is a fault.Unavailable.
func LockRunDir(ctx context.Context, dir string, patience time.Duration) (*os.File, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("making the run directory: %w", err)
	}
	if err := os.Chmod(dir, 0o700); err != nil {
		return nil, fmt.Errorf("closing the run directory: %w", err)
	}
	f, err := os.OpenFile(filepath.Join(dir, "lock"), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, fmt.Errorf("locking the run directory: %w", err)
	}
	deadline := time.Now().Add(patience)
	for {
		err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB)
		if err == nil {
			return f, nil
		}
		if !errors.Is(err, unix.EWOULDBLOCK) || time.Now().After(deadline) {
			f.Close()
			return nil, fault.Wrap(err, fault.Unavailable,
				"Another server uses the same sandboxes' run directory. Stop it, or give this one a run directory of its own.")
		}
		select {
		case <-ctx.Done():
			f.Close()
			return nil, ctx.Err()
		case <-time.After(20 * time.Millisecond):
		}
	}
}
