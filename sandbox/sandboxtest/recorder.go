package sandboxtest

import (
	"context"
	"sync"

	"satchel/internal/space"
)

// Recorder is a Runtime that records the sandboxes that it started.
type Recorder struct {
	space.Runtime
	// Before, if set, runs before each start. Its error fails the start.
	Before func(ctx context.Context, spec space.SandboxSpec) error

	mu      sync.Mutex
	started []space.Sandbox
}

// Start implements space.Runtime.
func (r *Recorder) Start(ctx context.Context, spec space.SandboxSpec) (space.Sandbox, error) {
	if r.Before != nil {
		if err := r.Before(ctx, spec); err != nil {
			return nil, err
		}
	}
	sb, err := r.Runtime.Start(ctx, spec)
	if err == nil {
		r.mu.Lock()
		r.started = append(r.started, sb)
		r.mu.Unlock()
	}
	return sb, err
}

// Started returns every sandbox that was started, oldest first.
func (r *Recorder) Started() []space.Sandbox {
	r.mu.Lock()
	defer r.mu.Unlock()
	return append([]space.Sandbox(nil), r.started...)
}

// Running returns how many of the started sandboxes have not ended.
func (r *Recorder) Running() int {
	n := 0
	for _, sb := range r.Started() {
		select {
		case <-sb.Done():
		default:
			n++
		}
	}
	return n
}
