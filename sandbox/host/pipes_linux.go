package host

import (
	"errors"
	"fmt"
	"io"
	"os"
	"sync"
	"time"
)

// Stdio is this side of the standard streams of a process 1. Pipes alone may
// become those: gVisor overwrites a regular file at stale offsets, and crun
// gives whatever it finds there, a device of the host's too, to the user inside.
type Stdio struct {
	io.ReadWriteCloser // its standard output and input

	errOut *os.File
	tail   *Tail
	drain  sync.WaitGroup
}

// NewStdio makes the pipes; theirs are the ends for process 1, which the
// caller closes.
func NewStdio() (s *Stdio, theirs []*os.File, err error) {
	var all []*os.File
	for range 3 {
		r, w, err := os.Pipe()
		if err != nil {
			for _, f := range all {
				f.Close()
			}
			return nil, nil, fmt.Errorf("making the sandbox's pipes: %w", err)
		}
		all = append(all, r, w)
	}
	s = &Stdio{ReadWriteCloser: &pipes{r: all[2], w: all[1]}, errOut: all[4], tail: NewTail(8 << 10)}
	s.drain.Go(func() { _, _ = io.Copy(s.tail, s.errOut) })
	return s, []*os.File{all[0], all[3], all[5]}, nil
}

// Stderr returns the end of what process 1 has written to its standard error,
// for logs: quoted by their handlers.
func (s *Stdio) Stderr() string { return s.tail.String() }

// Finish is called once process 1 is gone. It returns when what it wrote to
// its standard error is here; the other two streams stay open.
func (s *Stdio) Finish() {
	// The other end of this pipe is gone, so its reader ends by itself; the
	// deadline is for the case that it is not.
	_ = s.errOut.SetReadDeadline(time.Now().Add(time.Second))
	s.drain.Wait()
	s.errOut.Close()
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

// Tail keeps the last bytes written to it, by however many at once.
type Tail struct {
	mu  sync.Mutex
	max int
	b   []byte
	cut bool
}

// NewTail returns a Tail of so many bytes.
func NewTail(max int) *Tail { return &Tail{max: max} }

// Write never fails.
func (t *Tail) Write(b []byte) (int, error) {
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

// String returns what was kept.
func (t *Tail) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.cut {
		return "…" + string(t.b)
	}
	return string(t.b)
}
