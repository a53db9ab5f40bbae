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

// takeSpare returns a spare with the limits, or nil if there is none. It waits for a spare that is
// booting, because a new sandbox would boot only after this spare. It does not wait if another
// caller already waits for the same spare.
func (r *Runtime) takeSpare(ctx context.Context, limits space.Limits) *sandbox {
	if limits != r.opt.SpareLimits {
		return nil
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if s := r.popSpare(); s != nil || r.spareUp == nil {
		return s
	}
	up := r.spareUp
	r.spareUp = nil
	r.mu.Unlock()
	select {
	case <-up:
	case <-ctx.Done():
	}
	r.mu.Lock()
	if ctx.Err() != nil {
		return nil
	}
	return r.popSpare()
}

// popSpare returns a spare that has not ended; nil if there is none. The caller holds r.mu.
func (r *Runtime) popSpare() *sandbox {
	for len(r.spares) > 0 {
		s := r.spares[0]
		r.spares = r.spares[1:]
		if !s.ended() {
			return s
		}
	}
	return nil
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

// bootSpare boots one spare, and reports whether another may be missing. If none is missing, it
// clears r.booting before it unlocks r.mu. So a spare that is taken later is always replaced.
func (r *Runtime) bootSpare(ctx context.Context) (more bool) {
	free, err := procmem.Available()
	lacks := err == nil && free < spareMemory
	r.mu.Lock()
	r.spares = slices.DeleteFunc(r.spares, (*sandbox).ended)
	if len(r.spares) >= r.opt.Spare || lacks || ctx.Err() != nil {
		r.booting = false
		r.mu.Unlock()
		return false
	}
	up := make(chan struct{})
	r.spareUp = up
	r.mu.Unlock()
	defer close(up)

	var s *sandbox
	c, err := r.running(ctx)
	if err == nil {
		s, err = c.boot(ctx, oci.NewID(), r.opt.SpareLimits)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.spareUp = nil
	if err != nil {
		r.booting = false // the next Start says why
		return false
	}
	r.spares = append(r.spares, s)
	return true
}
