// Package segment implements the inverted index of a run of chunks: a sorted dictionary
// and, for each term, the chunks that contain the term, with its count in each field.
//
// A segment never changes. A build writes one segment, or several if one does not fit into
// memory. Each update writes another small segment, and [Merge] combines neighbours into one.
// A segment consists of rows, which the caller stores by number, and of a head, which is in
// memory while the segment is used:
//
//   - pages hold lists of postings. Short lists share a page; a long list has a
//     row of its own;
//   - blocks hold the dictionary: terms in order, each without the prefix that it shares
//     with the previous term, with its frequencies and the place of its list;
//   - the head holds the first term of each block and, for each chunk, its document, its part,
//     whether it is from a conversation, and its field lengths.
//
// So a lookup of a term reads two rows: the block and the page of the term. Every row and the
// head end in a checksum, so damage on disk causes an error ([ErrDamaged]) and never a wrong
// answer.
//
// Chunks are numbered from 0 within their segment. A deleted chunk stays in its segment until
// the segment is merged. The update that deletes a chunk writes a segment with negative
// frequencies for the chunk's terms. So the sum of a term's [Entry.DF] over all segments is always
// the number of live chunks that contain the term. The sum of [Entry.Occurs] is how often their
// bodies contain the term.
package segment

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"math"
)

// Fields is the number of fields of a chunk.
const Fields = 3

// MaxTerm is the maximum length of a term in bytes.
const MaxTerm = 255

// Counts holds how often a term is in each field of a chunk. Values saturate at 65535.
type Counts [Fields]uint16

// Chunk is the part of a chunk that is in the head.
type Chunk struct {
	Doc    uint32
	Part   uint16         // the chunk's number within the document
	Talk   bool           // the document is a conversation
	Length [Fields]uint16 // number of words in each field
}

// ErrDamaged is returned, wrapped, for bytes that this package did not write.
var ErrDamaged = errors.New("segment is damaged")

func damaged(what string) error { return fmt.Errorf("%w: %s", ErrDamaged, what) }

// The sizes of rows. A row of pageSize bytes, plus its checksum and SQLite's header, fits into one
// database page.
const (
	pageSize  = 3900
	blockSize = 3900
	sumSize   = 4
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// Seal appends the checksum that [Unseal] checks. The checksum covers the row and the number
// under which the row is stored, so that a row under a wrong number is detected.
func Seal(row []byte, number int64) []byte {
	return binary.LittleEndian.AppendUint32(row, checksum(row, number))
}

func checksum(row []byte, number int64) uint32 {
	return crc32.Update(crc32.Checksum(row, castagnoli), castagnoli, binary.LittleEndian.AppendUint64(make([]byte, 0, 8), uint64(number)))
}

// Unseal checks a row's checksum and returns its content, which shares row's
// memory.
func Unseal(row []byte, number int64) ([]byte, error) {
	n := len(row) - sumSize
	if n < 0 || checksum(row[:n], number) != binary.LittleEndian.Uint32(row[n:]) {
		return nil, damaged("checksum")
	}
	return row[:n], nil
}

// A posting is a varint of gap<<2|code and the data that the code requires. gap is the chunk's
// number minus the number of the previous chunk in the list. For the first chunk in the list,
// gap is the chunk's number plus 1.
const (
	bodyOnce  = iota // once in the last field
	bodyTwice        // twice in the last field
	bodyMore         // a varint: how often in the last field, minus three
	anyCounts        // a varint for each field
)

// body is the last field of a chunk.
const body = Fields - 1

// Posting is one chunk that contains a term.
type Posting struct {
	Chunk uint32
	Counts
}

func appendPosting(b []byte, gap uint32, n Counts) []byte {
	code := uint64(anyCounts)
	if n[0]|n[1] == 0 && n[body] > 0 {
		code = min(uint64(n[body]-1), bodyMore)
	}
	if v := uint64(gap)<<2 | code; v < 0x80 {
		b = append(b, byte(v))
	} else {
		b = binary.AppendUvarint(b, v)
	}
	switch code {
	case bodyMore:
		b = binary.AppendUvarint(b, uint64(n[body]-3))
	case anyCounts:
		for _, c := range n {
			b = binary.AppendUvarint(b, uint64(c))
		}
	}
	return b
}

// List reads the postings of one term in the order of their chunks.
type List struct {
	data   []byte
	last   int64
	chunks int64 // the number of chunks in the segment
	err    error
}

// Err returns the error that stopped the reading of a list before its end, or nil.
func (l *List) Err() error { return l.err }

// Fill reads as many postings as fit into buf and returns how many it read; 0 means the end of
// the list or an error; see Err.
func (l *List) Fill(buf []Posting) int {
	data, at, last := l.data, 0, l.last
	n := 0
	for n < len(buf) && at < len(data) {
		v := uint64(data[at])
		at++
		if v >= 0x80 {
			v &= 0x7f
			for shift := uint(7); ; shift += 7 {
				if at >= len(data) || shift > 35 {
					return l.fail()
				}
				c := data[at]
				at++
				v |= uint64(c&0x7f) << shift
				if c < 0x80 {
					break
				}
			}
		}
		gap := int64(v >> 2)
		last += gap
		if gap == 0 || last >= l.chunks {
			return l.fail()
		}
		p := &buf[n]
		n++
		p.Chunk = uint32(last)
		switch code := v & 3; code {
		case bodyOnce, bodyTwice:
			p.Counts = Counts{body: uint16(code) + 1}
		case bodyMore:
			c, ok := uint16(0), false
			if c, at, ok = count(data, at); !ok || c > math.MaxUint16-3 {
				return l.fail()
			}
			p.Counts = Counts{body: c + 3}
		default:
			for f := range p.Counts {
				ok := false
				if p.Counts[f], at, ok = count(data, at); !ok {
					return l.fail()
				}
			}
		}
	}
	l.data, l.last = data[at:], last
	return n
}

// count reads a varint, which is usually one byte.
func count(data []byte, at int) (n uint16, next int, ok bool) {
	if at < len(data) && data[at] < 0x80 {
		return uint16(data[at]), at + 1, true
	}
	return longCount(data, at)
}

func longCount(data []byte, at int) (n uint16, next int, ok bool) {
	v, size := binary.Uvarint(data[at:])
	return uint16(v), at + size, size > 0 && v <= math.MaxUint16
}

func (l *List) fail() int {
	l.data, l.err = nil, damaged("postings")
	return 0
}
