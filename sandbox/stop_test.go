//go:build unix

package sandbox_test

import (
	"context"
	"errors"
	"io"
	"strings"
	"testing"
	"time"

	"satchel/sandbox"
	"satchel/sandbox/protocol"
)

// Callers stop a sandbox before they do something that must not happen next to it, such as
// removing its space. So a sandbox that has only begun to start must be gone too.
func TestStoppingWaitsForWhatStarts(t *testing.T) {
	for name, stop := range map[string]func(*bench) error{
		"the space": func(b *bench) error { return b.Pool.StopSpace(t.Context(), b.space) },
		"the user":  func(b *bench) error { return b.Pool.StopUser(t.Context(), "a") },
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t, nil).gated()
			starting := b.exec(t.Context(), b.request("a", "true"))
			b.until("starting", func(s sandbox.Status) bool { return s.Starting == 1 })
			stopped := make(chan error, 1)
			go func() { stopped <- stop(b) }()
			b.until("stopped", func(sandbox.Status) bool { return b.Pool.Dropping() })
			b.gate <- struct{}{}
			if err := <-stopped; err != nil {
				t.Error(err)
			}
			if n, s := b.Store.Seeds(), b.Pool.Status(); n != 0 || s.Sandboxes != 0 || s.Starting != 0 {
				t.Errorf("%d seeds are used, %+v", n, s)
			}
			if o := <-starting; o.err == nil {
				t.Errorf("the command ran: %+v", o.res)
			}
		})
	}
}

// deaf dies at the acknowledgement of its changes.
type deaf struct{ sandbox.Agent }

func (deaf) Ack(context.Context, uint64, []string) error { return errors.New("gone") }

// Committed changes are not reported as lost, whatever happens to the sandbox then.
func TestACommitStandsWhereTheSandboxDoesNotHearOfIt(t *testing.T) {
	b := newBench(t, func(o *sandbox.Options) {
		connect := o.Connect
		o.Connect = func(ctx context.Context, conn io.ReadWriteCloser, boot protocol.Boot) (sandbox.Agent, error) {
			a, err := connect(ctx, conn, boot)
			if err != nil {
				return nil, err
			}
			return deaf{a}, nil
		}
	})
	if r := b.must("a", "echo x > new"); r.NotSaved != nil || len(r.Commits) != 1 {
		t.Errorf("not saved: %v, commits %v", r.NotSaved, r.Commits)
	}
}

// A limit that the caller chose is not the operator's to raise.
func TestATimeLimitOfOnesOwnIsNamed(t *testing.T) {
	b := newBench(t, func(o *sandbox.Options) { o.Grace = 100 * time.Millisecond })
	r := b.request("a", "sleep 60")
	r.WallTime = 300 * time.Millisecond
	res, err := b.Pool.Exec(t.Context(), r)
	if notes := strings.Join(res.Notes, "\n"); err != nil || !strings.Contains(notes, "ended after 300ms, the time limit that it was given.") || strings.Contains(notes, "operator") {
		t.Errorf("notes %q, %v", res.Notes, err)
	}
	r.Background = true
	if _, err := b.Pool.Exec(t.Context(), r); err != nil {
		t.Fatal(err)
	}
	b.until("ended", func(s sandbox.Status) bool { return s.Busy == 0 })
	res = b.must("a", "true")
	if notes := strings.Join(res.Notes, "\n"); !strings.Contains(notes, "ended at the time limit of 300ms after ") || strings.Contains(notes, "operator") {
		t.Errorf("notes %q", res.Notes)
	}
}
