package host

import (
	"errors"
	"fmt"
	"io"
	"os"
	"sync"
	"time"
)

// Stdio is the host's end of the standard streams of process 1 in a sandbox. The streams are
// always pipes, because gVisor overwrites a regular file at stale offsets.
type Stdio struct {
	io.ReadWriteCloser // reads the standard output and writes the standard input of process 1

	errOut *os.File
	said   *Ends
	drain  sync.WaitGroup
}

// NewStdio creates the pipes. theirs are the ends for process 1, which the caller closes.
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

// Stderr returns the beginning and the end of the standard error of process 1, for logs
// whose handlers quote it.
func (s *Stdio) Stderr() string { return s.said.String() }

// Finish waits until all standard error of process 1 has been read. Call it after process
// 1 has ended. The other two streams stay open.
func (s *Stdio) Finish() {
	// The other end of this pipe is gone, so its reader ends by itself. The deadline is a
	// precaution.
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

// Close ends a Read or a Write in progress.
func (p *pipes) Close() error {
	p.once.Do(func() { p.err = errors.Join(p.r.Close(), p.w.Close()) })
	return p.err
}

// Ends keeps the first and the last bytes written to it. It is safe for concurrent use.
// Both ends matter: a Go program that dies prints the reason before its goroutines.
type Ends struct {
	mu          sync.Mutex
	first, last int // limits in bytes
	head, tail  []byte
	cut         bool
}

// NewEnds returns an Ends that keeps the given numbers of bytes.
func NewEnds(first, last int) *Ends { return &Ends{first: first, last: last} }

// Write never returns an error.
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

// String returns the kept bytes, with an ellipsis in place of the others.
func (e *Ends) String() string {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.cut {
		return string(e.head) + "…" + string(e.tail)
	}
	return string(e.head) + string(e.tail)
}
