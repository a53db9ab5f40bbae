//go:build unix

package sandbox_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync/atomic"
	"testing"

	"satchel/internal/fault"
	"satchel/internal/space"
	"satchel/sandbox"
	"satchel/sandbox/protocol"
	"satchel/sandbox/sandboxtest"
)

// TestAStartThatWasKilledIsTriedAgain: nothing was sent, so the caller need not
// know. How often is bounded, and what cannot work is not tried again.
func TestAStartThatWasKilledIsTriedAgain(t *testing.T) {
	killed := fmt.Errorf("the sandbox runtime process has ended: %w", space.ErrKilled)
	lacking := fault.New(fault.Unavailable, "The sandbox does not start.")
	for _, tt := range []struct {
		name   string
		fails  int32 // of the first starts
		why    error
		starts int32
		want   string // of the error; empty if there is none
	}{
		{"killed once", 1, killed, 2, ""},
		{"killed twice", 2, killed, 3, ""},
		{"killed whenever it starts", 100, killed, 3, "The sandbox runtime was ended while the sandbox started; nothing was run. Try again."},
		{"a machine that lacks something", 100, lacking, 1, "The sandbox does not start."},
	} {
		t.Run(tt.name, func(t *testing.T) {
			b := newBench(t, nil)
			var starts atomic.Int32
			b.Runtime.Before = func(context.Context, space.SandboxSpec) error {
				if starts.Add(1) <= tt.fails {
					return tt.why
				}
				return nil
			}
			res, err := b.Pool.Exec(t.Context(), b.request("a", "echo ran >> ran; cat ran"))
			if tt.want == "" {
				if err != nil || res.Stdout.Text != "ran\n" || !res.Cold || res.Generation != 1 || res.Restarted {
					t.Errorf("%+v, %v", res, err)
				}
			} else if fault.CodeOf(err) != fault.Unavailable || fault.PublicOf(err) != tt.want {
				t.Errorf("%+v, %v", res, err)
			}
			var f *fault.Error
			if errors.As(err, &f); errors.Is(err, space.ErrKilled) && f.RetryAfter <= 0 {
				t.Error("it does not say when to try again")
			}
			if got := starts.Load(); got != tt.starts {
				t.Errorf("%d starts, want %d", got, tt.starts)
			}
		})
	}
}

// TestEveryWaiterOfAKilledStartIsAnswered, each by a start that they share.
func TestEveryWaiterOfAKilledStartIsAnswered(t *testing.T) {
	b := newBench(t, nil)
	var starts atomic.Int32
	b.Runtime.Before = func(ctx context.Context, _ space.SandboxSpec) error {
		if starts.Add(1) > 1 {
			return nil
		}
		select {
		case <-b.gate:
		case <-ctx.Done():
		}
		return space.ErrKilled
	}
	var all []<-chan outcome
	for range 6 {
		all = append(all, b.exec(t.Context(), b.request("a", "echo ran")))
	}
	close(b.gate)
	for _, done := range all {
		if o := <-done; o.err != nil || o.res.Stdout.Text != "ran\n" {
			t.Errorf("%+v, %v", o.res, o.err)
		}
	}
	if n := starts.Load(); n != 2 {
		t.Errorf("%d starts", n)
	}
}

// TestASandboxKilledBeforeItsAgentSpokeIsTriedAgain: its runtime reports why after the
// connection broke.
func TestASandboxKilledBeforeItsAgentSpokeIsTriedAgain(t *testing.T) {
	for _, tt := range []struct {
		name string
		why  error
		want string // of the error; empty if there is none
	}{
		{"killed", fmt.Errorf("killed by SIGKILL: %w", space.ErrKilled), ""},
		{"on its own", errors.New("exited with status 1"), "could not be started"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var b *bench
			first := true
			b = newBench(t, func(o *sandbox.Options) {
				connect := o.Connect
				o.Connect = func(ctx context.Context, conn io.ReadWriteCloser, boot protocol.Boot) (sandbox.Agent, error) {
					if !first {
						return connect(ctx, conn, boot)
					}
					first = false
					all := b.Runtime.Started()
					go all[len(all)-1].(*sandboxtest.FakeSandbox).Crash(tt.why)
					return nil, io.EOF
				}
			})
			res, err := b.Pool.Exec(t.Context(), b.request("a", "echo ran"))
			if tt.want == "" && (err != nil || res.Stdout.Text != "ran\n") || tt.want != "" && !strings.Contains(fault.PublicOf(err), tt.want) {
				t.Errorf("%+v, %v", res, err)
			}
		})
	}
}
