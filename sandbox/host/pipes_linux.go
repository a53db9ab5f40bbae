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
// become those: gVisor overwrites a regular file at stale offsets.
type Stdio struct {
	io.ReadWriteCloser // its standard output and input

	errOut *os.File
	said   *Ends
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
	s = &Stdio{ReadWriteCloser: &pipes{r: all[2], w: all[1]}, errOut: all[4], said: NewEnds(2<<10, 6<<10)}
	s.drain.Go(func() { _, _ = io.Copy(s.said, s.errOut) })
	return s, []*os.File{all[0], all[3], all[5]}, nil
}

// Stderr returns the beginning and the end of what process 1 has written to its
// standard error, for logs: quoted by their handlers.
func (s *Stdio) Stderr() string { return s.said.String() }

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

// Ends keeps the first and the last bytes written to it, by however many at
// once: a Go program that dies says why before it tells of every goroutine.
type Ends struct {
	mu          sync.Mutex
	first, last int // how many bytes at most
	head, tail  []byte
	cut         bool
}

// NewEnds returns an Ends of so many bytes.
func NewEnds(first, last int) *Ends { return &Ends{first: first, last: last} }

// Write never fails.
func (e *Ends) Write(b []byte) (int, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	n := len(b)
	room := min(e.first-len(e.head), len(b))
	e.head, b = append(e.head, b[:room]...), b[room:]
	if len(b) > e.last {
		e.tail, b, e.cut = e.tail[:0], b[len(b)-e.last:], true
	}
	if over := len(e.tail) + len(b) - e.last; over > 0 {
		e.tail, e.cut = append(e.tail[:0], e.tail[over:]...), true
	}
	e.tail = append(e.tail, b...)
	return n, nil
}

// String returns what was kept, with an ellipsis for what was not.
func (e *Ends) String() string {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.cut {
		return string(e.head) + "…" + string(e.tail)
	}
	return string(e.head) + string(e.tail)
}
