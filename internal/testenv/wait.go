package testenv

import (
	"context"
	"testing"
	"time"
)

// WaitFor polls ok until it returns true. Shortly before the test's deadline, WaitFor fails
// the test and names what it waited for. Tests state no shorter limit, because that would
// measure how busy the machine is.
func WaitFor(t testing.TB, what string, ok func() bool) {
	t.Helper()
	ctx, cancel := untilEnd(t)
	defer cancel()
	tick := time.NewTicker(2 * time.Millisecond)
	defer tick.Stop()
	for !ok() {
		select {
		case <-tick.C:
		case <-ctx.Done():
			t.Fatalf("the test's time is over, and it still waits for this: %s", what)
		}
	}
}

// Receive returns the next value of a channel, or the zero value once the channel is
// closed. It waits as long as WaitFor does.
func Receive[T any](t testing.TB, what string, from <-chan T) T {
	t.Helper()
	ctx, cancel := untilEnd(t)
	defer cancel()
	select {
	case v := <-from:
		return v
	case <-ctx.Done():
		t.Fatalf("the test's time is over, and it still waits for this: %s", what)
		panic("unreachable")
	}
}

// Context returns a context that ends shortly before the limit of
// `go test -timeout`, so that a wait fails by itself before the whole binary panics.
// Unlike t.Context() it is still valid in a cleanup.
func Context(t testing.TB) context.Context {
	ctx, cancel := untilEnd(t)
	t.Cleanup(cancel)
	return ctx
}

// untilEnd returns a context that ends before the test's deadline. It leaves a tenth of the
// remaining time, at most half a minute, for cleanups, which may wait too. Benchmarks have
// no limit.
func untilEnd(t testing.TB) (context.Context, context.CancelFunc) {
	if limited, ok := t.(interface{ Deadline() (time.Time, bool) }); ok {
		if end, ok := limited.Deadline(); ok {
			return context.WithDeadline(context.Background(), end.Add(-min(time.Until(end)/10, 30*time.Second)))
		}
	}
	return context.WithCancel(context.Background())
}
