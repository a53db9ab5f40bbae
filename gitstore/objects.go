package gitstore

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

// objectDB reads the objects of one bare repository. It is safe for
// concurrent use, and sees packs that were added or replaced since: a miss
// looks at the directory again.
type objectDB struct {
	dir   string // the repository's objects directory
	cache *objectCache
	// lender, where it is set before use, has further objects, which are looked
	// up there first.
	lender *objectDB

	mu    sync.RWMutex
	packs map[string]*pack // by base name
	large []*pack          // searched one by one
	small map[hash]location
	bytes int64 // of all packs

	// pending, where it is not nil, holds objects that are in no pack yet. One
	// goroutine alone uses such a database.
	pending map[hash]object

	// byName, where it is not nil, keeps the trees that entry looked at by their
	// names. One goroutine alone uses such a database, and not for long.
	byName nameIndex
}

type location struct {
	p   *pack
	off int64
}

// smallPack is up to how many objects a pack's index is merged into one map,
// so that a lookup among a thousand packs of commits takes one step.
const smallPack = 2048

func openObjects(dir string, cache *objectCache) (*objectDB, error) {
	db := &objectDB{dir: dir, cache: cache, packs: map[string]*pack{}, small: map[hash]location{}}
	return db, db.rescan()
}

func (db *objectDB) packDir() string { return filepath.Join(db.dir, "pack") }

// rescan takes in packs that appeared and lets go of those that are gone.
func (db *objectDB) rescan() error {
	db.mu.Lock() // before the look: a commit adds its pack under the lock
	defer db.mu.Unlock()
	names, err := packNames(db.packDir())
	if err != nil {
		return err
	}
	for _, name := range names {
		if db.packs[name] != nil {
			continue
		}
		p, err := loadPack(filepath.Join(db.packDir(), name))
		if errors.Is(err, fs.ErrNotExist) {
			continue // gone meanwhile, or its index is still to come
		}
		if err != nil {
			return err
		}
		db.addLocked(name, p)
	}
	gone := false
	for name := range db.packs {
		if !slices.Contains(names, name) {
			gone = true
		}
	}
	if !gone {
		return nil
	}
	old := db.packs
	db.packs, db.large, db.small, db.bytes = map[string]*pack{}, nil, map[hash]location{}, 0
	for name, p := range old {
		if slices.Contains(names, name) {
			db.addLocked(name, p)
		} else {
			p.close()
		}
	}
	return nil
}

// packNames lists the packs of a directory that have an index, by base name.
func packNames(dir string) ([]string, error) {
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

// add takes in a pack that was just written.
func (db *objectDB) add(p *pack) {
	db.mu.Lock()
	defer db.mu.Unlock()
	if name := filepath.Base(p.base); db.packs[name] == nil {
		db.addLocked(name, p)
	}
}

func (db *objectDB) addLocked(name string, p *pack) {
	db.packs[name] = p
	db.bytes += p.size
	if p.n > smallPack {
		db.large = append(db.large, p)
		return
	}
	for i := range p.n {
		if off, err := p.offset(i); err == nil {
			db.small[p.name(i)] = location{p, off}
		}
	}
}

func (db *objectDB) close() {
	db.mu.Lock()
	defer db.mu.Unlock()
	for _, p := range db.packs {
		p.close()
	}
	db.packs, db.large, db.small = map[string]*pack{}, nil, map[hash]location{}
	db.cache.drop(db)
}

// packBytes is the size of all packs.
func (db *objectDB) packBytes() int64 {
	db.mu.RLock()
	defer db.mu.RUnlock()
	return db.bytes
}

func (db *objectDB) packCount() int {
	db.mu.RLock()
	defer db.mu.RUnlock()
	return len(db.packs)
}

func (db *objectDB) locate(h hash) (location, bool) {
	db.mu.RLock()
	defer db.mu.RUnlock()
	if l, ok := db.small[h]; ok {
		return l, true
	}
	for _, p := range db.large {
		if off, ok := p.find(h); ok {
			return location{p, off}, true
		}
	}
	return location{}, false
}

// has tells whether the object is in a known pack, or pending.
func (db *objectDB) has(h hash) bool {
	if _, ok := db.pending[h]; ok || db.lends(h) {
		return true
	}
	_, ok := db.locate(h)
	return ok
}

func (db *objectDB) lends(h hash) bool { return db.lender != nil && db.lender.has(h) }

// sound reports whether the object exists and can be read.
func (db *objectDB) sound(h hash) bool {
	if !db.has(h) {
		return false
	}
	_, err := db.read(h)
	return err == nil
}

// find calls use with the object's place. Where the pack was replaced
// meanwhile, or the object came with a new one, it looks again.
func (db *objectDB) find(h hash, use func(location) error) error {
	var err error
	for range 3 {
		l, ok := db.locate(h)
		if ok {
			err = use(l)
			if err == nil {
				return nil
			}
			if !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, os.ErrClosed) {
				return db.elsewhere(h, l.p, use, err)
			}
		}
		if rerr := db.rescan(); rerr != nil {
			return rerr
		}
		if _, again := db.locate(h); !ok && !again {
			return fmt.Errorf("%s: %w", h, errNoObject)
		}
	}
	return err
}

// elsewhere calls use with the places of an object in all packs but bad, until use
// can read a copy: an object that was written again is in two packs. If no copy can
// be read, elsewhere returns err.
func (db *objectDB) elsewhere(h hash, bad *pack, use func(location) error, err error) error {
	db.mu.RLock()
	var places []location
	for _, p := range db.packs {
		if off, ok := p.find(h); ok && p != bad {
			places = append(places, location{p, off})
		}
	}
	db.mu.RUnlock()
	for _, l := range places {
		if use(l) == nil {
			return nil
		}
	}
	return err
}

// read returns an object: errNoObject if there is none, errDamaged if it does not
// match its name, as after damage to the disk.
func (db *objectDB) read(h hash) (object, error) {
	if db.lends(h) {
		return db.lender.read(h)
	}
	if o, ok := db.pending[h]; ok {
		return o, nil
	}
	if o, ok := db.cache.get(db, h); ok {
		return o, nil
	}
	var o object
	err := db.find(h, func(l location) (err error) {
		if o, err = l.p.read(l.off, db.read); err == nil && nameOf(o) != h {
			err = errDamaged
		}
		return err
	})
	if errors.Is(err, errNoObject) {
		o, err = db.readLoose(h)
	}
	if err != nil {
		return object{}, fmt.Errorf("object %s: %w", h, asDamage(err))
	}
	db.cache.put(db, h, o)
	return o, nil
}

// nameOf is the name of an object. What is read was written, or fetched by git, with a
// look for collisions; damage makes none.
func nameOf(o object) (h hash) {
	s := sha1.New()
	fmt.Fprintf(s, "%s %d\x00", o.kind, len(o.data))
	s.Write(o.data)
	s.Sum(h[:0])
	return h
}

// readStart is read for an object of which no more than about max bytes are
// wanted. The data of one that is much larger ends there, and is not
// held against its name; size is that of all.
func (db *objectDB) readStart(h hash, max int64) (o object, size int64, err error) {
	if db.lends(h) {
		return db.lender.readStart(h, max)
	}
	l, ok := db.locate(h)
	_, cached := db.cache.get(db, h)
	if _, pending := db.pending[h]; ok && !cached && !pending {
		if o, size, err = l.p.readStart(l.off, max); err == nil && size > 0 {
			return o, size, nil
		}
	}
	o, err = db.read(h) // which also looks again, and says what is wrong
	return o, int64(len(o.data)), err
}

// size returns the size of an object in bytes.
func (db *objectDB) size(h hash) (n int64, err error) {
	if db.lends(h) {
		return db.lender.size(h)
	}
	if o, ok := db.pending[h]; ok {
		return int64(len(o.data)), nil
	}
	if o, ok := db.cache.get(db, h); ok {
		return int64(len(o.data)), nil
	}
	err = db.find(h, func(l location) (err error) {
		n, err = l.p.objectSize(l.off)
		return err
	})
	if errors.Is(err, errNoObject) {
		var o object
		if o, err = db.readLoose(h); err == nil {
			n = int64(len(o.data))
		}
	}
	return n, asDamage(err)
}

// sizeOf is size for sums and lists, in which an object that cannot be read
// counts as empty.
func (db *objectDB) sizeOf(h hash) (int64, error) {
	n, err := db.size(h)
	if unreadable(err) {
		return 0, nil
	}
	return n, err
}

// readLoose reads an object that git wrote as a file of its own. This package
// writes none, but an operator's git might.
func (db *objectDB) readLoose(h hash) (object, error) {
	s := h.String()
	f, err := os.Open(filepath.Join(db.dir, s[:2], s[2:]))
	if errors.Is(err, fs.ErrNotExist) {
		return object{}, errNoObject
	}
	if err != nil {
		return object{}, err
	}
	defer f.Close()
	z, err := zlib.NewReader(f)
	if err != nil {
		return object{}, err
	}
	defer z.Close()
	b, err := io.ReadAll(io.LimitReader(z, maxObjectBytes))
	if err != nil {
		return object{}, err
	}
	head, data, ok := bytes.Cut(b, []byte{0})
	word, size, ok2 := strings.Cut(string(head), " ")
	n, perr := strconv.Atoi(size)
	k, kerr := plumbing.ParseObjectType(word)
	if !ok || !ok2 || perr != nil || kerr != nil || n != len(data) || nameOf(object{k, data}) != h {
		return object{}, errDamaged
	}
	return object{k, data}, nil
}

// tree returns a tree's entries. The zero hash is the empty tree.
func (db *objectDB) tree(h hash) ([]treeEntry, error) {
	if h.IsZero() {
		return nil, nil
	}
	o, err := db.read(h)
	if err != nil {
		return nil, err
	}
	if o.kind != plumbing.TreeObject {
		return nil, fmt.Errorf("object %s is a %s, not a tree", h, o.kind)
	}
	return parseTree(o.data)
}

// entry returns one name of a tree without decoding the rest of it.
func (db *objectDB) entry(tree hash, name string) (treeEntry, bool, error) {
	if tree.IsZero() {
		return treeEntry{}, false, nil
	}
	if db.byName != nil {
		return db.entryByName(db.byName, tree, name)
	}
	o, err := db.read(tree)
	if err != nil {
		return treeEntry{}, false, err
	}
	if o.kind != plumbing.TreeObject {
		return treeEntry{}, false, fmt.Errorf("object %s is a %s, not a tree", tree, o.kind)
	}
	for data := o.data; len(data) > 0; {
		sp := bytes.IndexByte(data, ' ')
		nul := bytes.IndexByte(data, 0)
		if sp <= 0 || sp > 7 || nul < sp+2 || len(data) < nul+21 {
			return treeEntry{}, false, errors.New("malformed tree")
		}
		if string(data[sp+1:nul]) == name {
			es, err := parseTree(data[:nul+21])
			if err != nil {
				return treeEntry{}, false, err
			}
			return es[0], true, nil
		}
		data = data[nul+21:]
	}
	return treeEntry{}, false, nil
}

// nameIndex keeps trees by their names. One goroutine uses it, and not for long.
type nameIndex map[hash]map[string]treeEntry

// entryByName is entry for whoever looks up thousands of names in few trees.
func (db *objectDB) entryByName(index nameIndex, tree hash, name string) (treeEntry, bool, error) {
	names, ok := index[tree]
	if !ok {
		es, err := db.tree(tree)
		if err != nil {
			return treeEntry{}, false, err
		}
		names = make(map[string]treeEntry, len(es))
		for _, e := range es {
			names[e.name] = e
		}
		index[tree] = names
	}
	e, ok := names[name]
	return e, ok, nil
}

// blob returns a blob's content.
func (db *objectDB) blob(h hash) ([]byte, error) {
	o, err := db.read(h)
	if err != nil {
		return nil, err
	}
	if o.kind != plumbing.BlobObject {
		return nil, fmt.Errorf("object %s is a %s, not a blob", h, o.kind)
	}
	return o.data, nil
}

// prefixed returns the names of objects that begin with the digits, at most
// max.
func (db *objectDB) prefixed(digits string, max int) []hash {
	lo, err := hashFrom(digits + strings.Repeat("0", 40-len(digits)))
	if err != nil {
		return nil
	}
	db.mu.RLock()
	defer db.mu.RUnlock()
	var out []hash
	for _, p := range db.packs {
		for i := p.search(lo); i < p.n && strings.HasPrefix(p.name(i).String(), digits); i++ {
			if h := p.name(i); !slices.Contains(out, h) {
				if out = append(out, h); len(out) == max {
					return out
				}
			}
		}
	}
	return out
}
