package gvisor

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"sync"

	"satchel/internal/space"
	"satchel/sandbox/gvisor/link"
	"satchel/sandbox/host"
)

var _ space.Sandbox = (*sandbox)(nil)

// sandbox is the Runtime's side of one sandbox.
type sandbox struct {
	id    space.SandboxID
	child *child
	stdio *host.Stdio

	once sync.Once
	done chan struct{}
	err  error // set before done is closed
}

// newSandbox creates the pipes of a sandbox; theirs are the ends for process 1.
func newSandbox(c *child, id space.SandboxID) (s *sandbox, theirs []*os.File, err error) {
	s = &sandbox{id: id, child: c, done: make(chan struct{})}
	s.stdio, theirs, err = host.NewStdio()
	return s, theirs, err
}

// finish marks the sandbox as gone, for the reason err.
func (s *sandbox) finish(err error) {
	s.once.Do(func() {
		s.err = err
		s.stdio.Finish()
		close(s.done)
	})
}

// Conn implements space.Sandbox.
func (s *sandbox) Conn() io.ReadWriteCloser { return s.stdio }

// Done implements space.Sandbox.
func (s *sandbox) Done() <-chan struct{} { return s.done }

// Err implements space.Sandbox.
func (s *sandbox) Err() error {
	select {
	case <-s.done:
		return s.err
	default:
		return nil
	}
}

// ended reports whether the sandbox is gone.
func (s *sandbox) ended() bool {
	select {
	case <-s.done:
		return true
	default:
		return false
	}
}

// Stats implements space.Sandbox.
func (s *sandbox) Stats(ctx context.Context) (space.SandboxStats, error) {
	m, err := s.child.call(ctx, link.Message{Op: link.Stats, Sandbox: s.id})
	if err != nil {
		return space.SandboxStats{}, err
	}
	if m.Stats == nil {
		return space.SandboxStats{}, errors.New("the sandbox runtime process gave no figures")
	}
	return *m.Stats, nil
}

// Stop implements space.Sandbox. It closes Conn. The child reports the end before it
// answers, so Done is closed when Stop returns nil.
func (s *sandbox) Stop(ctx context.Context) error {
	defer s.stdio.Close()
	select {
	case <-s.done:
		return nil
	default:
	}
	_, err := s.child.insist(ctx, link.Message{Op: link.Stop, Sandbox: s.id})
	if errors.Is(err, errChildGone) || errors.Is(err, errClosed) {
		// The sandbox dies with the child, and done is closed when the sandbox is gone.
		select {
		case <-s.done:
			return nil
		case <-ctx.Done():
			err = ctx.Err()
		}
	}
	if err != nil {
		return fmt.Errorf("stopping sandbox %s: %w", s.id, err)
	}
	return nil
}
