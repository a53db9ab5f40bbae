package packfile

import (
	"bytes"
	"compress/zlib"
	"crypto/sha1"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/go-git/go-git/v5/plumbing"
)

// DB reads the objects of one bare repository. It is safe for concurrent use. If a lookup finds
// nothing, DB reads the directory of packs again, so that it finds packs that were added or
// replaced.
type DB struct {
	Dir   string // the repository's objects directory
	Cache *Cache
	// Lender, if set before use, is another database whose objects are also objects of this
	// database. Every lookup searches Lender first.
	Lender *DB

	// Mu guards the fields up to bytes. Small has the objects of the packs with few objects.
	Mu    sync.RWMutex
	Packs map[string]*Pack // by base name
	large []*Pack          // searched one at a time
	Small map[Hash]Location
	bytes int64 // the size of all packs

	// Pending, if not nil, holds objects that are not in a pack yet. Only one goroutine may
	// use such a database.
	Pending map[Hash]Object

	// ByName, if not nil, caches the trees that EntryByName read. Only one goroutine may
	// use such a database, for a short time.
	ByName NameIndex
}

// Location is the place of an object in a pack.
type Location struct {
	Pack   *Pack
	Offset int64
}

// smallPack is the largest number of objects in a pack whose index is merged into DB.Small. With
// this map, a lookup among a thousand packs of commits takes one step.
const smallPack = 2048

// Open returns the objects of a repository, whose directory of objects is dir.
func Open(dir string, cache *Cache) (*DB, error) {
	db := &DB{Dir: dir, Cache: cache, Packs: map[string]*Pack{}, Small: map[Hash]Location{}}
	return db, db.Rescan()
}

// PackDir returns the directory of the packs.
func (db *DB) PackDir() string { return filepath.Join(db.Dir, "pack") }

// Rescan adds new packs and drops deleted ones.
func (db *DB) Rescan() error {
	db.Mu.Lock() // before reading the directory: a commit adds its pack under the lock
	defer db.Mu.Unlock()
	names, err := PackNames(db.PackDir())
	if err != nil {
		return err
	}
	for _, name := range names {
		if db.Packs[name] != nil {
			continue
		}
		p, err := Load(filepath.Join(db.PackDir(), name))
		if errors.Is(err, fs.ErrNotExist) {
			continue // the pack was deleted meanwhile
		}
		if err != nil {
			return err
		}
		db.AddLocked(name, p)
	}
	gone := false
	for name := range db.Packs {
		if !slices.Contains(names, name) {
			gone = true
		}
	}
	if !gone {
		return nil
	}
	old := db.Packs
	db.Packs, db.large, db.Small, db.bytes = map[string]*Pack{}, nil, map[Hash]Location{}, 0
	for name, p := range old {
		if slices.Contains(names, name) {
			db.AddLocked(name, p)
		} else {
			p.Close()
		}
	}
	return nil
}

// PackNames lists the packs of a directory that have an index, by base name.
func PackNames(dir string) ([]string, error) {
	es, err := os.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	var names []string
	for _, e := range es {
		if name, ok := strings.CutSuffix(e.Name(), ".idx"); ok && strings.HasPrefix(name, "pack-") {
			names = append(names, name)
		}
	}
	return names, nil
}

// Add adds a pack that was just written.
func (db *DB) Add(p *Pack) {
	db.Mu.Lock()
	defer db.Mu.Unlock()
	if name := filepath.Base(p.Base); db.Packs[name] == nil {
		db.AddLocked(name, p)
	}
}

// AddLocked adds a pack that is not known yet. The caller holds db.Mu.
func (db *DB) AddLocked(name string, p *Pack) {
	db.Packs[name] = p
	db.bytes += p.size
	if p.N > smallPack {
		db.large = append(db.large, p)
		return
	}
	for i := range p.N {
		if off, err := p.offset(i); err == nil {
			db.Small[p.Name(i)] = Location{p, off}
		}
	}
}

// Close closes the packs. No method may be called after Close.
func (db *DB) Close() {
	db.Mu.Lock()
	defer db.Mu.Unlock()
	for _, p := range db.Packs {
		p.Close()
	}
	db.Packs, db.large, db.Small = map[string]*Pack{}, nil, map[Hash]Location{}
	db.Cache.Drop(db)
}

// PackBytes returns the size of all packs.
func (db *DB) PackBytes() int64 {
	db.Mu.RLock()
	defer db.Mu.RUnlock()
	return db.bytes
}

// PackCount returns how many packs are open.
func (db *DB) PackCount() int {
	db.Mu.RLock()
	defer db.Mu.RUnlock()
	return len(db.Packs)
}

func (db *DB) locate(h Hash) (Location, bool) {
	db.Mu.RLock()
	defer db.Mu.RUnlock()
	if l, ok := db.Small[h]; ok {
		return l, true
	}
	for _, p := range db.large {
		if off, ok := p.Find(h); ok {
			return Location{p, off}, true
		}
	}
	return Location{}, false
}

// Has reports whether the object is in a known pack, is pending, or is one of the lender's.
func (db *DB) Has(h Hash) bool {
	if _, ok := db.Pending[h]; ok || db.lends(h) {
		return true
	}
	_, ok := db.locate(h)
	return ok
}

func (db *DB) lends(h Hash) bool { return db.Lender != nil && db.Lender.Has(h) }

// Sound reports whether the object exists and can be read.
func (db *DB) Sound(h Hash) bool {
	if !db.Has(h) {
		return false
	}
	_, err := db.Read(h)
	return err == nil
}

// find calls use with the object's location. It searches again if the pack was replaced, or if
// a new pack contains the object.
func (db *DB) find(h Hash, use func(Location) error) error {
	var err error
	for range 3 {
		l, ok := db.locate(h)
		if ok {
			err = use(l)
			if err == nil {
				return nil
			}
			if !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, os.ErrClosed) {
				return db.elsewhere(h, l.Pack, use, err)
			}
		}
		if rerr := db.Rescan(); rerr != nil {
			return rerr
		}
		if _, again := db.locate(h); !ok && !again {
			return fmt.Errorf("%s: %w", h, ErrNotFound)
		}
	}
	return err
}

// elsewhere calls use with the locations of an object in all packs but bad, until use can
// read a copy. An object that was written twice is in two packs. If no copy can be read,
// elsewhere returns err.
func (db *DB) elsewhere(h Hash, bad *Pack, use func(Location) error, err error) error {
	db.Mu.RLock()
	var places []Location
	for _, p := range db.Packs {
		if off, ok := p.Find(h); ok && p != bad {
			places = append(places, Location{p, off})
		}
	}
	db.Mu.RUnlock()
	for _, l := range places {
		if use(l) == nil {
			return nil
		}
	}
	return err
}

// Read returns an object. The error is ErrNotFound if there is no such object, and ErrDamaged
// if the object cannot be decoded or does not match its name. An error of the system, such as
// too many open files, is returned as it is.
func (db *DB) Read(h Hash) (Object, error) {
	if db.lends(h) {
		return db.Lender.Read(h)
	}
	if o, ok := db.Pending[h]; ok {
		return o, nil
	}
	if o, ok := db.Cache.Get(db, h); ok {
		return o, nil
	}
	var o Object
	err := db.find(h, func(l Location) (err error) {
		if o, err = l.Pack.Read(l.Offset, db.Read); err == nil && NameOf(o) != h {
			err = ErrDamaged
		}
		return err
	})
	if errors.Is(err, ErrNotFound) {
		o, err = db.ReadLoose(h)
	}
	if err != nil {
		return Object{}, fmt.Errorf("object %s: %w", h, asDamage(err))
	}
	db.Cache.Put(db, h, o)
	return o, nil
}

// NameOf returns the name of an object. It does not check for collision attacks, because
// writing or fetching the object has done so.
func NameOf(o Object) (h Hash) {
	s := sha1.New()
	fmt.Fprintf(s, "%s %d\x00", o.Kind, len(o.Data))
	s.Write(o.Data)
	s.Sum(h[:0])
	return h
}

// ReadStart is like Read, for callers that need only the first max bytes of an object. The
// data of a larger object may be cut after max bytes, and is then not verified. size is
// the full size.
func (db *DB) ReadStart(h Hash, max int64) (o Object, size int64, err error) {
	if db.lends(h) {
		return db.Lender.ReadStart(h, max)
	}
	l, ok := db.locate(h)
	_, cached := db.Cache.Get(db, h)
	if _, pending := db.Pending[h]; ok && !cached && !pending {
		if o, size, err = l.Pack.readStart(l.Offset, max); err == nil && size > 0 {
			return o, size, nil
		}
	}
	o, err = db.Read(h) // Read also searches again, and reports the error
	return o, int64(len(o.Data)), err
}

// Size returns the size of an object in bytes.
func (db *DB) Size(h Hash) (n int64, err error) {
	if db.lends(h) {
		return db.Lender.Size(h)
	}
	if o, ok := db.Pending[h]; ok {
		return int64(len(o.Data)), nil
	}
	if o, ok := db.Cache.Get(db, h); ok {
		return int64(len(o.Data)), nil
	}
	err = db.find(h, func(l Location) (err error) {
		n, err = l.Pack.objectSize(l.Offset)
		return err
	})
	if errors.Is(err, ErrNotFound) {
		var o Object
		if o, err = db.ReadLoose(h); err == nil {
			n = int64(len(o.Data))
		}
	}
	return n, asDamage(err)
}

// SizeOf is like Size, for sums and lists: an object that cannot be read counts as empty.
func (db *DB) SizeOf(h Hash) (int64, error) {
	n, err := db.Size(h)
	if Unreadable(err) {
		return 0, nil
	}
	return n, err
}

// ReadLoose reads a loose object. This package writes none, but an operator's git may.
func (db *DB) ReadLoose(h Hash) (Object, error) {
	s := h.String()
	f, err := os.Open(filepath.Join(db.Dir, s[:2], s[2:]))
	if errors.Is(err, fs.ErrNotExist) {
		return Object{}, ErrNotFound
	}
	if err != nil {
		return Object{}, err
	}
	defer f.Close()
	z, err := zlib.NewReader(f)
	if err != nil {
		return Object{}, err
	}
	defer z.Close()
	b, err := io.ReadAll(io.LimitReader(z, maxObjectBytes))
	if err != nil {
		return Object{}, err
	}
	head, data, ok := bytes.Cut(b, []byte{0})
	word, size, ok2 := strings.Cut(string(head), " ")
	n, perr := strconv.Atoi(size)
	k, kerr := plumbing.ParseObjectType(word)
	if !ok || !ok2 || perr != nil || kerr != nil || n != len(data) || NameOf(Object{k, data}) != h {
		return Object{}, ErrDamaged
	}
	return Object{k, data}, nil
}

// Tree returns a tree's entries. The zero hash is the empty tree.
func (db *DB) Tree(h Hash) ([]TreeEntry, error) {
	if h.IsZero() {
		return nil, nil
	}
	o, err := db.Read(h)
	if err != nil {
		return nil, err
	}
	if o.Kind != plumbing.TreeObject {
		return nil, fmt.Errorf("object %s is a %s, not a tree", h, o.Kind)
	}
	return ParseTree(o.Data)
}

// Entry returns one entry of a tree without decoding the others.
func (db *DB) Entry(tree Hash, name string) (TreeEntry, bool, error) {
	if tree.IsZero() {
		return TreeEntry{}, false, nil
	}
	if db.ByName != nil {
		return db.EntryByName(db.ByName, tree, name)
	}
	o, err := db.Read(tree)
	if err != nil {
		return TreeEntry{}, false, err
	}
	if o.Kind != plumbing.TreeObject {
		return TreeEntry{}, false, fmt.Errorf("object %s is a %s, not a tree", tree, o.Kind)
	}
	for data := o.Data; len(data) > 0; {
		sp := bytes.IndexByte(data, ' ')
		nul := bytes.IndexByte(data, 0)
		if sp <= 0 || sp > 7 || nul < sp+2 || len(data) < nul+21 {
			return TreeEntry{}, false, errors.New("malformed tree")
		}
		if string(data[sp+1:nul]) == name {
			es, err := ParseTree(data[:nul+21])
			if err != nil {
				return TreeEntry{}, false, err
			}
			return es[0], true, nil
		}
		data = data[nul+21:]
	}
	return TreeEntry{}, false, nil
}

// NameIndex caches trees by name. Only one goroutine may use it, for a short time.
type NameIndex map[Hash]map[string]TreeEntry

// EntryByName is like Entry, for lookups of thousands of names in few trees.
func (db *DB) EntryByName(index NameIndex, tree Hash, name string) (TreeEntry, bool, error) {
	names, ok := index[tree]
	if !ok {
		es, err := db.Tree(tree)
		if err != nil {
			return TreeEntry{}, false, err
		}
		names = make(map[string]TreeEntry, len(es))
		for _, e := range es {
			names[e.Name] = e
		}
		index[tree] = names
	}
	e, ok := names[name]
	return e, ok, nil
}

// Blob returns a blob's content.
func (db *DB) Blob(h Hash) ([]byte, error) {
	o, err := db.Read(h)
	if err != nil {
		return nil, err
	}
	if o.Kind != plumbing.BlobObject {
		return nil, fmt.Errorf("object %s is a %s, not a blob", h, o.Kind)
	}
	return o.Data, nil
}

// Prefixed returns at most max names of packed objects. The names begin with the digits.
func (db *DB) Prefixed(digits string, max int) []Hash {
	lo, err := HashFrom(digits + strings.Repeat("0", 40-len(digits)))
	if err != nil {
		return nil
	}
	db.Mu.RLock()
	defer db.Mu.RUnlock()
	var out []Hash
	for _, p := range db.Packs {
		for i := p.search(lo); i < p.N && strings.HasPrefix(p.Name(i).String(), digits); i++ {
			if h := p.Name(i); !slices.Contains(out, h) {
				if out = append(out, h); len(out) == max {
					return out
				}
			}
		}
	}
	return out
}
