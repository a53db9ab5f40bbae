package gitstore

import (
	"bytes"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strconv"
	"strings"
	"syscall"

	"github.com/go-git/go-git/v5/plumbing"

	"satchel/internal/space"
)

// hash is an object name.
type hash = plumbing.Hash

// kind is what an object is: plumbing.BlobObject, TreeObject, CommitObject.
type kind = plumbing.ObjectType

// errNoObject is returned for an object that the repository does not have.
var errNoObject = errors.New("no such object")

// errDamaged is the error for an object that cannot be read or does not match its
// name.
var errDamaged = errors.New("the object is damaged")

// asDamage marks an error of reading an object as damage, unless the system refused
// to read, for example because too many files are open.
func asDamage(err error) error {
	var refused *fs.PathError
	switch {
	case err == nil, errors.Is(err, errDamaged), errors.Is(err, errNoObject):
		return err
	case errors.As(err, &refused) && !errors.Is(err, syscall.EIO):
		return err
	}
	return fmt.Errorf("%w: %w", errDamaged, err)
}

// unreadable reports whether err says that an object is damaged or missing.
func unreadable(err error) bool { return errors.Is(err, errDamaged) || errors.Is(err, errNoObject) }

// damagedAt adds the path of a file to an error that says that its object cannot be
// read. It returns other errors unchanged.
func damagedAt(path string, err error) error {
	if !unreadable(err) {
		return err
	}
	return space.Damaged(space.Path(path), err)
}

// damagedIn is damagedAt for a directory.
func damagedIn(dir string, err error) error {
	if !unreadable(err) {
		return err
	}
	return space.DamagedDirectory(space.Path(strings.TrimSuffix(dir, "/")), err)
}

// object is one decoded object. Its data is shared and never written.
type object struct {
	kind kind
	data []byte
}

func hashFrom(hex40 string) (hash, error) {
	var h hash
	if len(hex40) != 40 {
		return h, fmt.Errorf("object name %q: not 40 digits", hex40)
	}
	if _, err := hex.Decode(h[:], []byte(hex40)); err != nil {
		return h, fmt.Errorf("object name %q: %w", hex40, err)
	}
	return h, nil
}

func blobID(h hash) space.BlobID     { return space.BlobID(h.String()) }
func commitID(h hash) space.CommitID { return space.CommitID(h.String()) }

// Modes of tree entries.
const (
	modeDir     = 0o040000
	modeRegular = 0o100644
	modeExec    = 0o100755
	modeSymlink = 0o120000
	modeGitlink = 0o160000
)

// treeEntry is one name in a tree.
type treeEntry struct {
	name string
	mode uint32
	hash hash
}

func (e treeEntry) isDir() bool  { return e.mode&0o170000 == modeDir }
func (e treeEntry) isLink() bool { return e.mode&0o170000 == modeSymlink }

// isPlain tells of a file that is no link.
func (e treeEntry) isPlain() bool { return e.mode&0o170000 == 0o100000 }
func (e treeEntry) isFile() bool  { return e.isPlain() || e.isLink() }

// fileMode gives a file's mode in our words. Old repositories hold modes such
// as 100664, which git reads as 100644.
func (e treeEntry) fileMode() space.Mode {
	switch {
	case e.isLink():
		return space.Symlink
	case e.mode&0o100 != 0:
		return space.Executable
	}
	return space.Regular
}

func treeMode(m space.Mode) uint32 {
	switch m {
	case space.Executable:
		return modeExec
	case space.Symlink:
		return modeSymlink
	}
	return modeRegular
}

// parseTree decodes a tree object.
func parseTree(data []byte) ([]treeEntry, error) {
	es := make([]treeEntry, 0, len(data)/36+1)
	for len(data) > 0 {
		sp := bytes.IndexByte(data, ' ')
		nul := bytes.IndexByte(data, 0)
		if sp <= 0 || sp > 7 || nul < sp+2 || len(data) < nul+21 {
			return nil, errors.New("malformed tree")
		}
		mode, err := strconv.ParseUint(string(data[:sp]), 8, 32)
		if err != nil {
			return nil, fmt.Errorf("malformed tree: %w", err)
		}
		e := treeEntry{name: string(data[sp+1 : nul]), mode: uint32(mode)}
		copy(e.hash[:], data[nul+1:])
		es = append(es, e)
		data = data[nul+21:]
	}
	return es, nil
}

// encodeTree sorts the entries as git does and encodes them.
func encodeTree(es []treeEntry) []byte {
	slices.SortFunc(es, compareEntries)
	n := 0
	for _, e := range es {
		n += len(e.name) + 28
	}
	b := make([]byte, 0, n)
	for _, e := range es {
		b = strconv.AppendUint(b, uint64(e.mode), 8)
		b = append(b, ' ')
		b = append(b, e.name...)
		b = append(b, 0)
		b = append(b, e.hash[:]...)
	}
	return b
}

// compareEntries orders names as git's trees do: a directory's as if it ended
// in a slash.
func compareEntries(a, b treeEntry) int {
	n := min(len(a.name), len(b.name))
	if c := compareStrings(a.name[:n], b.name[:n]); c != 0 {
		return c
	}
	return int(byteAt(a, n)) - int(byteAt(b, n))
}

func byteAt(e treeEntry, i int) byte {
	switch {
	case i < len(e.name):
		return e.name[i]
	case e.isDir():
		return '/'
	}
	return 0
}

func compareStrings(a, b string) int {
	switch {
	case a < b:
		return -1
	case a > b:
		return 1
	}
	return 0
}
