package gvisor

import (
	"context"
	"slices"
	"time"

	"satchel/internal/procmem"
	"satchel/internal/space"
	"satchel/sandbox/oci"
)

const (
	// spareDelay lets the first command of the sandbox that was just taken have the
	// processors before the next spare boots.
	spareDelay = time.Second
	// spareMemory is how much memory the machine must have available for a spare.
	spareMemory = 1 << 30
)

// takeSpare returns a booted sandbox of a child; nil if there is none. It waits for a
// sandbox that is booting, because a new one would boot only after it.
func (r *Runtime) takeSpare(ctx context.Context, c *child, limits space.Limits) *sandbox {
	if limits != r.opt.SpareLimits {
		return nil
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	for {
		for len(r.spares) > 0 {
			s := r.spares[0]
			r.spares = r.spares[1:]
			if s.child == c && !s.ended() {
				return s
			}
		}
		up := r.spareUp
		if up == nil {
			return nil
		}
		r.mu.Unlock()
		select {
		case <-up:
		case <-ctx.Done():
		}
		r.mu.Lock()
		if ctx.Err() != nil {
			return nil
		}
	}
}

// bootSpares boots the spares that are missing, after a delay and in the background.
func (r *Runtime) bootSpares(delay time.Duration) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.opt.Spare == 0 || r.booting || r.closed {
		return
	}
	r.booting = true
	r.background.Go(func() {
		t := time.NewTimer(delay)
		defer t.Stop()
		select {
		case <-r.ctx.Done():
		case <-t.C:
		}
		for r.bootSpare(r.ctx) {
		}
	})
}

// bootSpare boots one spare, and reports whether another may be missing. The last
// call of a round ends it, so that a spare that is taken meanwhile is not forgotten.
func (r *Runtime) bootSpare(ctx context.Context) (more bool) {
	defer func() {
		if !more {
			r.mu.Lock()
			r.booting = false
			r.mu.Unlock()
		}
	}()
	r.mu.Lock()
	r.spares = slices.DeleteFunc(r.spares, (*sandbox).ended)
	missing := len(r.spares) < r.opt.Spare
	r.mu.Unlock()
	if free, err := procmem.Available(); !missing || ctx.Err() != nil || err == nil && free < spareMemory {
		return false
	}
	c, err := r.running(ctx)
	if err != nil {
		return false // the next Start says why
	}
	up := make(chan struct{})
	r.mu.Lock()
	r.spareUp = up
	r.mu.Unlock()
	s, err := c.boot(ctx, oci.NewID(), r.opt.SpareLimits)
	r.mu.Lock()
	if err == nil {
		r.spares = append(r.spares, s)
	}
	r.spareUp = nil
	r.mu.Unlock()
	close(up)
	return err == nil
}
