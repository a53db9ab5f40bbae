package trees

import (
	"strings"

	"satchel/gitstore/packfile"
	"satchel/internal/fault"
	"satchel/internal/space"
)

// MaxDepth is the deepest nesting of directories that is followed.
const MaxDepth = 512

// ErrTooDeep returns the fault.Invalid for directories that are nested deeper than
// MaxDepth.
func ErrTooDeep() error {
	return fault.New(fault.Invalid, "The repository has directories that are nested more than %d deep.", MaxDepth)
}

// Budget limits one walk over trees. It counts the entries and directories that the walk visits,
// and the bytes of their paths.
type Budget struct {
	limit             int
	entries, dirs     int
	text              int64
	maxDirs, maxBytes int64
	// Unread, if not nil, collects the paths of directories that cannot be read, and
	// the walk skips them. An unreadable top directory is still an error.
	Unread *[]string
}

// passes reports whether a walk skips an unreadable directory, and records the
// directory.
func (b *Budget) passes(prefix string, err error) bool {
	if b.Unread == nil || prefix == "" || !packfile.Unreadable(err) {
		return false
	}
	*b.Unread = append(*b.Unread, strings.TrimSuffix(prefix, "/"))
	return true
}

// dirsPerEntry is the number of directories that a walk may visit for each file of its limit.
// Ordinary trees need no more. A hostile tree can have any number of directories and no files.
const dirsPerEntry = 8

// Budget returns a new budget for one walk.
func (r Reader) Budget() *Budget {
	n := r.MaxPaths
	return &Budget{limit: n, maxDirs: int64(n) * dirsPerEntry, maxBytes: int64(n) * space.MaxPathBytes / 2}
}

func (b *Budget) over() error {
	return fault.New(fault.TooLarge, "A commit of this history differs from another in more than %d paths, which is too many to compare.", b.limit)
}

// dir counts a directory.
func (b *Budget) dir() error {
	if b.dirs++; int64(b.dirs) > b.maxDirs {
		return b.over()
	}
	return nil
}

// entry counts a path.
func (b *Budget) entry(path string) error {
	b.entries++
	b.text += int64(len(path))
	if b.entries > b.limit || b.text > b.maxBytes {
		return b.over()
	}
	return nil
}

// Fits reports whether a walk over that many files and directories stays within the
// budget. text is the size of all paths in bytes.
func (b *Budget) Fits(files, dirs int, text int64) bool {
	return files <= b.limit && int64(dirs) <= b.maxDirs && text <= b.maxBytes
}
