package gitstore

import (
	"context"
	"errors"
	"io"
	"sync"

	"satchel/gitstore/gitcmd"
	"satchel/internal/fault"
	"satchel/internal/space"
)

// Bundle writes a git bundle of the space's whole history to w: one file that git can
// clone and Import can read. Commits and reads continue meanwhile. A purge ends the
// bundle with a fault.Unavailable: git stops reading the space at once, and Bundle
// returns after its next write to w.
func (s *Store) Bundle(ctx context.Context, id space.SpaceID, w io.Writer) error {
	r, release, err := s.acquire(ctx, id)
	if err != nil {
		return err
	}
	defer release()
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	ended, err := r.bundles.begin(&cancel)
	if err != nil {
		return err
	}
	r.unreached.RLock() // a purge must not run while git reads the commits
	// The pipe closes when ctx ends, so that a slow w blocks neither git nor the lock.
	out, in := io.Pipe()
	stop := context.AfterFunc(ctx, func() { _ = out.CloseWithError(context.Cause(ctx)) })
	defer stop()
	var work sync.WaitGroup
	work.Go(func() {
		defer ended()
		defer r.unreached.RUnlock()
		_, err := s.git.Run(ctx, gitcmd.Cmd{
			Dir: r.dir, GitDir: r.dir, Stdout: in,
			Args: []string{"bundle", "create", "--quiet", "-", "HEAD", branch},
		})
		_ = in.CloseWithError(err)
	})
	_, err = io.Copy(w, out)
	_ = out.CloseWithError(errors.Join(err, io.ErrClosedPipe)) // so that git ends if w fails
	work.Wait()
	if err != nil {
		if cause := context.Cause(ctx); isFault(cause) {
			return cause
		}
		return r.internalf(err, "bundle")
	}
	return nil
}

func errPurged() error {
	return fault.New(fault.Unavailable, "The download was stopped, because something is being removed from the space's history. Try again later.")
}

// bundles tracks the bundles of a space that are being written.
type bundles struct {
	mu      sync.Mutex
	running map[*context.CancelCauseFunc]bool
	purging int
	why     error         // the reason for the last stop
	idle    chan struct{} // closed when no bundle runs; nil if nobody waits
}

// begin records a bundle, which stop ends by calling end. The caller must call ended
// once the bundle no longer reads the space.
func (b *bundles) begin(end *context.CancelCauseFunc) (ended func(), err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.purging > 0 {
		return nil, b.why
	}
	if b.running == nil {
		b.running = map[*context.CancelCauseFunc]bool{}
	}
	b.running[end] = true
	return func() {
		b.mu.Lock()
		defer b.mu.Unlock()
		delete(b.running, end)
		if len(b.running) == 0 && b.idle != nil {
			close(b.idle)
			b.idle = nil
		}
	}, nil
}

// stop ends the running bundles with why and waits for them. No bundle can begin until
// resume is called.
func (b *bundles) stop(ctx context.Context, why error) (resume func(), err error) {
	b.mu.Lock()
	b.purging++
	b.why = why
	resume = sync.OnceFunc(func() {
		b.mu.Lock()
		defer b.mu.Unlock()
		b.purging--
	})
	var idle chan struct{}
	if len(b.running) > 0 {
		if b.idle == nil {
			b.idle = make(chan struct{})
		}
		idle = b.idle
	}
	for end := range b.running {
		(*end)(why)
	}
	b.mu.Unlock()
	if idle == nil {
		return resume, nil
	}
	select {
	case <-idle:
		return resume, nil
	case <-ctx.Done():
		resume()
		return nil, ctx.Err()
	}
}
