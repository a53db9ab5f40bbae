package pending

import (
	"bytes"
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"time"

	"satchel/internal/fault"
	"satchel/internal/space"
)

// A place (one user's directory for one space) holds one sealed file "index" with the records,
// and a sealed file for each content over maxInline. A rename replaces the index. Files that
// the index does not name are garbage.
const (
	indexName = "index"
	blobExt   = ".blob"
	newExt    = ".new"
	asideExt  = ".unreadable"
	purpose   = "held"
	// maxInline is the size up to which a content is stored in the index itself, so that
	// most changes take one file and two fsyncs.
	maxInline = 4 << 10
)

// record is a File as stored in the index. Path is bytes, because JSON text cannot hold
// every file name.
type record struct {
	Path     []byte
	Mode     space.Mode
	Size     int64
	Content  []byte `json:",omitempty"` // set if Blob is empty
	Blob     string `json:",omitempty"` // the name of the file with the content
	Base     space.BlobID
	BaseMode space.Mode
	Why      string
	Code     fault.Code
	Lost     string `json:",omitempty"`
	Since    time.Time
}

func recordOf(f File) record {
	return record{
		Path: []byte(f.Path), Mode: f.Mode, Size: int64(len(f.Content)), Content: f.Content,
		Base: f.Base, BaseMode: f.BaseMode, Why: f.Why, Code: f.Code, Lost: f.Lost, Since: f.Since,
	}
}

func (r record) file() File {
	return File{
		Path: string(r.Path), Mode: r.Mode, Content: r.Content,
		Base: r.Base, BaseMode: r.BaseMode, Why: r.Why, Code: r.Code, Lost: r.Lost, Since: r.Since,
	}
}

// index lists the records of a place, sorted by path.
type index struct{ Records []record }

func (x *index) find(p string) (int, bool) {
	return slices.BinarySearchFunc(x.Records, p, func(r record, p string) int { return strings.Compare(string(r.Path), p) })
}

func (x *index) has(p string) bool {
	_, ok := x.find(p)
	return ok
}

func (x *index) get(p string) (record, bool) {
	if i, ok := x.find(p); ok {
		return x.Records[i], true
	}
	return record{}, false
}

func (x *index) set(r record) {
	i, ok := x.find(string(r.Path))
	if ok {
		x.Records[i] = r
	} else {
		x.Records = slices.Insert(x.Records, i, r)
	}
}

func (x *index) without(drop []string) index {
	gone := make(map[string]bool, len(drop))
	for _, p := range drop {
		gone[p] = true
	}
	var left index
	for _, r := range x.Records {
		if !gone[string(r.Path)] {
			left.Records = append(left.Records, r)
		}
	}
	return left
}

func (s *Store) readIndex(p place) (index, error) {
	var x index
	sealed, err := os.ReadFile(filepath.Join(p.dir, indexName))
	if errors.Is(err, fs.ErrNotExist) {
		return x, nil
	}
	if err != nil {
		return x, fmt.Errorf("read held files: %w", err)
	}
	text, err := s.o.Seal.Open(sealed, purpose, p.subject)
	if err != nil {
		return x, err
	}
	d := json.NewDecoder(bytes.NewReader(text))
	d.DisallowUnknownFields()
	if err := d.Decode(&x); err != nil {
		return index{}, fault.Wrap(err, fault.Invalid, "The list of unsaved files is in a format that this version cannot read.")
	}
	return x, nil
}

func (s *Store) readBlob(p place, r record) ([]byte, error) {
	if filepath.Base(r.Blob) != r.Blob {
		return nil, fault.New(fault.Invalid, "The list of unsaved files names a file in another place.")
	}
	sealed, err := os.ReadFile(filepath.Join(p.dir, r.Blob))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fault.Wrap(err, fault.Invalid, "An unsaved file is missing on the server's disk.")
	}
	if err != nil {
		return nil, fmt.Errorf("read a held file: %w", err)
	}
	content, err := s.o.Seal.Open(sealed, purpose, p.subject+"/"+r.Blob)
	if err != nil {
		return nil, err
	}
	if int64(len(content)) != r.Size {
		return nil, fault.New(fault.Invalid, "The size of an unsaved file differs from its size in the list.")
	}
	return content, nil
}

func (s *Store) writeBlob(p place, content []byte) (string, error) {
	var b [16]byte
	rand.Read(b[:])
	name := hex.EncodeToString(b[:]) + blobExt
	sealed, err := s.o.Seal.Seal(content, purpose, p.subject+"/"+name)
	if err != nil {
		return "", err
	}
	if err := makeDir(p.dir); err != nil {
		return "", err
	}
	return name, writeFile(filepath.Join(p.dir, name), sealed)
}

// replace makes next the index of a place, and removes the files that next does not name.
func (s *Store) replace(p place, next index) error {
	if len(next.Records) == 0 {
		// Remove the index first: without the index, the other files are garbage.
		if err := os.Remove(filepath.Join(p.dir, indexName)); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("remove held files: %w", err)
		}
		if err := syncDir(p.dir); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		s.sweep(p, next)
		_ = os.Remove(p.dir)               // fails if another file is left
		_ = os.Remove(filepath.Dir(p.dir)) // fails if the user has files in other spaces
		return nil
	}
	text, err := json.Marshal(next)
	if err != nil {
		return fmt.Errorf("write held files: %w", err)
	}
	sealed, err := s.o.Seal.Seal(text, purpose, p.subject)
	if err != nil {
		return err
	}
	if err := makeDir(p.dir); err != nil {
		return err
	}
	name := filepath.Join(p.dir, indexName)
	if err := writeFile(name+newExt, sealed); err != nil {
		return err
	}
	if err := os.Rename(name+newExt, name); err != nil {
		return fmt.Errorf("write held files: %w", err)
	}
	if err := syncDir(p.dir); err != nil {
		return err
	}
	s.sweep(p, next)
	return nil
}

// sweep removes the files that the index does not name. If a file cannot be removed, a
// later sweep removes it.
func (s *Store) sweep(p place, x index) {
	named := map[string]bool{indexName: true}
	for _, r := range x.Records {
		named[r.Blob] = true
	}
	entries, err := os.ReadDir(p.dir)
	if err != nil {
		return
	}
	for _, e := range entries {
		if ext := filepath.Ext(e.Name()); !named[e.Name()] && (ext == blobExt || ext == newExt) {
			if err := os.Remove(filepath.Join(p.dir, e.Name())); err != nil {
				s.o.Logger.Warn("a file that is no longer held could not be removed", "err", err)
			}
		}
	}
}

// setAside renames a place that cannot be read, so that an operator with the right key
// can still read it. No space can have the new name.
func (s *Store) setAside(p place) error {
	var b [4]byte
	rand.Read(b[:])
	to := p.dir + "." + hex.EncodeToString(b[:]) + asideExt
	if err := os.Rename(p.dir, to); err != nil {
		return fmt.Errorf("set aside held files that cannot be read: %w", err)
	}
	s.o.Logger.Error("held files cannot be read with this server's key and were set aside", "dir", to)
	return syncDir(filepath.Dir(p.dir))
}

// makeDir creates a place and the directory of its user, durably.
func makeDir(dir string) error {
	if _, err := os.Stat(dir); err == nil {
		return nil
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return fmt.Errorf("make the directory of held files: %w", err)
	}
	if err := syncDir(filepath.Dir(dir)); err != nil {
		return err
	}
	return syncDir(filepath.Dir(filepath.Dir(dir)))
}

func writeFile(name string, b []byte) error {
	f, err := os.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return fmt.Errorf("write held files: %w", err)
	}
	_, err = f.Write(b)
	if err == nil {
		err = f.Sync()
	}
	if err := errors.Join(err, f.Close()); err != nil {
		_ = os.Remove(name)
		return fmt.Errorf("write held files: %w", err)
	}
	return nil
}

func syncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return fmt.Errorf("sync held files: %w", err)
	}
	err = d.Sync()
	if runtime.GOOS == "windows" {
		err = nil // Windows cannot sync a directory, and keeps its entries in order itself
	}
	if err := errors.Join(err, d.Close()); err != nil {
		return fmt.Errorf("sync held files: %w", err)
	}
	return nil
}
