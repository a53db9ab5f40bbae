package gvisor

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"sync"
	"time"

	"satchel/internal/space"
)

var _ space.Sandbox = (*sandbox)(nil)

// sandbox is the Runtime's side of one sandbox.
type sandbox struct {
	id     space.SandboxID
	child  *child
	conn   *pipes
	errOut *os.File // the agent's standard error
	stderr *tail
	drain  sync.WaitGroup

	once sync.Once
	done chan struct{}
	err  error // set before done is closed
}

// newSandbox makes the pipes of a sandbox; theirs are the ends for process 1.
func newSandbox(c *child, id space.SandboxID) (s *sandbox, theirs []*os.File, err error) {
	var all []*os.File
	defer func() {
		if err != nil {
			closeAll(all)
		}
	}()
	for range 3 {
		r, w, err := os.Pipe()
		if err != nil {
			return nil, nil, fmt.Errorf("making the sandbox's pipes: %w", err)
		}
		all = append(all, r, w)
	}
	s = &sandbox{
		id: id, child: c,
		conn:   &pipes{r: all[2], w: all[1]},
		errOut: all[4],
		stderr: newTail(8 << 10),
		done:   make(chan struct{}),
	}
	s.drain.Add(1)
	go func() {
		defer s.drain.Done()
		_, _ = io.Copy(s.stderr, s.errOut)
	}()
	return s, []*os.File{all[0], all[3], all[5]}, nil
}

// finish marks the sandbox as gone, for the reason err.
func (s *sandbox) finish(err error) {
	s.once.Do(func() {
		s.err = err
		// The other end of this pipe is gone, so its reader ends by itself; the
		// deadline is for the case that it is not.
		_ = s.errOut.SetReadDeadline(time.Now().Add(time.Second))
		s.drain.Wait()
		s.errOut.Close()
		close(s.done)
	})
}

// Conn implements space.Sandbox.
func (s *sandbox) Conn() io.ReadWriteCloser { return s.conn }

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

// Stats implements space.Sandbox.
func (s *sandbox) Stats(ctx context.Context) (space.SandboxStats, error) {
	m, err := s.child.call(ctx, message{Op: opStats, Sandbox: s.id})
	if err != nil {
		return space.SandboxStats{}, err
	}
	if m.Stats == nil {
		return space.SandboxStats{}, errors.New("the sandbox runtime process gave no figures")
	}
	return *m.Stats, nil
}

// Stop implements space.Sandbox. It closes Conn. The child tells of the end
// before it answers, so Done is closed when Stop returns nil.
func (s *sandbox) Stop(ctx context.Context) error {
	defer s.conn.Close()
	select {
	case <-s.done:
		return nil
	default:
	}
	_, err := s.child.call(ctx, message{Op: opStop, Sandbox: s.id})
	if errors.Is(err, errChildGone) || errors.Is(err, errClosed) {
		// It dies with its owner, and done tells when all of it is gone.
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

// pipes joins process 1's standard input and output.
type pipes struct {
	r, w *os.File
	once sync.Once
	err  error
}

func (p *pipes) Read(b []byte) (int, error)  { return p.r.Read(b) }
func (p *pipes) Write(b []byte) (int, error) { return p.w.Write(b) }

// Close ends a Read or a Write that is under way.
func (p *pipes) Close() error {
	p.once.Do(func() { p.err = errors.Join(p.r.Close(), p.w.Close()) })
	return p.err
}

// tail keeps the last bytes written to it.
type tail struct {
	mu  sync.Mutex
	max int
	b   []byte
	cut bool
}

func newTail(max int) *tail { return &tail{max: max} }

// Write never fails.
func (t *tail) Write(b []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	n := len(b)
	if n > t.max {
		b, t.cut = b[n-t.max:], true
	}
	if over := len(t.b) + len(b) - t.max; over > 0 {
		t.b, t.cut = append(t.b[:0], t.b[over:]...), true
	}
	t.b = append(t.b, b...)
	return n, nil
}

// String returns what was kept, for logs: quoted by their handlers.
func (t *tail) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.cut {
		return "…" + string(t.b)
	}
	return string(t.b)
}
