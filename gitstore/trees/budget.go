package trees

import (
	"strings"

	"satchel/gitstore/packfile"
	"satchel/internal/fault"
	"satchel/internal/space"
)

// MaxDepth bounds the recursion over trees from elsewhere.
const MaxDepth = 512

// ErrTooDeep is a fault.Invalid.
func ErrTooDeep() error {
	return fault.New(fault.Invalid, "The repository has directories that are nested more than %d deep.", MaxDepth)
}

// Budget is what is left of one walk over trees. It counts what the walk costs
// and what its caller keeps of it.
type Budget struct {
	limit             int
	entries, dirs     int
	text              int64
	maxDirs, maxBytes int64
	// Unread, if it is not nil, collects the directories that cannot be read, and
	// the walk skips them. An unreadable top directory is still an error.
	Unread *[]string
}

// passes reports whether a walk skips a directory that cannot be read.
func (b *Budget) passes(prefix string, err error) bool {
	if b.Unread == nil || prefix == "" || !packfile.Unreadable(err) {
		return false
	}
	*b.Unread = append(*b.Unread, strings.TrimSuffix(prefix, "/"))
	return true
}

// dirsPerEntry is how many directories a walk may visit for each file that it
// may: our own paths can have so many, and those of a bomb without a file more.
const dirsPerEntry = 8

// Budget returns the budget of one walk.
func (r Reader) Budget() *Budget {
	n := r.MaxPaths
	return &Budget{limit: n, maxDirs: int64(n) * dirsPerEntry, maxBytes: int64(n) * space.MaxPathBytes / 2}
}

func (b *Budget) over() error {
	return fault.New(fault.TooLarge, "A commit of this history differs in more than %d paths from the one that it is compared with, which is more than is looked through.", b.limit)
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

// Fits reports whether a walk over so many files and directories, whose paths have text
// bytes, stays within the budget.
func (b *Budget) Fits(files, dirs int, text int64) bool {
	return files <= b.limit && int64(dirs) <= b.maxDirs && text <= b.maxBytes
}
