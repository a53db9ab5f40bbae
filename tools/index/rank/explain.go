package rank

import (
	"context"

	"satchel/tools/index/parse"
	"satchel/tools/index/postings"
	"satchel/tools/index/segment"
)

// AllWords is the reason of the step for a passage that has every word of the query. Every result
// of a query of one word has this step.
const AllWords = "One passage has all words of the search."

// Explanation explains a document's score. The scores of Terms add up to the score of the
// first step. The score of the last step is that of the hit.
type Explanation struct {
	// Terms are the query's terms in the document's best passage. They are empty if only
	// the vectors found the document.
	Terms []TermScore `json:"terms"`
	Steps []ScoreStep `json:"steps"`

	passage int64 // the id of the chunk that Terms are about
}

// TermScore is what one term of the query adds to a passage's score.
type TermScore struct {
	Term string `json:"term"`
	// Typed is the word of the query from which the term comes. It is empty if the term does
	// not come from one word.
	Typed string `json:"typed,omitempty"`
	// Weight is the term's weight in this query. It is usually 1 for a word as it was typed.
	Weight float64 `json:"weight"`
	// Rarity is the inverse document frequency, multiplied by 1 or more if the term's
	// occurrences are in few passages. Passages is the number of passages with the term.
	Rarity   float64 `json:"rarity"`
	Passages int64   `json:"passages"`
	// Added means that feedback added the term, because the best pages of the first pass
	// share it.
	Added  bool         `json:"added,omitempty"`
	Fields []FieldScore `json:"fields"`
	Score  float64      `json:"score"` // Weight × Rarity × the sum of Fields
}

// FieldScore is what a term in one field adds to a passage's score.
type FieldScore struct {
	Field string  `json:"field"` // "title", "headings" or "text"
	Count int     `json:"count"` // how often the field has the term
	Words int     `json:"words"` // number of words in the field
	Score float64 `json:"score"` // not yet multiplied by the weight and the rarity of the term
}

// ScoreStep is a change of a document's score.
type ScoreStep struct {
	What  string  `json:"what"`  // the reason, as a sentence
	Score float64 `json:"score"` // the document's score after the step
}

// rescore changes the score of a document. what is a sentence that gives the reason, for the
// document's explanation.
func (f *Candidate) rescore(what string, score float64) {
	if f.Why != nil && score != f.Score {
		f.Why.Steps = append(f.Why.Steps, ScoreStep{what, score})
	}
	f.Score = score
}

// ExplainTerms fills in the terms of the explanations. It reads the postings of the query's
// terms once more.
func (u *Run) ExplainTerms(ctx context.Context, docs []*Candidate) error {
	for _, s := range u.sources {
		byPassage := map[int64]*Explanation{}
		for _, f := range docs {
			if f.Source == s && f.Why != nil && f.Why.passage != 0 {
				byPassage[f.Why.passage] = f.Why
			}
		}
		if len(byPassage) == 0 {
			continue
		}
		for i := range s.View.Parts {
			chunks := s.View.Parts[i].Segment.Chunks
			of := map[uint32]*Explanation{}
			for c := range chunks {
				if e := byPassage[postings.ChunkID(chunks[c])]; e != nil && !s.View.Parts[i].Dead.Has(c) {
					of[uint32(c)] = e
				}
			}
			for k, t := range u.scored.terms {
				err := s.Each(ctx, t.Text, i, func(ps []segment.Posting) {
					for _, p := range ps {
						if e := of[uint32(p.Chunk)]; e != nil {
							term := u.scored.explain(k, t, p.Counts, &chunks[p.Chunk].Length)
							if t.word >= 0 && t.word < len(u.plan.typed) {
								term.Typed = u.plan.typed[t.word]
							}
							e.Terms = append(e.Terms, term)
						}
					}
				})
				if err != nil {
					return s.Failed(err)
				}
			}
		}
	}
	return nil
}

// explain returns the score that part returns, with the numbers from which it is computed.
func (s *scorer) explain(i int, t Term, n segment.Counts, length *[parse.FieldCount]uint16) TermScore {
	out := TermScore{Term: t.Text, Weight: t.Weight, Rarity: float64(s.weight[i]) / t.Weight, Passages: t.DF, Added: t.inBody, Score: float64(s.part(i, n, length))}
	for f, name := range [parse.FieldCount]string{parse.FieldTitle: "title", parse.FieldCrumb: "headings", parse.FieldBody: "text"} {
		if score := s.field(i, f, n[f], length); score != 0 {
			out.Fields = append(out.Fields, FieldScore{name, int(n[f]), int(length[f]), float64(score)})
		}
	}
	return out
}
