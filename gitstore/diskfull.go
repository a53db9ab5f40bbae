package gitstore

import (
	"errors"
	"strings"

	"satchel/gitstore/gitcmd"
	"satchel/internal/fault"
)

const diskFullText = "The server's disk is full, so nothing was changed. Once its operator has made room, try again."

// explainDisk makes a fault.Unavailable of an error by a full disk, and leaves
// any other as it is.
func explainDisk(err error) error {
	if fault.CodeOf(err) == fault.Internal && isDiskFull(err) {
		return fault.Wrap(err, fault.Unavailable, diskFullText)
	}
	return err
}

// isDiskFull reports whether an error, or what git said, is that there is no room
// on the disk or in a quota of it.
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
