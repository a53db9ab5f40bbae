package sandboxtest

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"testing"
	"time"

	"satchel/internal/space"
	"satchel/internal/testenv"
	"satchel/sandbox"
)

// Try returns why a runtime does not work here, or nil. make creates the runtime in a new
// directory.
func Try(make func(runDir string) (space.Runtime, error)) error {
	dir, err := os.MkdirTemp("", "trial-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	r, err := make(filepath.Join(dir, "run"))
	if err != nil {
		return err
	}
	err = r.Check(context.Background())
	return errors.Join(err, errors.Unwrap(err), r.Close())
}

// Open takes the results of a runtime's New, and closes the runtime when the test ends.
func Open[R space.Runtime](t testing.TB, r R, err error) R {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := r.Close(); err != nil {
			t.Errorf("closing the runtime: %v", err)
		}
	})
	return r
}

// NewPool creates a pool that ends with the test.
func NewPool(t testing.TB, o sandbox.Options) *sandbox.Pool {
	t.Helper()
	p, err := sandbox.New(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := p.Close(testenv.Context(t)); err != nil {
			t.Error(err)
		}
	})
	return p
}

// Leaving returns the context of a caller that leaves after a while. How far a command
// gets until then depends on the machine, so a test must accept every outcome.
func Leaving(ctx context.Context, after time.Duration) (context.Context, context.CancelFunc) {
	return context.WithTimeout(ctx, after)
}

// Logger logs to the test's output.
func Logger(t testing.TB) *slog.Logger {
	return slog.New(slog.NewTextHandler(t.Output(), nil))
}
