package packfile

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

// Hash is the name of an object.
type Hash = plumbing.Hash

// Kind is the type of an object, such as plumbing.BlobObject.
type Kind = plumbing.ObjectType

// ErrNotFound is returned for an object that the repository does not have.
var ErrNotFound = errors.New("no such object")

// ErrDamaged is the error for an object that cannot be read or does not match its
// name.
var ErrDamaged = errors.New("the object is damaged")

// asDamage marks an error of reading an object as damage, unless the system refused
// to read, for example because too many files are open.
func asDamage(err error) error {
	var refused *fs.PathError
	switch {
	case err == nil, errors.Is(err, ErrDamaged), errors.Is(err, ErrNotFound):
		return err
	case errors.As(err, &refused) && !errors.Is(err, syscall.EIO):
		return err
	}
	return fmt.Errorf("%w: %w", ErrDamaged, err)
}

// Unreadable reports whether err says that an object is damaged or missing.
func Unreadable(err error) bool { return errors.Is(err, ErrDamaged) || errors.Is(err, ErrNotFound) }

// DamagedAt adds the path of a file to an error that says that its object cannot be
// read. It returns other errors unchanged.
func DamagedAt(path string, err error) error {
	if !Unreadable(err) {
		return err
	}
	return space.Damaged(space.Path(path), err)
}

// DamagedIn is like DamagedAt, for a directory.
func DamagedIn(dir string, err error) error {
	if !Unreadable(err) {
		return err
	}
	return space.DamagedDirectory(space.Path(strings.TrimSuffix(dir, "/")), err)
}

// Object is one decoded object. Its data is shared and must not be changed.
type Object struct {
	Kind Kind
	Data []byte
}

// HashFrom parses a hash of 40 hexadecimal digits.
func HashFrom(hex40 string) (Hash, error) {
	var h Hash
	if len(hex40) != 40 {
		return h, fmt.Errorf("object name %q: not 40 digits", hex40)
	}
	if _, err := hex.Decode(h[:], []byte(hex40)); err != nil {
		return h, fmt.Errorf("object name %q: %w", hex40, err)
	}
	return h, nil
}

// BlobID returns a hash as the ID of a blob.
func BlobID(h Hash) space.BlobID { return space.BlobID(h.String()) }

// CommitID returns a hash as the ID of a commit.
func CommitID(h Hash) space.CommitID { return space.CommitID(h.String()) }

// Modes of tree entries.
const (
	ModeDir     = 0o040000
	ModeRegular = 0o100644
	ModeExec    = 0o100755
	ModeSymlink = 0o120000
	ModeGitlink = 0o160000
)

// TreeEntry is one name in a tree.
type TreeEntry struct {
	Name string
	Mode uint32
	Hash Hash
}

// IsDir reports whether the entry is a directory.
func (e TreeEntry) IsDir() bool { return e.Mode&0o170000 == ModeDir }

// IsLink reports whether the entry is a symbolic link.
func (e TreeEntry) IsLink() bool { return e.Mode&0o170000 == ModeSymlink }

// IsPlain reports whether the entry is a file but not a symbolic link.
func (e TreeEntry) IsPlain() bool { return e.Mode&0o170000 == 0o100000 }

// IsFile reports whether the entry is a file or a symbolic link.
func (e TreeEntry) IsFile() bool { return e.IsPlain() || e.IsLink() }

// FileMode converts the mode of a file. Old repositories contain modes such as 100664,
// which git reads as 100644.
func (e TreeEntry) FileMode() space.Mode {
	switch {
	case e.IsLink():
		return space.Symlink
	case e.Mode&0o100 != 0:
		return space.Executable
	}
	return space.Regular
}

// TreeMode returns the mode that trees store for m.
func TreeMode(m space.Mode) uint32 {
	switch m {
	case space.Executable:
		return ModeExec
	case space.Symlink:
		return ModeSymlink
	}
	return ModeRegular
}

// ParseTree decodes a tree object.
func ParseTree(data []byte) ([]TreeEntry, error) {
	es := make([]TreeEntry, 0, len(data)/36+1)
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
		e := TreeEntry{Name: string(data[sp+1 : nul]), Mode: uint32(mode)}
		copy(e.Hash[:], data[nul+1:])
		es = append(es, e)
		data = data[nul+21:]
	}
	return es, nil
}

// EncodeTree sorts the entries as git does and encodes them.
func EncodeTree(es []TreeEntry) []byte {
	slices.SortFunc(es, compareEntries)
	n := 0
	for _, e := range es {
		n += len(e.Name) + 28
	}
	b := make([]byte, 0, n)
	for _, e := range es {
		b = strconv.AppendUint(b, uint64(e.Mode), 8)
		b = append(b, ' ')
		b = append(b, e.Name...)
		b = append(b, 0)
		b = append(b, e.Hash[:]...)
	}
	return b
}

// compareEntries orders names as in git's trees: a directory's name as if it ended in a
// slash.
func compareEntries(a, b TreeEntry) int {
	n := min(len(a.Name), len(b.Name))
	if c := CompareStrings(a.Name[:n], b.Name[:n]); c != 0 {
		return c
	}
	return int(byteAt(a, n)) - int(byteAt(b, n))
}

func byteAt(e TreeEntry, i int) byte {
	switch {
	case i < len(e.Name):
		return e.Name[i]
	case e.IsDir():
		return '/'
	}
	return 0
}

// CompareStrings compares two names byte by byte, as strings.Compare does.
func CompareStrings(a, b string) int {
	switch {
	case a < b:
		return -1
	case a > b:
		return 1
	}
	return 0
}
