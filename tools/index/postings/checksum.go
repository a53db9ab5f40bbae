package postings

import (
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"math/bits"

	"satchel/tools/index/segment"
)

// Every row has a checksum of what it says and of its number, for SQLite has
// none: a bit that turned on disk would else be shown as a page's text. What is
// read together is summed up together, so that no query reads more than it
// needs. Columns that only choose rows (filters) are checked where a row is
// shown: a turned bit may hide a page until the next rebuild, and shows none
// that is not as it was.

// fields are the bytes of a row that its checksum is of: numbers as varints,
// texts behind their lengths.
type fields []byte

func (f fields) numbers(list ...int64) fields {
	for _, n := range list {
		f = binary.AppendVarint(f, n)
	}
	return f
}

func (f fields) texts(list ...string) fields {
	for _, s := range list {
		f = binary.AppendUvarint(f, uint64(len(s)))
		f = append(f, s...)
	}
	return f
}

// sum returns the checksum, CRC-32C, of the fields and of one more.
func (f fields) sum(last []byte) int64 {
	table := crc32.MakeTable(crc32.Castagnoli)
	return int64(crc32.Update(crc32.Checksum(f, table), table, last))
}

// Check fails where the fields and one more have another checksum.
func (f fields) check(sum int64, last []byte, what string, id int64) error {
	if f.sum(last) != sum {
		return fmt.Errorf("%w: %s %d", segment.ErrDamaged, what, id)
	}
	return nil
}

// rowBytes is about what the fields of a row take.
const rowBytes = 512

// headFields are what a ranking reads of a document.
func headFields(id int64, path, title, lang, version string, date int64) fields {
	return make(fields, 0, rowBytes).numbers(id, date).texts(path, title, lang, version)
}

// linkFields are what a document says of files that it is about.
func linkFields(id int64, path, files string) fields {
	return make(fields, 0, rowBytes).numbers(id).texts(path, files)
}

// docFields are all of a document.
func docFields(id int64, d *Document, tags, files string) fields {
	return headFields(id, string(d.Path), d.Title, d.Lang, d.Version, d.Date).
		numbers(int64(d.Lines)).texts(string(d.Blob), d.Description, string(d.Kind), tags, files)
}

// textFields go before a document's text.
func textFields(id int64) fields { return fields{}.numbers(id) }

// chunkFields go before a chunk's text, of a long one its first
// maxPassageBytes.
func chunkFields(id int64, start, end int, lines [2]int, crumbs, anchors string) fields {
	return make(fields, 0, rowBytes).numbers(id, int64(start), int64(end), int64(lines[0]), int64(lines[1])).texts(crumbs, anchors)
}

// fields are all that the state says.
func (s *State) fields() fields {
	f := fields{}.texts(string(s.Commit)).numbers(s.Docs, s.Chunks).numbers(s.Length[:]...).
		numbers(s.next, s.rows, s.epoch, s.segments, s.dead)
	if s.Unread != 0 { // databases without the number keep their checksums
		f = f.numbers(s.Unread)
	}
	return f
}

// deadMark is what a deleted document adds to state.dead, which sums up the set
// whatever its order (the finalizer of MurmurHash3).
func deadMark(doc int64) int64 {
	h := uint64(doc) + 0x9e3779b97f4a7c15
	h = (h ^ h>>33) * 0xff51afd7ed558ccd
	h = (h ^ h>>33) * 0xc4ceb9fe1a85ec53
	return int64(bits.RotateLeft64(h^h>>33, 1))
}
