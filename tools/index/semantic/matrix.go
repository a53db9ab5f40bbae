package semantic

import (
	"bufio"
	"cmp"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"math"
	"os"
	"path/filepath"
	"slices"
	"sync"
)

// A file of vectors is written once and never changed. It begins with fileMagic, the length of
// a JSON header, and the header. The ids, keys, hashes and packed rows of the chunks follow,
// each as one array. A checksum of everything before it is at the end.
const fileMagic = "SATVEC1\n"

var errFile = errors.New("the file of vectors is damaged")

// hashSize is the size of a text's hash, in bytes. With 128 bits, two texts do not have the same
// hash by accident.
const hashSize = 16

type textHash [hashSize]byte

// header is the header of a file of vectors.
type header struct {
	Identity    Identity `json:"identity"`
	Dims        int      `json:"dims"`
	Fingerprint string   `json:"fingerprint"`
	Commit      string   `json:"commit"`
	Rows        int      `json:"rows"`
	Missing     int      `json:"missing"` // chunks that the model refused
}

// matrix holds the vectors of one collection. It never changes. After retire, it is unmapped
// when its last user releases it.
type matrix struct {
	header
	file   string
	ids    []int64 // the ids of chunks, ascending
	keys   []uint64
	hashes []textHash
	packed []byte // the rows, mapped
	unmap  func() error

	mu      sync.Mutex
	users   int
	retired bool
	remove  bool
}

// width returns the size of a row in bytes.
func (m *matrix) width() int { return rowHeader + stride(m.Dims) }

func (m *matrix) row(i int) row {
	w := m.width()
	b := m.packed[i*w : (i+1)*w : (i+1)*w]
	f := func(at int) float32 { return math.Float32frombits(binary.LittleEndian.Uint32(b[at:])) }
	return row{low: f(0), step: f(4), sum: f(8), codes: b[rowHeader:]}
}

func (m *matrix) acquire() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.retired {
		return false
	}
	m.users++
	return true
}

func (m *matrix) release() {
	m.mu.Lock()
	m.users--
	last := m.users == 0 && m.retired
	m.mu.Unlock()
	if last {
		m.finish()
	}
}

// retire closes a matrix when its last user releases it, and then removes its file if remove is
// set.
func (m *matrix) retire(remove bool) {
	m.mu.Lock()
	first := !m.retired
	m.retired, m.remove = true, m.remove || remove
	idle := m.users == 0
	m.mu.Unlock()
	if first && idle {
		m.finish()
	}
}

func (m *matrix) finish() {
	_ = m.unmap()
	if m.remove {
		os.Remove(m.file)
	}
}

// entry describes one chunk of a file that is being written.
type entry struct {
	id   int64
	key  uint64
	hash textHash
}

// writeMatrix writes a temporary file and renames it. It calls rowOf once for each entry, in
// order. It does not flush the file to disk, because a damaged file is written again from the
// cache.
func writeMatrix(file string, h header, entries []entry, rowOf func(i int) (row, error)) (err error) {
	f, err := os.CreateTemp(filepath.Dir(file), "new-*.tmp")
	if err != nil {
		return fmt.Errorf("write vectors: %w", err)
	}
	defer func() {
		if err != nil {
			f.Close()
			os.Remove(f.Name())
			err = fmt.Errorf("write vectors: %w", err)
		}
	}()
	sum := crc32.New(crc32.MakeTable(crc32.Castagnoli))
	w := bufio.NewWriterSize(io.MultiWriter(f, sum), 1<<18)
	h.Rows = len(entries)
	head, err := json.Marshal(h)
	if err != nil {
		return err
	}
	var b []byte
	b = append(b, fileMagic...)
	b = binary.LittleEndian.AppendUint32(b, uint32(len(head)))
	b = append(b, head...)
	put := func() {
		if err == nil {
			_, err = w.Write(b)
		}
		b = b[:0]
	}
	put()
	for _, e := range entries {
		b = binary.LittleEndian.AppendUint64(b, uint64(e.id))
		put()
	}
	for _, e := range entries {
		b = binary.LittleEndian.AppendUint64(b, e.key)
		put()
	}
	for _, e := range entries {
		b = append(b, e.hash[:]...)
		put()
	}
	for i := range entries {
		r, rerr := rowOf(i)
		if rerr != nil {
			return rerr
		}
		if len(r.codes) != stride(h.Dims) {
			return fmt.Errorf("%w: a vector of another length", errFile)
		}
		b = r.append(b)
		put()
	}
	if err == nil {
		err = w.Flush()
	}
	if err != nil {
		return err
	}
	if _, err = f.Write(binary.LittleEndian.AppendUint32(nil, sum.Sum32())); err != nil {
		return err
	}
	if err = f.Close(); err != nil {
		return err
	}
	return os.Rename(f.Name(), file)
}

func parseHeader(data []byte) (h header, rest []byte, err error) {
	if len(data) < len(fileMagic)+4 || string(data[:len(fileMagic)]) != fileMagic {
		return h, nil, fmt.Errorf("%w: it begins otherwise", errFile)
	}
	data = data[len(fileMagic):]
	n := binary.LittleEndian.Uint32(data)
	data = data[4:]
	if uint64(n) > uint64(len(data)) {
		return h, nil, fmt.Errorf("%w: its header is cut", errFile)
	}
	if err := json.Unmarshal(data[:n], &h); err != nil {
		return h, nil, fmt.Errorf("%w: %w", errFile, err)
	}
	if h.Dims < 1 || h.Dims > MaxDimensions || h.Rows < 0 {
		return h, nil, fmt.Errorf("%w: its header has numbers that cannot be", errFile)
	}
	return h, data[n:], nil
}

// openMatrix maps a file and verifies its whole content.
func openMatrix(file string) (_ *matrix, err error) {
	data, unmap, err := mapFile(file)
	if err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, unmap())
		}
	}()
	if len(data) < 4 {
		return nil, fmt.Errorf("%w: it is cut", errFile)
	}
	body, tail := data[:len(data)-4], data[len(data)-4:]
	if crc32.Checksum(body, crc32.MakeTable(crc32.Castagnoli)) != binary.LittleEndian.Uint32(tail) {
		return nil, fmt.Errorf("%w: its checksum differs", errFile)
	}
	m := &matrix{file: file, unmap: unmap}
	if m.header, body, err = parseHeader(body); err != nil {
		return nil, err
	}
	n := m.Rows
	if want := n * (8 + 8 + hashSize + m.width()); len(body) != want || n > math.MaxInt32 {
		return nil, fmt.Errorf("%w: it has %d bytes of vectors, not %d", errFile, len(body), want)
	}
	m.ids, m.keys, m.hashes = make([]int64, n), make([]uint64, n), make([]textHash, n)
	for i := range n {
		m.ids[i] = int64(binary.LittleEndian.Uint64(body[8*i:]))
	}
	body = body[8*n:]
	for i := range n {
		m.keys[i] = binary.LittleEndian.Uint64(body[8*i:])
	}
	body = body[8*n:]
	for i := range n {
		m.hashes[i] = textHash(body[hashSize*i:])
	}
	m.packed = body[hashSize*n:]
	if !slices.IsSorted(m.ids) {
		return nil, fmt.Errorf("%w: its rows are out of order", errFile)
	}
	return m, nil
}

// Near is a document near a query's vector, with its best chunk.
type Near struct {
	Doc    int64
	Chunk  int64
	Key    uint64 // the key of the embedded document; see Doc.Key
	Cosine float64
}

// docOf returns the document of a chunk.
func docOf(id int64) int64 { return id >> ChunkBits }

// ChunkBits is how many bits of a chunk's id hold its number within the document.
const ChunkBits = 12

// nearest returns the k documents in docs that are nearest to the query, best first. docs is
// ascending; nil means all documents.
func (m *matrix) nearest(q *query, docs []int64, k int) []Near {
	type rough struct {
		first, last int // rows of the document
		cosine      float32
	}
	keep := max(4*k, 200)
	var heap []rough // the worst of the best is at the top
	down := func(i int) {
		for {
			c := 2*i + 1
			if c >= len(heap) {
				return
			}
			if c+1 < len(heap) && heap[c+1].cosine < heap[c].cosine {
				c++
			}
			if heap[i].cosine <= heap[c].cosine {
				return
			}
			heap[i], heap[c] = heap[c], heap[i]
			i = c
		}
	}
	for i := 0; i < len(m.ids); {
		doc := docOf(m.ids[i])
		if docs != nil {
			for len(docs) > 0 && docs[0] < doc {
				docs = docs[1:]
			}
			if len(docs) == 0 {
				break
			}
			if docs[0] != doc { // skip to the first row of docs[0]
				i, _ = slices.BinarySearch(m.ids, docs[0]<<ChunkBits)
				continue
			}
		}
		first, best := i, float32(-2)
		for ; i < len(m.ids) && docOf(m.ids[i]) == doc; i++ {
			best = max(best, q.coarse(m.row(i)))
		}
		switch {
		case len(heap) < keep:
			heap = append(heap, rough{first, i, best})
			if len(heap) == keep {
				for j := keep/2 - 1; j >= 0; j-- {
					down(j)
				}
			}
		case best > heap[0].cosine:
			heap[0] = rough{first, i, best}
			down(0)
		}
	}
	near := make([]Near, 0, len(heap))
	for _, r := range heap {
		near = append(near, m.best(q, r.first, r.last))
	}
	slices.SortFunc(near, func(a, b Near) int {
		return cmp.Or(cmp.Compare(b.Cosine, a.Cosine), cmp.Compare(a.Chunk, b.Chunk))
	})
	return near[:min(k, len(near))]
}

// best scores the rows of one document exactly.
func (m *matrix) best(q *query, first, last int) Near {
	n := Near{Cosine: -2}
	for i := first; i < last; i++ {
		if c := float64(q.fine(m.row(i))); c > n.Cosine {
			n = Near{Doc: docOf(m.ids[i]), Chunk: m.ids[i], Key: m.keys[i], Cosine: c}
		}
	}
	return n
}

// rows returns the range of a document's rows, which is empty if the document has none.
func (m *matrix) rows(doc int64) (first, last int) {
	first, _ = slices.BinarySearch(m.ids, doc<<ChunkBits)
	last = first
	for last < len(m.ids) && docOf(m.ids[last]) == doc {
		last++
	}
	return first, last
}
