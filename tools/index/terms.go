package index

import (
	"encoding/binary"
	"errors"
	"slices"
)

// Each chunk keeps its terms in a packed list too, so that BM25F can count the
// words of a query in the few chunks that FTS5 picked, without reading their
// text. It begins with the length of each field as a varint. An entry is the distance to the entry before it, of a 24-bit hash, as
// a varint, then one byte of counts: bits 0–3 the body's, 4–5 the crumb's, 6–7
// the title's. Counts beyond what fits are cut: BM25 has levelled off by then.
// Two of a chunk's terms share a hash in one of 10⁵ chunks, which moves a score
// and no more.

const (
	maxBodyCount  = 15
	maxFieldCount = 3
)

// termHash is FNV-1a folded to 24 bits.
func termHash(term string) uint32 {
	h := uint32(2166136261)
	for i := range len(term) {
		h = (h ^ uint32(term[i])) * 16777619
	}
	return h>>24 ^ h&0xffffff
}

// packTerms packs occurrences, each a hash<<2 | field. It sorts its argument.
func packTerms(occurrences []uint32, length [fieldCount]int64) []byte {
	slices.Sort(occurrences)
	packed := make([]byte, 0, 6+len(occurrences)*3)
	for _, n := range length {
		packed = binary.AppendUvarint(packed, uint64(n))
	}
	prev := uint32(0)
	for i := 0; i < len(occurrences); {
		hash := occurrences[i] >> 2
		var n [fieldCount]int
		for ; i < len(occurrences) && occurrences[i]>>2 == hash; i++ {
			n[occurrences[i]&3]++
		}
		packed = binary.AppendUvarint(packed, uint64(hash-prev))
		prev = hash
		packed = append(packed, byte(min(n[fieldBody], maxBodyCount)|min(n[fieldCrumb], maxFieldCount)<<4|min(n[fieldTitle], maxFieldCount)<<6))
	}
	return packed
}

var errTerms = errors.New("index has a malformed list of terms")

// counts is how often a term is in each field of a chunk.
type counts [fieldCount]uint8

// countTerms finds the given hashes, sorted, in a packed list. into has one
// place for each and is overwritten.
func countTerms(packed []byte, hashes []uint32, into []counts) (length [fieldCount]int64, err error) {
	clear(into)
	for f := range length {
		v, n := binary.Uvarint(packed)
		if n <= 0 {
			return length, errTerms
		}
		length[f], packed = int64(v), packed[n:]
	}
	hash, k := uint32(0), 0
	for len(packed) > 0 && k < len(hashes) {
		d, n := binary.Uvarint(packed)
		if n <= 0 || n >= len(packed) {
			return length, errTerms
		}
		hash += uint32(d)
		c := packed[n]
		packed = packed[n+1:]
		for k < len(hashes) && hashes[k] < hash {
			k++
		}
		for k < len(hashes) && hashes[k] == hash {
			into[k] = counts{fieldTitle: c >> 6, fieldCrumb: c >> 4 & 3, fieldBody: c & 15}
			k++
		}
	}
	return length, nil
}
