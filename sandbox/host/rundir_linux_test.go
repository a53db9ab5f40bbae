package host

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"

	"satchel/internal/fault"
)

func TestLockRunDir(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "a", "run")
	first, err := LockRunDir(t.Context(), dir, time.Second)
	if err != nil {
		t.Fatal(err)
	}
	if st, err := os.Stat(dir); err != nil || st.Mode().Perm() != 0o700 {
		t.Errorf("the directory is open to others: %v, %v", st.Mode(), err)
	}
	if _, err := LockRunDir(t.Context(), dir, time.Millisecond); fault.CodeOf(err) != fault.Unavailable {
		t.Errorf("beside another server: %v", err)
	}
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := LockRunDir(gone, dir, time.Hour); !errors.Is(err, context.Canceled) {
		t.Errorf("nobody waits for it any more: %v", err)
	}
	first.Close()
	second, err := LockRunDir(t.Context(), dir, time.Hour)
	if err != nil {
		t.Fatalf("after the first let go: %v", err)
	}
	second.Close()
}
