package gitstore

import (
	"errors"
	"os"
	"path/filepath"
	"strings"

	"satchel/gitstore/gitcmd"
	"satchel/internal/fault"
)

const diskFullText = "The server's disk is full, so nothing was changed. Once its operator has made room, try again."

// explainDisk turns an error caused by a full disk into a fault.Unavailable. It returns
// other errors unchanged.
func explainDisk(err error) error {
	if fault.CodeOf(err) == fault.Internal && isDiskFull(err) {
		return fault.Wrap(err, fault.Unavailable, diskFullText)
	}
	return err
}

// isDiskFull reports whether an error, or git's message in it, says that the disk or a
// quota is full.
func isDiskFull(err error) bool {
	var g *gitcmd.Error
	if errors.As(err, &g) {
		for _, words := range []string{"No space left on device", "Out of diskspace", "Disk quota exceeded"} {
			if strings.Contains(g.Stderr, words) {
				return true
			}
		}
		return false
	}
	for _, e := range diskFullErrors {
		if errors.Is(err, e) {
			return true
		}
	}
	return false
}

// probeBytes is how many bytes CheckWrite writes, about the size of a small commit.
const probeBytes = 64 << 10

// CheckWrite checks whether commits can be stored now. It writes a small file and
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
