package sandboxtest

import (
	"context"
	"errors"
	"log/slog"
	"testing"
	"time"

	"satchel/internal/space"
	"satchel/internal/testenv"
	"satchel/sandbox"
)

// Use takes what a runtime's New returned, ends it with the test, and skips the
// test where this machine cannot run the runtime.
func Use[R space.Runtime](t testing.TB, r R, err error) R {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := r.Close(); err != nil {
			t.Errorf("closing the runtime: %v", err)
		}
	})
	if err := r.Check(t.Context()); err != nil {
		testenv.SkipOrFail(t, errors.Join(err, errors.Unwrap(err)).Error())
	}
	return r
}

// NewPool makes a pool that ends with the test.
func NewPool(t testing.TB, o sandbox.Options) *sandbox.Pool {
	t.Helper()
	p, err := sandbox.New(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		if err := p.Close(ctx); err != nil {
			t.Error(err)
		}
	})
	return p
}

// Logger logs to the test's output.
func Logger(t testing.TB) *slog.Logger {
	return slog.New(slog.NewTextHandler(t.Output(), nil))
}
