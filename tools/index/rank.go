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
	stats  statistics
	terms  []term
	idf    []float64
	hashes []uint32
	counts []counts
}

func newScorer(p *plan, st statistics) *scorer {
	s := &scorer{stats: st, terms: p.terms, hashes: p.hashes, counts: make([]counts, len(p.terms))}
	for _, t := range p.terms {
		s.idf = append(s.idf, idf(st.chunks, t.df))
	}
	return s
}

// score returns the score of a chunk from its packed terms.
func (s *scorer) score(packed []byte) (float64, error) {
	length, err := countTerms(packed, s.hashes, s.counts)
	if err != nil {
		return 0, err
	}
	var norm [fieldCount]float64
	for f := range norm {
		b := fieldLength[f]
		norm[f] = 1 / (1 - b + b*float64(length[f])/s.stats.mean[f])
	}
	total := 0.0
	for i, c := range s.counts {
		if c == (counts{}) {
			continue
		}
		part := 0.0
		for f, n := range c {
			tf := norm[f] * float64(n)
			part += fieldWeight[f] * tf * (saturation + 1) / (tf + saturation)
		}
		total += s.terms[i].weight * s.idf[i] * part
	}
	return total, nil
}
