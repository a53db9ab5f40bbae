package segment_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"satchel/tools/index/segment"
)

// store holds the rows of segments, as a database does.
type store struct {
	rows [][]byte
}

func (s *store) put(row []byte) error {
	s.rows = append(s.rows, row)
	return nil
}

func (s *store) read(row int64) ([]byte, error) {
	if row < 0 || row >= int64(len(s.rows)) {
		return nil, fmt.Errorf("%w: no row %d", segment.ErrDamaged, row)
	}
	return segment.Unseal(s.rows[row], row)
}

// model holds what an index must answer, in the simplest form.
type model map[uint32][]map[string]segment.Counts // the chunks of a document

func (m model) postings() map[string][]string {
	all := map[string][]string{}
	for doc, chunks := range m {
		for part, terms := range chunks {
			for t, n := range terms {
				all[t] = append(all[t], fmt.Sprint(doc, "/", part, doc%2 == 1, n))
			}
		}
	}
	for _, p := range all {
		slices.Sort(p)
	}
	return all
}

func (m model) random(rng *rand.Rand, doc uint32) {
	for range 1 + rng.IntN(3) {
		terms := map[string]segment.Counts{}
		for range rng.IntN(40) {
			t := fmt.Sprintf("w%d", rng.IntN(1+rng.IntN(300)))
			if rng.IntN(50) == 0 {
				t = strings.Repeat("ü", rng.IntN(127)+1)
			}
			n := segment.Counts{0, 0, uint16(1 + rng.IntN(4))}
			if rng.IntN(5) == 0 {
				n = segment.Counts{uint16(rng.IntN(3)), uint16(rng.IntN(70_000) % 65_536), uint16(rng.IntN(3))}
			}
			if n != (segment.Counts{}) {
				terms[t] = n
			}
		}
		m[doc] = append(m[doc], terms)
	}
}

func (m model) write(w *segment.Writer, doc uint32) {
	for part, terms := range m[doc] {
		w.Chunk(segment.Chunk{Doc: doc, Part: uint16(part), Talk: doc%2 == 1, Length: [segment.Fields]uint16{1, uint16(part), 300}})
		for t, n := range terms {
			w.Term(t, n)
		}
	}
}

// part is a segment with the documents that were deleted from it.
type part struct {
	*segment.Segment
	dead map[uint32]bool
}

// check compares all segments together with the model.
func check(t *testing.T, s *store, parts []part, m model) {
	t.Helper()
	want := m.postings()
	got := map[string][]string{}
	df, occurs := map[string]int64{}, map[string]int64{}
	for _, chunks := range m {
		for _, terms := range chunks {
			for term, n := range terms {
				occurs[term] -= int64(n[segment.Fields-1])
			}
		}
	}
	for _, p := range parts {
		prev := ""
		c := p.Seek(s.read, "")
		for c.Next() {
			term := string(c.Term())
			if term <= prev {
				t.Fatalf("%q comes after %q", term, prev)
			}
			prev = term
			df[term] += c.Entry().DF
			occurs[term] += c.Entry().Occurs
			if e, err := p.Lookup(s.read, term); err != nil || e != c.Entry() {
				t.Fatalf("%q is looked up as %+v, %v; it is %+v", term, e, err, c.Entry())
			}
			l, err := p.List(s.read, c.Entry())
			if err != nil {
				t.Fatal(err)
			}
			var buf [7]segment.Posting
			for n := l.Fill(buf[:]); n > 0; n = l.Fill(buf[:]) {
				for _, post := range buf[:n] {
					if c := p.Chunks[post.Chunk]; !p.dead[c.Doc] {
						got[term] = append(got[term], fmt.Sprint(c.Doc, "/", c.Part, c.Talk, post.Counts))
					}
				}
			}
			if l.Err() != nil {
				t.Fatal(l.Err())
			}
		}
		if c.Err() != nil {
			t.Fatal(c.Err())
		}
	}
	for term, list := range got {
		slices.Sort(list)
		if !slices.Equal(list, want[term]) {
			t.Errorf("%q is in %v, not in %v", term, list, want[term])
		}
	}
	for term := range want {
		if got[term] == nil {
			t.Errorf("%q is missing", term)
		}
	}
	for term, n := range df {
		if n != int64(len(want[term])) {
			t.Errorf("%q is said to be in %d chunks, and is in %d", term, n, len(want[term]))
		}
	}
	for term, n := range occurs {
		if n != 0 {
			t.Errorf("%q is said to be %d times more often in bodies than it is", term, n)
		}
	}
}

// After any additions, deletions and merges, the segments together contain what is live, and
// the frequencies have the right sums.
func TestSegmentsHoldWhatIsLive(t *testing.T) {
	for seed := range uint64(8) {
		rng := rand.New(rand.NewPCG(seed, 1))
		s, m := &store{}, model{}
		var parts []part
		next := uint32(1)
		for range 40 {
			w := segment.NewWriter()
			for range rng.IntN(6) { // delete
				for doc, chunks := range m {
					for _, terms := range chunks {
						for term, n := range terms {
							w.Forget(term, n)
						}
					}
					for _, p := range parts {
						p.dead[doc] = true
					}
					delete(m, doc)
					break
				}
			}
			for range rng.IntN(8) { // add
				m.random(rng, next)
				m.write(w, next)
				next += 1 + uint32(rng.IntN(3))
			}
			if !w.Empty() {
				first := int64(len(s.rows))
				head, rows, err := w.Write(first, s.put)
				if err != nil || int64(len(s.rows)) != first+rows {
					t.Fatal(rows, err)
				}
				parts = append(parts, open(t, head))
			}
			check(t, s, parts, m)
			if from := rng.IntN(len(parts) + 1); rng.IntN(4) == 0 && from < len(parts) {
				to := from + 1 + rng.IntN(len(parts)-from)
				var merged []segment.Part
				for _, p := range parts[from:to] {
					merged = append(merged, segment.Part{Segment: p.Segment, Read: s.read, Dead: func(c int) bool { return p.dead[p.Chunks[c].Doc] }})
				}
				first := int64(len(s.rows))
				head, rows, err := segment.Merge(merged, first, s.put)
				if err != nil || int64(len(s.rows)) != first+rows {
					t.Fatal(rows, err)
				}
				parts = slices.Replace(parts, from, to, open(t, head))
				check(t, s, parts, m)
			}
			if t.Failed() {
				t.Fatalf("seed %d", seed)
			}
		}
	}
}

func open(t *testing.T, head []byte) part {
	t.Helper()
	seg, err := segment.Open(head)
	if err != nil {
		t.Fatal(err)
	}
	return part{seg, map[uint32]bool{}}
}

// sample returns a segment with lists on a shared page, and a list on several pages of its own.
func sample(t testing.TB, docs uint32) (*store, []byte) {
	t.Helper()
	rng := rand.New(rand.NewPCG(3, 3))
	w := segment.NewWriter()
	for doc := range docs {
		w.Chunk(segment.Chunk{Doc: doc + 1, Length: [segment.Fields]uint16{1, 2, 3}})
		w.Term("everywhere", segment.Counts{1, 1, 1})
		w.Term(fmt.Sprintf("word%d", rng.IntN(900)), segment.Counts{0, 0, 1})
	}
	s := &store{}
	head, _, err := w.Write(0, s.put)
	if err != nil {
		t.Fatal(err)
	}
	return s, head
}

// A changed bit is found in any place.
func TestDamageIsFound(t *testing.T) {
	s, head := sample(t, 5000)
	rng := rand.New(rand.NewPCG(4, 4))
	for range 500 {
		row, number := head, int64(-1)
		if n := rng.IntN(len(s.rows) + 1); n < len(s.rows) {
			row, number = s.rows[n], int64(n)
		}
		bit := rng.IntN(8 * len(row))
		row[bit/8] ^= 1 << (bit % 8)
		_, openErr := segment.Open(head)
		_, err := segment.Unseal(row, number)
		row[bit/8] ^= 1 << (bit % 8)
		if !errors.Is(err, segment.ErrDamaged) || &row[0] == &head[0] && !errors.Is(openErr, segment.ErrDamaged) {
			t.Fatalf("bit %d of a row of %d bytes: %v, %v", bit, len(row), err, openErr)
		}
	}
	for n, row := range s.rows {
		if _, err := segment.Unseal(row, int64(n+1)); !errors.Is(err, segment.ErrDamaged) {
			t.Fatalf("row %d is taken for the next one: %v", n, err)
		}
	}
	for n := range len(head) {
		if _, err := segment.Open(head[:n]); !errors.Is(err, segment.ErrDamaged) {
			t.Fatalf("%d bytes of a head: %v", n, err)
		}
	}
}

// A row that passes the checksum but was not written by this package causes an error and not a
// panic. Such a row comes from a hostile file or from an older version with a defect.
func FuzzRead(f *testing.F) {
	s, head := sample(f, 60)
	for _, row := range s.rows[:min(len(s.rows), 3)] {
		f.Add(head[:len(head)-4], row[:len(row)-4], "word5")
	}
	last := s.rows[len(s.rows)-1]
	f.Add([]byte{0, 1, 1, 1, 'a', 1, 1, 0, 0, 0, 0}, last[:len(last)-4], "everywhere")
	f.Fuzz(func(t *testing.T, head, row []byte, term string) {
		seg, err := segment.Open(segment.Seal(slices.Clone(head), -1))
		if err != nil {
			return
		}
		read := func(int64) ([]byte, error) { return row, nil }
		buf := make([]segment.Posting, 64)
		scan := func(e segment.Entry) {
			l, err := seg.List(read, e)
			if err != nil {
				return
			}
			for n := l.Fill(buf); n > 0; n = l.Fill(buf) {
				for _, p := range buf[:n] {
					_ = seg.Chunks[p.Chunk]
				}
			}
		}
		if e, err := seg.Lookup(read, term); err == nil {
			scan(e)
		}
		c := seg.Seek(read, term)
		for range 200 {
			if !c.Next() {
				break
			}
			scan(c.Entry())
		}
		_, _, _ = segment.Merge([]segment.Part{{Segment: seg, Read: read, Dead: func(int) bool { return false }}}, 0, func([]byte) error { return nil })
		seg.Find(1)
	})
}
