package agent

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"testing"
)

// Whatever the sizes of the writes, head, tail, count and file are exact.
func TestCapture(t *testing.T) {
	for _, half := range []int{0, 1, 5, 100} {
		for _, total := range []int{0, 1, 2, 9, 10, 11, 150, 200, 201, 1000, 5000} {
			for _, part := range []int{1, 3, 7, 64, 5000} {
				t.Run(fmt.Sprintf("half %d total %d part %d", half, total, part), func(t *testing.T) {
					path := filepath.Join(t.TempDir(), "out")
					const size = 600
					c := &capture{half: half, openSpool: func() *spool { return newSpool(path, size) }}
					all := make([]byte, total)
					for i := range all {
						all[i] = byte(i % 251)
					}
					for b := all; len(b) > 0; {
						n := min(part, len(b))
						c.write(b[:n])
						b = b[n:]
					}
					c.finish()
					o := c.output()
					head := all[:min(half, total)]
					tail := all[max(total-half, len(head)):]
					if !bytes.Equal(o.Head, head) || !bytes.Equal(o.Tail, tail) || o.Dropped != int64(total-len(head)-len(tail)) {
						t.Errorf("%d %d %d", len(o.Head), len(o.Tail), o.Dropped)
					}
					file, err := os.ReadFile(path)
					if (err == nil) != (o.Dropped > 0) {
						t.Errorf("dropped %d, file: %v", o.Dropped, err)
					}
					want := all
					if total > size {
						want = fmt.Appendf(bytes.Clone(all[:size/2]), "\n[... %d bytes left out ...]\n%s", total-size, all[total-size/2:])
					}
					if err == nil && !bytes.Equal(file, want) {
						t.Errorf("the file has %d bytes, want %d", len(file), len(want))
					}
				})
			}
		}
	}
}

func TestCaptureAttachedLate(t *testing.T) {
	path := filepath.Join(t.TempDir(), "out")
	c := &capture{half: 4, openSpool: func() *spool { t.Error("opened twice"); return nil }}
	c.write([]byte("abcdef"))
	c.attach(func() *spool { return newSpool(path, 100) })
	c.write([]byte("ghijkl"))
	c.finish()
	if b, err := os.ReadFile(path); err != nil || string(b) != "abcdefghijkl" {
		t.Errorf("%q %v", b, err)
	}
	if string(c.takeLive()) != "abcdefghijkl" || c.takeLive() != nil {
		t.Error("live")
	}
}

// A file that cannot be made costs the file alone.
func TestCaptureWithoutAFile(t *testing.T) {
	c := &capture{half: 2, openSpool: func() *spool { return newSpool(filepath.Join(t.TempDir(), "no/such"), 10) }}
	for range 10 {
		c.write([]byte("abc"))
	}
	c.finish()
	if o := c.output(); string(o.Head) != "ab" || string(o.Tail) != "bc" || o.Dropped != 26 {
		t.Errorf("%+v", o)
	}
}
