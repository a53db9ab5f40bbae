package gitstore

import (
	"errors"
	"os"
	"path/filepath"
)

// probeBytes is how much CheckWrite writes: about what a small commit takes.
const probeBytes = 64 << 10

// CheckWrite checks whether commits can be stored now: it writes a small file and
// removes it. A full disk is a fault.Unavailable.
func (s *Store) CheckWrite() (err error) {
	f, err := os.CreateTemp(filepath.Join(s.o.Dir, quarantineDir), "probe-")
	if err != nil {
		return explainDisk(err)
	}
	defer func() { err = explainDisk(errors.Join(err, f.Close(), os.Remove(f.Name()))) }()
	if _, err := f.Write(make([]byte, probeBytes)); err != nil {
		return err
	}
	return s.o.Sync(f)
}
