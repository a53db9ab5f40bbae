//go:build unix

package sandbox_test

import (
	"testing"
	"time"

	"satchel/sandbox"
	"satchel/sandbox/protocol"
)

func TestARequestMaySayHowLongItsSandboxIsKept(t *testing.T) {
	b := newBench(t, func(o *sandbox.Options) { o.IdleStop = time.Minute })
	kept := b.request("a", "true")
	kept.IdleStop = time.Hour
	if _, err := b.Pool.Exec(t.Context(), kept); err != nil {
		t.Fatal(err)
	}
	b.must("b", "true")
	b.Pool.Sweep(time.Now().Add(2 * time.Minute))
	b.until("the other's is stopped", func(s sandbox.Status) bool { return s.Sandboxes == 1 && s.IdleStops == 1 })
	b.Pool.Sweep(time.Now().Add(2 * time.Hour))
	b.until("stopped", func(s sandbox.Status) bool { return s.Sandboxes == 0 && s.IdleStops == 2 })
}

func TestAPassingSandboxIsNotRemembered(t *testing.T) {
	for _, ephemeral := range []bool{true, false} {
		b := newBench(t, func(o *sandbox.Options) { o.IdleStop = time.Minute })
		r := b.request("a", "true")
		r.Ephemeral = ephemeral
		for again := range 2 {
			res, err := b.Pool.Exec(t.Context(), r)
			if err != nil || res.Restarted != (again > 0 && !ephemeral) || !res.Cold {
				t.Errorf("ephemeral %v, again %d: %v %+v", ephemeral, again, err, res)
			}
			b.Pool.Sweep(time.Now().Add(2 * time.Minute))
			b.until("stopped", func(s sandbox.Status) bool { return s.Sandboxes == 0 })
		}
	}
}

func TestAnAttachedCommandNeverBecomesAJob(t *testing.T) {
	b := newBench(t, func(o *sandbox.Options) { o.DetachAfter = time.Millisecond })
	r := b.request("a", "sleep 300")
	r.Attached, r.WallTime = true, 50*time.Millisecond
	res, err := b.Pool.Exec(t.Context(), r)
	if err != nil || res.End != protocol.TimedOut {
		t.Errorf("%v %+v", err, res)
	}
	r.Attached, r.WallTime = false, 0
	if res, err = b.Pool.Exec(t.Context(), r); err != nil || res.End != protocol.Detached {
		t.Errorf("%v %+v", err, res)
	}
}
