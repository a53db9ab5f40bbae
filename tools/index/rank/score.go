package rank

import (
	"math"

	"satchel/tools/index/parse"
	"satchel/tools/index/postings"
	"satchel/tools/index/segment"
)

// statistics cover all databases that a query searches together, so that a word has the same
// rarity in each of them.
type statistics struct {
	chunks int64
	mean   [parse.FieldCount]float64 // average number of words in each field of a chunk
}

func sumStatistics(states []postings.State) statistics {
	var s statistics
	var length [parse.FieldCount]int64
	for _, st := range states {
		s.chunks += st.Chunks
		for f, n := range st.Length {
			length[f] += n
		}
	}
	for f, n := range length {
		s.mean[f] = max(1, float64(n)/float64(max(1, s.chunks)))
	}
	return s
}

// The constants of the score. Length and repetition are weighted as in BM25 (Robertson and
// Zaragoza, "The Probabilistic Relevance Framework", 2009, section 3), but each field
// saturates separately before the fields are added. So a word in the title counts even if
// the body often has it. This finds known pages better than adding the fields first, and
// gives the same results for judged collections.
const saturation = 1.2

var (
	fieldWeight = [parse.FieldCount]float64{parse.FieldTitle: 1.5, parse.FieldCrumb: 0.7, parse.FieldBody: 1}
	fieldLength = [parse.FieldCount]float64{parse.FieldTitle: 0.5, parse.FieldCrumb: 0.5, parse.FieldBody: 0.75}
)

func idf(chunks, df int64) float64 {
	n, d := float64(chunks), float64(min(df, chunks))
	return math.Log(1 + (n-d+0.5)/(d+0.5))
}

// scorer scores chunks for one query.
type scorer struct {
	terms  []Term
	weight []float32 // the weight of each term
	inBody []bool    // the term counts only in the body
	norms  *norms
}

// maxNorm is the length above which all fields count as equally long.
const maxNorm = 4096

// norms hold the weight of a word in a field, by the field's length.
type norms [parse.FieldCount][maxNorm + 1]float32

func newNorms(st statistics) *norms {
	all := &norms{}
	for f := range all {
		b := fieldLength[f]
		for n := range all[f] {
			all[f][n] = float32(1 / (1 - b + b*float64(n)/st.mean[f]))
		}
	}
	return all
}

func newScorer(terms []Term, st statistics, n *norms) *scorer {
	s := &scorer{terms: terms, norms: n}
	for _, t := range terms {
		s.weight = append(s.weight, float32(t.Weight*t.residualIDF*idf(st.chunks, t.DF)))
		s.inBody = append(s.inBody, t.inBody)
	}
	return s
}

// part returns what term i adds to the score of a chunk, given its counts and the lengths
// of the fields.
func (s *scorer) part(i int, n segment.Counts, length *[parse.FieldCount]uint16) float32 {
	sum := float32(0)
	for f, c := range n {
		sum += s.field(i, f, c, length)
	}
	return s.weight[i] * sum
}

// field returns what c occurrences of term i in a field add to the sum in part.
func (s *scorer) field(i, f int, c uint16, length *[parse.FieldCount]uint16) float32 {
	if c == 0 || f != parse.FieldBody && s.inBody[i] {
		return 0
	}
	tf := s.norms[f][min(length[f], maxNorm)] * float32(c)
	return float32(fieldWeight[f]) * tf * (saturation + 1) / (tf + saturation)
}

// add adds term i to the chunks in found that have it: its score, its bit, and head if the
// term is in a heading.
func (s *scorer) add(i int, ps []segment.Posting, chunks []segment.Chunk, found []postings.ChunkScore, bit uint64, head heads) {
	weight, norm := s.weight[i], &s.norms[parse.FieldBody]
	bodyWeight := float32(fieldWeight[parse.FieldBody])
	for j := range ps {
		p := &ps[j]
		f, length := &found[p.Chunk], &chunks[p.Chunk].Length
		f.Terms |= bit
		if p.Counts[parse.FieldTitle]|p.Counts[parse.FieldCrumb] == 0 { // the usual case; the result is the same as that of part
			tf := norm[min(length[parse.FieldBody], maxNorm)] * float32(p.Counts[parse.FieldBody])
			f.Score += weight * (bodyWeight * tf * (saturation + 1) / (tf + saturation))
			continue
		}
		f.Score += s.part(i, p.Counts, length)
		if p.Counts[parse.FieldCrumb] > 0 {
			f.Heads |= head
		}
	}
}

// burstWeight raises the weight of a word whose occurrences are in few chunks. It is multiplied
// by the logarithm of expected/actual, where actual is the number of chunks with the word, and
// expected is that number if the occurrences were randomly distributed.
const burstWeight = 0.7

// residualIDF returns how much a term says about the topic of a text, at least 1. It
// compares how many chunks have the term with how often it occurs in bodies: words of a
// topic occur several times in a chunk, others once (Church and Gale, "Poisson mixtures",
// 1995).
func residualIDF(chunks, df, occurrences int64) float64 {
	if df == 0 || chunks == 0 {
		return 1
	}
	n, d := float64(chunks), float64(min(df, chunks))
	byChance := 1 - math.Exp(-float64(max(1, occurrences))/n)
	return 1 + burstWeight*max(0, math.Log(n/d)+math.Log(byChance))
}

// coverWeight is the share by which the score of a document grows if its best chunk contains
// all words of a query. Without it, a rare word could outweigh all the others.
const coverWeight = 0.7

// coverage measures how much of a query a chunk contains.
type coverage struct {
	weight []float64 // the weights of the first 63 terms
	total  float64
	words  map[int]uint64 // by Term.word: the bits of the word's terms; bit i is for terms[i]
}

func newCoverage(terms []Term, st statistics) *coverage {
	c := &coverage{words: map[int]uint64{}}
	for i, t := range terms {
		if t.word >= 0 && i < 63 {
			c.words[t.word] |= 1 << i
		}
		w := t.Weight * t.residualIDF * idf(st.chunks, t.DF)
		if t.DF == 0 {
			continue
		}
		c.total += w
		if i < 63 {
			for len(c.weight) < i {
				c.weight = append(c.weight, 0)
			}
			c.weight = append(c.weight, w)
		}
	}
	return c
}

// of returns the share of the query's weight, from 0 to 1, that the given terms have.
func (c *coverage) of(terms uint64) float64 {
	if c.total <= 0 {
		return 0
	}
	sum := 0.0
	for i, w := range c.weight {
		if terms&(1<<i) != 0 {
			sum += w
		}
	}
	return sum / c.total
}

// whole reports whether the given terms include every word of the query, in any form.
func (c *coverage) whole(terms uint64) bool {
	for _, word := range c.words {
		if terms&word == 0 {
			return false
		}
	}
	return len(c.words) > 0
}
