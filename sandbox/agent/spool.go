package agent

import (
	"fmt"
	"io"
	"os"
)

// spool is a file inside the sandbox with the output of one stream. It gets the first half as it
// arrives, and the newest half when finish is called. Only the agent can write to its directory.
type spool struct {
	path string
	file *os.File // the beginning
	ring *os.File // the newest bytes, nameless; nil until the beginning is full
	half int64
	n    int64 // bytes accepted so far
	bad  bool  // a write failed, for example on a full file system: later output is lost
}

// newSpool creates a private file that must not exist yet. It returns nil if it cannot,
// because the command matters more than its output.
func newSpool(path string, size int64) *spool {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return nil
	}
	return &spool{path: path, file: f, half: max(size/2, 1)}
}

func (s *spool) write(p []byte) {
	if s.bad {
		return
	}
	if room := s.half - s.n; room > 0 {
		n := min(room, int64(len(p)))
		if _, err := s.file.Write(p[:n]); err != nil {
			s.bad = true
			return
		}
		s.n += n
		p = p[n:]
	}
	for len(p) > 0 && !s.bad {
		if s.ring == nil {
			name := s.path + ".ring"
			f, err := os.OpenFile(name, os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o600)
			if err != nil {
				s.bad = true
				return
			}
			os.Remove(name)
			s.ring = f
		}
		at := (s.n - s.half) % s.half
		n := min(s.half-at, int64(len(p)))
		if _, err := s.ring.WriteAt(p[:n], at); err != nil {
			s.bad = true
			return
		}
		s.n += n
		p = p[n:]
	}
}

// finish appends the end to the beginning, with a line between them if something is
// missing, and closes the file.
func (s *spool) finish() {
	defer s.file.Close()
	if s.ring == nil {
		return
	}
	defer s.ring.Close()
	length, from := s.n-s.half, int64(0)
	if length > s.half {
		from = length % s.half
		fmt.Fprintf(s.file, "\n[... %d bytes left out ...]\n", length-s.half)
		length = s.half
	}
	// A full file system truncates the file; only its length shows this.
	if _, err := io.Copy(s.file, io.NewSectionReader(s.ring, from, length-from)); err == nil {
		_, _ = io.Copy(s.file, io.NewSectionReader(s.ring, 0, from))
	}
}
