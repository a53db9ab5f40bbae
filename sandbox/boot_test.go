//go:build unix

package sandbox_test

import (
	"context"
	"io"
	"testing"
	"time"

	"satchel/sandbox"
	"satchel/sandbox/protocol"
)

// TestWhenAnAgentGivesMemoryBack is said to it at its start.
func TestWhenAnAgentGivesMemoryBack(t *testing.T) {
	for _, tt := range []struct{ asked, want time.Duration }{
		{0, 2 * time.Second},
		{time.Minute, time.Minute},
	} {
		var reported protocol.Boot
		b := newBench(t, func(o *sandbox.Options) {
			connect := o.Connect
			o.AgentRest = tt.asked
			o.Connect = func(ctx context.Context, conn io.ReadWriteCloser, boot protocol.Boot) (sandbox.Agent, error) {
				reported = boot
				return connect(ctx, conn, boot)
			}
		})
		b.must("a", "true")
		if reported.RestAfter != tt.want {
			t.Errorf("AgentRest %s: the agent is told %s, want %s", tt.asked, reported.RestAfter, tt.want)
		}
	}
}
