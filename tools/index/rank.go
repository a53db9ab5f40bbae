package index

import "math"

// statistics are summed over all databases that a query searches, so that a
// word is as rare as it is in all of them together.
type statistics struct {
	chunks int64
	mean   [fieldCount]float64 // terms in each field of a chunk
}

func sumStatistics(states []state) statistics {
	var s statistics
	var length [fieldCount]int64
	for _, st := range states {
		s.chunks += st.chunks
		for f, n := range st.length {
			length[f] += n
		}
	}
	for f, n := range length {
		s.mean[f] = max(1, float64(n)/float64(max(1, s.chunks)))
	}
	return s
}

// The constants of the score. Length and repetition are weighed as in BM25
// (Robertson and Zaragoza, "The Probabilistic Relevance Framework", 2009,
// section 3), but each field levels off by itself before the fields are added:
// a word in the title then counts however often the body has it, which found
// known pages better than adding the fields first, with judged collections
// unchanged.
const saturation = 1.2

var (
	fieldWeight = [fieldCount]float64{fieldTitle: 1.5, fieldCrumb: 0.7, fieldBody: 1}
	fieldLength = [fieldCount]float64{fieldTitle: 0.5, fieldCrumb: 0.5, fieldBody: 0.75}
)

func idf(chunks, df int64) float64 {
	n, d := float64(chunks), float64(min(df, chunks))
	return math.Log(1 + (n-d+0.5)/(d+0.5))
}

// scorer scores chunks for one query.
type scorer struct {
	weight []float32             // of each term
	norm   [fieldCount][]float32 // by length, of a field
}

// maxNorm is the length from which on a field is as long as any other.
const maxNorm = 4096

func newScorer(p *plan, st statistics) *scorer {
	s := &scorer{}
	for _, t := range p.terms {
		s.weight = append(s.weight, float32(t.weight*idf(st.chunks, t.df)))
	}
	for f := range s.norm {
		s.norm[f] = make([]float32, maxNorm+1)
		b := fieldLength[f]
		for n := range s.norm[f] {
			s.norm[f][n] = float32(1 / (1 - b + b*float64(n)/st.mean[f]))
		}
	}
	return s
}

// part returns what term i, so often in the fields of a chunk that are so long,
// adds to the chunk's score.
func (s *scorer) part(i int, n counts, length *[fieldCount]uint16) float32 {
	sum := float32(0)
	for f, c := range n {
		if c != 0 {
			tf := s.norm[f][min(length[f], maxNorm)] * float32(c)
			sum += float32(fieldWeight[f]) * tf * (saturation + 1) / (tf + saturation)
		}
	}
	return s.weight[i] * sum
}

// whole returns what term i, so often in a document that is so long, adds to the
// document's score.
func (s *scorer) whole(i int, n [fieldCount]uint32, length *[fieldCount]uint32) float32 {
	return 0
}
