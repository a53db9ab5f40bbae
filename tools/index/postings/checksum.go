package postings

import (
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"math/bits"

	"satchel/tools/index/segment"
)

// Every row has a checksum of its content and its number. SQLite adds none, so a flipped bit
// on disk would otherwise be shown as a page's text. Columns that are read together share
// a checksum, so a query reads only the columns that it needs. Columns that only select rows
// (filters) are checked when a row is shown: a flipped bit may hide a page until the next
// rebuild, but never shows a wrong page.

// fields holds the bytes of a row that its checksum covers: numbers as varints, and texts
// after their lengths.
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

// sum returns the checksum (CRC-32C) of the fields, followed by the bytes of last.
func (f fields) sum(last []byte) int64 {
	table := crc32.MakeTable(crc32.Castagnoli)
	return int64(crc32.Update(crc32.Checksum(f, table), table, last))
}

// check fails if the checksum of the fields, followed by the bytes of last, is not sum.
func (f fields) check(sum int64, last []byte, what string, id int64) error {
	if f.sum(last) != sum {
		return fmt.Errorf("%w: %s %d", segment.ErrDamaged, what, id)
	}
	return nil
}

// rowBytes is about the size of the fields of a row.
const rowBytes = 512

// headFields returns the fields of the columns that a ranking reads.
func headFields(id int64, path, title, lang, version string, date int64) fields {
	return make(fields, 0, rowBytes).numbers(id, date).texts(path, title, lang, version)
}

// linkFields returns the fields of the columns with the files that a document is about.
func linkFields(id int64, path, files string) fields {
	return make(fields, 0, rowBytes).numbers(id).texts(path, files)
}

// docFields returns the fields of all columns of a document.
func docFields(id int64, d *Document, tags, files string) fields {
	return headFields(id, string(d.Path), d.Title, d.Lang, d.Version, d.Date).
		numbers(int64(d.Lines)).texts(string(d.Blob), d.Description, d.URL, string(d.Kind), tags, files)
}

// textFields returns the fields before a document's text.
func textFields(id int64) fields { return fields{}.numbers(id) }

// chunkFields returns the fields before the first maxPassageBytes of a chunk's text.
func chunkFields(id int64, start, end int, lines [2]int, crumbs, anchors string) fields {
	return make(fields, 0, rowBytes).numbers(id, int64(start), int64(end), int64(lines[0]), int64(lines[1])).texts(crumbs, anchors)
}

// fields returns all values of the state.
func (s *State) fields() fields {
	f := fields{}.texts(string(s.Commit)).numbers(s.Docs, s.Chunks).numbers(s.Length[:]...).
		numbers(s.next, s.rows, s.epoch, s.segments, s.dead)
	if s.Unread != 0 { // a database that was written without Unread keeps its checksum
		f = f.numbers(s.Unread)
	}
	return f
}

// deadMark returns the value that a deleted document adds to State.dead. The sum of these
// values is a checksum of the set of deleted documents, in any order. deadMark is the
// finalizer of MurmurHash3.
func deadMark(doc int64) int64 {
	h := uint64(doc) + 0x9e3779b97f4a7c15
	h = (h ^ h>>33) * 0xff51afd7ed558ccd
	h = (h ^ h>>33) * 0xc4ceb9fe1a85ec53
	return int64(bits.RotateLeft64(h^h>>33, 1))
}
