package parse

import (
	"encoding/binary"
	"fmt"

	"satchel/tools/index/segment"
)

// TermHash returns the FNV-1a hash of a term, folded to 24 bits. It is never 0.
func TermHash(term string) uint32 {
	h := uint32(2166136261)
	for i := range len(term) {
		h = (h ^ uint32(term[i])) * 16777619
	}
	return max(1, h>>24^h&0xffffff)
}

// Tokens holds the words of a chunk in order, for phrases and proximity. For each field, it
// contains the number of words as a varint and then the TermHash of each word in three bytes. A 0
// separates each heading or name from the next. A chunk of 170 words contains another word with
// the hash of a given word in about one of 10⁵ cases.
type Tokens []byte

const tokenBytes = 3

// sealBytes is the size of the checksum of Tokens.
const sealBytes = 4

// TokenBreak separates each heading or name from the next. No term has this hash.
const TokenBreak = 0

func appendTokens(b []byte, words []uint32) Tokens {
	b = binary.AppendUvarint(b, uint64(len(words)))
	for _, w := range words {
		b = append(b, byte(w), byte(w>>8), byte(w>>16))
	}
	return b
}

// Check returns an error if t is malformed.
func (t Tokens) Check() error {
	for range FieldCount {
		n, size := binary.Uvarint(t)
		if size <= 0 || n > uint64(len(t)-size)/tokenBytes {
			return fmt.Errorf("%w: words of a chunk", segment.ErrDamaged)
		}
		t = t[size+int(n)*tokenBytes:]
	}
	if len(t) > 0 {
		return fmt.Errorf("%w: words of a chunk", segment.ErrDamaged)
	}
	return nil
}

// Words holds the hashes of words in order.
type Words []byte

// Len returns how many words there are. At returns the hash of word i.
func (w Words) Len() int        { return len(w) / tokenBytes }
func (w Words) At(i int) uint32 { return uint32(w[3*i]) | uint32(w[3*i+1])<<8 | uint32(w[3*i+2])<<16 }

// Field returns the words of a field, or nil if t is malformed.
func (t Tokens) Field(f int) Words {
	for ; ; f-- {
		n, size := binary.Uvarint(t)
		if size <= 0 || n > uint64(len(t)-size)/tokenBytes {
			return nil
		}
		t = t[size:]
		if f == 0 {
			return Words(t[:n*tokenBytes])
		}
		t = t[n*tokenBytes:]
	}
}

// Hold reports whether one of the fields contains the terms of a phrase in order, next to each
// other.
func (t Tokens) Hold(phrase []string) bool {
	want := make([]uint32, len(phrase))
	for i, p := range phrase {
		want[i] = TermHash(p)
	}
	for f := range FieldCount {
		words := t.Field(f)
	next:
		for i := 0; i+len(want) <= words.Len(); i++ {
			for j, w := range want {
				if words.At(i+j) != w {
					continue next
				}
			}
			return true
		}
	}
	return false
}
