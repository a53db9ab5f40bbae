package semantic

import (
	"encoding/binary"
	"fmt"
	"math"
)

// row is a vector in bytes: number i is about low + step × codes[i].
type row struct {
	low, step float32
	sum       float32 // the sum of codes
	codes     []byte  // padded with zeros to a multiple of lanes
}

const (
	lanes    = 8
	maxCode  = 255 // the largest code of a passage
	maxQuery = 63  // the largest code of a query; see query
	// MaxDimensions bounds a vector: no model in use has more than 8,192.
	MaxDimensions = 16384
)

func stride(dims int) int { return (dims + lanes - 1) / lanes * lanes }

// normalise scales v to length 1. It rejects vectors without a direction.
func normalise(v []float32) error {
	sum := 0.0
	for _, x := range v {
		f := float64(x)
		if math.IsNaN(f) || math.IsInf(f, 0) {
			return fmt.Errorf("%w: a number of it is not finite", ErrVector)
		}
		sum += f * f
	}
	if sum < 1e-24 || math.IsInf(sum, 0) {
		return fmt.Errorf("%w: all of it is zero", ErrVector)
	}
	k := float32(1 / math.Sqrt(sum))
	for i := range v {
		v[i] *= k
	}
	return nil
}

// affine scales v to whole numbers from 0 to most, and passes each number to put. sum is the sum
// of these numbers.
func affine(v []float32, most float32, put func(i int, code byte)) (low, step, sum float32) {
	low, high := v[0], v[0]
	for _, x := range v {
		low, high = min(low, x), max(high, x)
	}
	step = (high - low) / most
	if step == 0 {
		step = 1
	}
	total := 0
	for i, x := range v {
		c := byte(min(most, max(0, (x-low)/step+0.5)))
		put(i, c)
		total += int(c)
	}
	return low, step, float32(total)
}

// quantise packs a normalised vector in bytes.
func quantise(v []float32) row {
	r := row{codes: make([]byte, stride(len(v)))}
	r.low, r.step, r.sum = affine(v, maxCode, func(i int, c byte) { r.codes[i] = c })
	return r
}

// rowHeader is how many bytes the three numbers of a row take.
const rowHeader = 12

func (r row) append(b []byte) []byte {
	for _, f := range []float32{r.low, r.step, r.sum} {
		b = binary.LittleEndian.AppendUint32(b, math.Float32bits(f))
	}
	return append(b, r.codes...)
}

func unpackRow(b []byte, dims int) (row, error) {
	if len(b) != rowHeader+stride(dims) {
		return row{}, fmt.Errorf("%w: a stored vector has %d bytes", errFile, len(b))
	}
	f := func(i int) float32 { return math.Float32frombits(binary.LittleEndian.Uint32(b[4*i:])) }
	return row{low: f(0), step: f(1), sum: f(2), codes: b[rowHeader:]}, nil
}

// query is a query's vector, prepared for both passes.
type query struct {
	exact []float32 // padded to the stride
	total float32   // the sum of exact
	// Number i is about low + step × c. The code c, from 0 to maxQuery, is in words. Two words
	// hold the codes of eight numbers: first those at even places, then those at odd places.
	// The four codes of a word are in reverse order, 16 bits apart. Multiplying a word by four
	// codes of a passage, also 16 bits apart, puts the sum of the four products in the top 16
	// bits. The sum fits, because it is at most 4 × 255 × 63. The lower sums fit too, so none
	// of them carries into it.
	words     []uint64
	low, step float32
	sum       float32
	dims      int
}

func prepare(v []float32) *query {
	q := &query{exact: make([]float32, stride(len(v))), words: make([]uint64, stride(len(v))/4), dims: len(v)}
	copy(q.exact, v)
	for _, x := range v {
		q.total += x
	}
	q.low, q.step, q.sum = affine(v, maxQuery, func(i int, c byte) {
		word := i/lanes*2 + i%2
		lane := i % lanes / 2
		q.words[word] |= uint64(c) << (16 * (3 - lane))
	})
	return q
}

const evenBytes = 0x00ff00ff00ff00ff

// products returns the sum of the products of the codes of a passage and of the query. A search
// spends most of its time in this loop.
func products(codes []byte, words []uint64) uint64 {
	var a, b, c, d uint64
	n := len(codes)
	words = words[:n/4]
	i := 0
	for ; i+32 <= n; i += 32 {
		p, w := codes[i:i+32:i+32], words[i/4:i/4+8:i/4+8]
		x, y := binary.LittleEndian.Uint64(p), binary.LittleEndian.Uint64(p[8:])
		a += (x & evenBytes) * w[0] >> 48
		b += (x >> 8 & evenBytes) * w[1] >> 48
		c += (y & evenBytes) * w[2] >> 48
		d += (y >> 8 & evenBytes) * w[3] >> 48
		x, y = binary.LittleEndian.Uint64(p[16:]), binary.LittleEndian.Uint64(p[24:])
		a += (x & evenBytes) * w[4] >> 48
		b += (x >> 8 & evenBytes) * w[5] >> 48
		c += (y & evenBytes) * w[6] >> 48
		d += (y >> 8 & evenBytes) * w[7] >> 48
	}
	for ; i+lanes <= n; i += lanes {
		x := binary.LittleEndian.Uint64(codes[i:])
		a += (x & evenBytes) * words[i/4] >> 48
		b += (x >> 8 & evenBytes) * words[i/4+1] >> 48
	}
	return a + b + c + d
}

// coarse returns the approximate cosine, computed from the codes of the query and the passage.
func (q *query) coarse(r row) float32 {
	return float32(q.dims)*r.low*q.low + r.low*q.step*q.sum + r.step*q.low*r.sum + r.step*q.step*float32(products(r.codes, q.words))
}

// fine returns the cosine of the exact query and the packed passage.
func (q *query) fine(r row) float32 {
	var a, b, c, d float32
	codes := r.codes
	exact := q.exact[:len(codes)]
	for len(codes) >= 4 && len(exact) >= 4 {
		a += float32(codes[0]) * exact[0]
		b += float32(codes[1]) * exact[1]
		c += float32(codes[2]) * exact[2]
		d += float32(codes[3]) * exact[3]
		codes, exact = codes[4:], exact[4:]
	}
	return r.low*q.total + r.step*(a+b+c+d)
}
