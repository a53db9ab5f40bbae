package packfile

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"sync"

	"compress/zlib"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/format/packfile"
)

// Limits for the claims of a pack, which may come from elsewhere.
const (
	maxDeltaChain  = 4096    // git's own maximum is 4095
	maxObjectBytes = 1 << 30 // bytes of one inflated object
)

// Pack is a pack with its index in memory. Reads are by offset, so any number of readers
// may share it.
type Pack struct {
	Base string // the path without .pack or .idx
	N    int    // the number of objects
	size int64  // bytes of the pack file
	idx  []byte

	// keep is the open file of a large pack. Small packs are opened for each read, so that
	// many packs need few descriptors.
	mu   sync.Mutex
	keep *os.File
}

// Packs of at least keepOpenBytes or keepOpenObjects stay open.
const (
	keepOpenBytes   = 1 << 20
	keepOpenObjects = 1000
)

const (
	idxHeader = 8
	idxFanout = 256 * 4
	idxTail   = 40
)

var idxMagic = []byte{0xff, 't', 'O', 'c', 0, 0, 0, 2}

// ErrBadIndex is the error for a damaged index of a pack.
var ErrBadIndex = errors.New("damaged pack index")

// Load reads and checks a pack's index. ErrBadIndex means that the index must be rebuilt.
func Load(base string) (*Pack, error) {
	idx, err := os.ReadFile(base + ".idx")
	if err != nil {
		return nil, err
	}
	p := &Pack{Base: base, idx: idx}
	if len(idx) < idxHeader+idxFanout+idxTail || !bytes.Equal(idx[:8], idxMagic) {
		return nil, fmt.Errorf("%s.idx: %w", base, ErrBadIndex)
	}
	p.N = int(binary.BigEndian.Uint32(idx[idxHeader+idxFanout-4:]))
	if len(idx) < idxHeader+idxFanout+p.N*28+idxTail {
		return nil, fmt.Errorf("%s.idx: %w", base, ErrBadIndex)
	}
	h := NewSHA1()
	h.Write(idx[:len(idx)-20])
	if !bytes.Equal(h.Sum(nil), idx[len(idx)-20:]) {
		return nil, fmt.Errorf("%s.idx: %w", base, ErrBadIndex)
	}
	f, err := os.Open(base + ".pack")
	if err != nil {
		return nil, err
	}
	st, err := f.Stat()
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	p.size = st.Size()
	if p.size >= keepOpenBytes || p.N >= keepOpenObjects {
		p.keep = f
	} else {
		f.Close()
	}
	return p, nil
}

// Name returns the object name at position i.
func (p *Pack) Name(i int) (h Hash) {
	copy(h[:], p.idx[idxHeader+idxFanout+i*20:])
	return h
}

// offset returns where the object at position i starts in the pack.
func (p *Pack) offset(i int) (int64, error) {
	offs := idxHeader + idxFanout + p.N*24
	o := binary.BigEndian.Uint32(p.idx[offs+i*4:])
	if o&(1<<31) == 0 {
		return int64(o), nil
	}
	at := offs + p.N*4 + int(o&^(1<<31))*8
	if at+8 > len(p.idx)-idxTail {
		return 0, fmt.Errorf("%s.idx: %w", p.Base, ErrBadIndex)
	}
	return int64(binary.BigEndian.Uint64(p.idx[at:]) & (1<<63 - 1)), nil
}

// search returns the position of the first name that is not less than h.
func (p *Pack) search(h Hash) int {
	lo := 0
	if h[0] > 0 {
		lo = int(binary.BigEndian.Uint32(p.idx[idxHeader+(int(h[0])-1)*4:]))
	}
	hi := min(int(binary.BigEndian.Uint32(p.idx[idxHeader+int(h[0])*4:])), p.N)
	names := p.idx[idxHeader+idxFanout:]
	for lo < hi {
		m := int(uint(lo+hi) >> 1)
		if bytes.Compare(names[m*20:m*20+20], h[:]) < 0 {
			lo = m + 1
		} else {
			hi = m
		}
	}
	return lo
}

// Find returns the offset of an object in the pack.
func (p *Pack) Find(h Hash) (int64, bool) {
	i := p.search(h)
	if i >= p.N || p.Name(i) != h {
		return 0, false
	}
	off, err := p.offset(i)
	return off, err == nil
}

// open returns the pack's file, and a function to call after use.
func (p *Pack) open() (*os.File, func(), error) {
	p.mu.Lock()
	f := p.keep
	p.mu.Unlock()
	if f != nil {
		return f, func() {}, nil
	}
	f, err := os.Open(p.Base + ".pack")
	if err != nil {
		return nil, nil, err
	}
	return f, func() { f.Close() }, nil
}

// Close closes the open file. Readers that began earlier get an error and look the object
// up again.
func (p *Pack) Close() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.keep != nil {
		p.keep.Close()
		p.keep = nil
	}
}

// rawEntry is an object as stored: complete, or a delta to a base.
type rawEntry struct {
	kind    Kind
	Size    int64 // the size of the stored content, inflated
	data    int64 // offset of the deflated content
	baseOff int64 // the offset of the base, for an offset delta
	baseRef Hash  // the name of the base, for a reference delta
}

// ReadEntry reads the head of the entry at an offset of a pack.
func ReadEntry(r io.ReaderAt, off int64) (rawEntry, error) {
	var buf [64]byte
	n, err := r.ReadAt(buf[:], off)
	if n < 2 {
		return rawEntry{}, fmt.Errorf("pack entry at %d: %w", off, err)
	}
	b := buf[:n]
	e := rawEntry{kind: Kind(b[0] >> 4 & 7), Size: int64(b[0] & 15)}
	i := 1
	for shift := 4; b[i-1]&0x80 != 0; shift += 7 {
		if i >= n || shift > 56 {
			return e, errors.New("malformed pack entry")
		}
		e.Size |= int64(b[i]&0x7f) << shift
		i++
	}
	if e.Size < 0 || e.Size > maxObjectBytes {
		return e, errors.New("pack entry is too large")
	}
	switch e.kind {
	case plumbing.OFSDeltaObject:
		if i >= n {
			return e, errors.New("malformed pack entry")
		}
		d := int64(b[i] & 0x7f)
		for b[i]&0x80 != 0 {
			if i++; i >= n || d > 1<<50 {
				return e, errors.New("malformed pack entry")
			}
			d = (d+1)<<7 | int64(b[i]&0x7f)
		}
		i++
		if e.baseOff = off - d; e.baseOff <= 0 || d == 0 {
			return e, errors.New("malformed pack entry: bad delta base")
		}
	case plumbing.REFDeltaObject:
		if i+20 > n {
			return e, errors.New("malformed pack entry")
		}
		copy(e.baseRef[:], b[i:])
		i += 20
	case plumbing.CommitObject, plumbing.TreeObject, plumbing.BlobObject, plumbing.TagObject:
	default:
		return e, errors.New("malformed pack entry: unknown type")
	}
	e.data = off + int64(i)
	return e, nil
}

// Inflate returns the first max bytes of an entry's content.
func (e rawEntry) Inflate(r io.ReaderAt, max int64) ([]byte, error) {
	n := min(e.Size, max)
	z, err := zlib.NewReader(io.NewSectionReader(r, e.data, 1<<62))
	if err != nil {
		return nil, err
	}
	defer z.Close()
	var b bytes.Buffer
	b.Grow(int(min(n, 1<<20)) + bytes.MinRead) // grows with the data, not with its claimed size
	if got, err := io.Copy(&b, io.LimitReader(z, n)); err != nil || got != n {
		return nil, errors.Join(errors.New("pack entry ends early"), err)
	}
	return b.Bytes(), nil
}

// Read decodes the object at off. base looks up the bases of deltas that refer to other
// packs. The packs of a Writer have no deltas.
func (p *Pack) Read(off int64, base func(Hash) (Object, error)) (Object, error) {
	f, done, err := p.open()
	if err != nil {
		return Object{}, err
	}
	defer done()
	var deltas [][]byte
	for range maxDeltaChain {
		e, err := ReadEntry(f, off)
		if err != nil {
			return Object{}, err
		}
		data, err := e.Inflate(f, e.Size)
		if err != nil {
			return Object{}, err
		}
		switch e.kind {
		case plumbing.OFSDeltaObject:
			deltas = append(deltas, data)
			off = e.baseOff
			continue
		case plumbing.REFDeltaObject:
			deltas = append(deltas, data)
			if o, ok := p.Find(e.baseRef); ok {
				off = o
				continue
			}
			b, err := base(e.baseRef)
			if err != nil {
				return Object{}, err
			}
			return Patch(b, deltas)
		}
		return Patch(Object{e.kind, data}, deltas)
	}
	return Object{}, errors.New("delta chain is too long")
}

// readStart decodes the first max bytes of an object that has more bytes and is not a delta. For
// other objects it returns nothing.
func (p *Pack) readStart(off, max int64) (o Object, size int64, err error) {
	f, done, err := p.open()
	if err != nil {
		return Object{}, 0, err
	}
	defer done()
	e, err := ReadEntry(f, off)
	if err != nil || e.Size <= max || e.kind == plumbing.OFSDeltaObject || e.kind == plumbing.REFDeltaObject {
		return Object{}, 0, err
	}
	data, err := e.Inflate(f, max)
	return Object{e.kind, data}, e.Size, err
}

// Patch returns o after it has applied the deltas, the last one first.
func Patch(o Object, deltas [][]byte) (Object, error) {
	for i := len(deltas) - 1; i >= 0; i-- {
		if _, n, ok := deltaSizes(deltas[i]); !ok || n > maxObjectBytes {
			return Object{}, errors.New("malformed delta")
		}
		data, err := packfile.PatchDelta(o.Data, deltas[i])
		if err != nil {
			return Object{}, err
		}
		o.Data = data
	}
	return o, nil
}

// deltaSizes returns the sizes of a delta's base and of its result.
func deltaSizes(d []byte) (src, dst int64, ok bool) {
	one := func() (v int64) {
		for shift := 0; shift < 63; shift += 7 {
			if len(d) == 0 {
				ok = false
				return 0
			}
			c := d[0]
			d = d[1:]
			v |= int64(c&0x7f) << shift
			if c&0x80 == 0 {
				return v
			}
		}
		ok = false
		return 0
	}
	ok = true
	src = one()
	dst = one()
	return src, dst, ok
}

// objectSize returns the inflated size of the object at off without reading all of it.
func (p *Pack) objectSize(off int64) (int64, error) {
	f, done, err := p.open()
	if err != nil {
		return 0, err
	}
	defer done()
	e, err := ReadEntry(f, off)
	if err != nil {
		return 0, err
	}
	if e.kind != plumbing.OFSDeltaObject && e.kind != plumbing.REFDeltaObject {
		return e.Size, nil
	}
	head, err := e.Inflate(f, 20)
	if err != nil {
		return 0, err
	}
	_, n, ok := deltaSizes(head)
	if !ok {
		return 0, errors.New("malformed delta")
	}
	return n, nil
}

// Remove deletes an unused pack, its index first: git ignores a pack without an index.
func (p *Pack) Remove() error {
	p.Close()
	var errs []error
	for _, ext := range []string{".idx", ".pack", ".rev", ".bitmap", ".mtimes", ".keep"} {
		if err := os.Remove(p.Base + ext); err != nil && !errors.Is(err, os.ErrNotExist) {
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}

// SumIsRight verifies the checksum at the end of a pack.
func (p *Pack) SumIsRight() (bool, error) {
	f, done, err := p.open()
	if err != nil {
		return false, err
	}
	defer done()
	if p.size < 32 {
		return false, nil
	}
	h := NewSHA1()
	if _, err := io.Copy(h, io.NewSectionReader(f, 0, p.size-20)); err != nil {
		return false, err
	}
	end := make([]byte, 20)
	if _, err := f.ReadAt(end, p.size-20); err != nil {
		return false, err
	}
	return bytes.Equal(h.Sum(nil), end), nil
}
