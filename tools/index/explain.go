package index

import (
	"context"

	"satchel/tools/index/parse"
	"satchel/tools/index/segment"
)

// Explanation says how a document came to its score. The scores of Terms add up to the
// first step, and each step has the score after it; the last is the score of the hit.
type Explanation struct {
	// Terms are those of the query in the document's best passage. They are empty if no
	// word of the query found the document, but its meaning.
	Terms []TermScore `json:"terms"`
	Steps []ScoreStep `json:"steps"`

	passage int64 // the chunk that Terms are of
}

// TermScore is what one term of the query adds to the score of a passage.
type TermScore struct {
	Term string `json:"term"`
	// Weight is what the term counts in this query, 1 for a word as it was typed.
	Weight float64 `json:"weight"`
	// Rarity is the inverse document frequency, times 1 or more for a term whose
	// occurrences are in few passages; Passages is how many have the term.
	Rarity   float64 `json:"rarity"`
	Passages int64   `json:"passages"`
	// Added reports that the query does not have the term, but the best pages of its first
	// pass have it in common.
	Added  bool         `json:"added,omitempty"`
	Fields []FieldScore `json:"fields"`
	Score  float64      `json:"score"` // Weight × Rarity × the sum of Fields
}

// FieldScore is what a term adds by one field of a passage.
type FieldScore struct {
	Field string  `json:"field"` // "title", "headings" or "text"
	Count int     `json:"count"` // of the term
	Words int     `json:"words"` // of the field
	Score float64 `json:"score"` // before the weight and the rarity of the term
}

// ScoreStep is a change of a document's score.
type ScoreStep struct {
	What  string  `json:"what"`
	Score float64 `json:"score"` // after it
}

// rescore changes the score of a document; what is why, for its explanation.
func (f *found) rescore(what string, score float64) {
	if f.why != nil && score != f.score {
		f.why.Steps = append(f.why.Steps, ScoreStep{what, score})
	}
	f.score = score
}

// explainTerms fills in the terms of explanations. It reads the postings of the query's
// terms once more.
func (u *inquiry) explainTerms(ctx context.Context, docs []*found) error {
	for _, s := range u.sessions {
		wanted := map[int64]*Explanation{}
		for _, f := range docs {
			if f.session == s && f.why != nil && f.why.passage != 0 {
				wanted[f.why.passage] = f.why
			}
		}
		if len(wanted) == 0 {
			continue
		}
		for i := range s.view.parts {
			chunks := s.view.parts[i].seg.Chunks
			of := map[uint32]*Explanation{}
			for c := range chunks {
				if e := wanted[chunkID(chunks[c])]; e != nil && !s.view.parts[i].dead.has(c) {
					of[uint32(c)] = e
				}
			}
			for k, t := range u.scored.terms {
				err := s.each(ctx, t.text, i, s.scratch(), func(ps []segment.Posting) {
					for _, p := range ps {
						if e := of[uint32(p.Chunk)]; e != nil {
							e.Terms = append(e.Terms, u.scored.explain(k, t, p.Counts, &chunks[p.Chunk].Length))
						}
					}
				})
				if err != nil {
					return u.x.failed(ctx, s, err)
				}
			}
		}
	}
	return nil
}

// Explain is part with the reasons.
func (s *scorer) explain(i int, t term, n counts, length *[parse.FieldCount]uint16) TermScore {
	out := TermScore{Term: t.text, Weight: t.weight, Rarity: float64(s.weight[i]) / t.weight, Passages: t.df, Added: t.inBody, Score: float64(s.part(i, n, length))}
	for f, name := range [parse.FieldCount]string{parse.FieldTitle: "title", parse.FieldCrumb: "headings", parse.FieldBody: "text"} {
		if score := s.field(i, f, n[f], length); score != 0 {
			out.Fields = append(out.Fields, FieldScore{name, int(n[f]), int(length[f]), float64(score)})
		}
	}
	return out
}
