package rank

import (
	"context"
	"slices"

	"satchel/internal/space"
	"satchel/tools/index/postings"
	"satchel/tools/index/query"
)

// Candidate is a document that matches the query.
type Candidate struct {
	Source            *Source
	ID                int64
	Score             float64
	Chunks            []Chunk          // matching chunks, best first
	Why               *Explanation     // nil unless the query asks for it
	Header            *postings.Header // nil until readHeaders
	*postings.Passage                  // the passage of Chunks[0]; nil until Load

	terms   uint64     // which terms the best chunk has; see chunkMatch
	path    space.Path // set by weighEvidence; equal scores are sorted by it
	variant string     // see variantKey

	// AlsoCount is how many documents this document represents. Also lists the shown paths of the
	// first maxAlso of them.
	Also      []string
	AlsoCount int
}

// Chunk is a chunk of a document that matches the query.
type Chunk struct {
	ID    int64
	score float64
	heads heads
}

// Passages returns the ids of the matching chunks whose score is at least share times the best
// score, best first.
func (c *Candidate) Passages(share float64) (ids []int64) {
	for _, k := range c.Chunks {
		if k.score >= share*c.Chunks[0].score {
			ids = append(ids, k.ID)
		}
	}
	return ids
}

// secondChunk is the share of its score that the second-best chunk of a document adds to
// the document's score. The share halves for each of the next two chunks.
const secondChunk = 0.05

// leadChunk is the share of its score that the first chunk of a page with headings adds to the
// page's score if the query is a sentence: such a page first says what it is about. A text
// without headings may begin with something else. A name can be anywhere on a page.
const leadChunk = 0.4

// candidates returns the documents of one database that match any of the terms, with
// scores.
func (u *Run) candidates(ctx context.Context, s *Source, terms []Term, sc *scorer, cover *coverage, more bool) ([]*Candidate, error) {
	filter, err := s.Filter(ctx, u.Filters, s.Mount)
	if err != nil {
		return nil, err
	}
	p := u.plan
	if len(p.phrases) == 0 && !slices.ContainsFunc(terms, func(t Term) bool { return t.DF > 0 }) {
		if len(u.Words) == 0 && (!filter.Empty() || u.Sort != query.ByRelevance) {
			if len(p.without) > 0 {
				u.note("The words to exclude were ignored: add a word to search for.")
			}
			return u.list(ctx, s, filter)
		}
		return nil, nil
	}
	docs, err := s.Select(ctx, filter)
	if err != nil {
		return nil, err
	}
	depth := max(u.opts.Candidates, u.depth*chunksPerDocument)
	best, total, err := s.retrieve(ctx, retrieval{
		terms: terms, sc: sc, phrases: p.phrases, without: p.without, docs: docs, depth: depth, verify: u.opts.MaxRows,
		heads: u.headBits(), more: more,
	})
	u.Total += total
	if s.unread {
		u.note("More pages of %s may contain the phrase than the total says, because only the best passages with its words were checked.", s.Label)
	}
	lead := 0.0
	if u.plan.sentence {
		lead = leadChunk
	}
	return s.byDocument(best, cover, lead, u.Explain), err
}

// chunksPerDocument is how many chunks are retrieved for each document of an evaluation's
// ranking.
const chunksPerDocument = 4

// byDocument groups chunks, best first, by document, and scores the documents. A document has the
// score of its best chunk, plus a little for the next ones, plus lead times the score of the
// page's first chunk. The score then grows with the share of the query that the best chunk has.
func (s *Source) byDocument(best []chunkMatch, cover *coverage, lead float64, explain bool) []*Candidate {
	place := make(map[int64]int32, len(best))
	of := make([]int32, len(best)) // for each chunk, the index of its document
	var counts []int32             // the number of chunks of each document
	for i, c := range best {
		k, ok := place[c.id>>postings.ChunkBits]
		if !ok {
			k = int32(len(counts))
			place[c.id>>postings.ChunkBits] = k
			counts = append(counts, 0)
		}
		of[i] = k
		counts[k]++
	}
	docs := make([]Candidate, len(counts))
	order := make([]*Candidate, len(counts))
	leading := make([]float64, len(counts))
	rest := make([]Chunk, len(best))
	for i, c := range best {
		f := &docs[of[i]]
		if f.Source == nil {
			n := counts[of[i]]
			*f = Candidate{Source: s, ID: c.id >> postings.ChunkBits, terms: c.terms, Chunks: rest[:0:n]}
			order[of[i]] = f
			rest = rest[n:]
		}
		f.Chunks = append(f.Chunks, Chunk{c.id, c.score, c.heads | headsKnown})
		if c.lead && lead > 0 {
			leading[of[i]] = lead * c.score
		}
	}
	for i, f := range order {
		if explain {
			f.Why = &Explanation{passage: f.Chunks[0].ID}
		}
		f.rescore("The best passage has words of the search.", f.Chunks[0].score)
		share, others := secondChunk, 0.0
		for _, c := range f.Chunks[1:min(len(f.Chunks), 4)] {
			others += share * c.score
			share /= 2
		}
		f.rescore("Other passages of the page have words of the search.", f.Score+others)
		f.rescore("The beginning of the page has words of the search.", f.Score+leading[i])
		what := "One passage has some words of the search."
		if explain && cover.whole(f.terms) {
			what = AllWords
		}
		f.rescore(what, f.Score*(1+coverWeight*cover.of(f.terms)))
	}
	return order
}

// list answers a query without words. It returns the documents that meet the filter, newest
// first or by path.
func (u *Run) list(ctx context.Context, s *Source, filter postings.Filter) ([]*Candidate, error) {
	ids, total, err := s.List(ctx, filter, u.Sort == query.ByPath, MaxResults)
	if err != nil {
		return nil, err
	}
	docs := make([]*Candidate, len(ids))
	for i, id := range ids {
		docs[i] = &Candidate{Source: s, ID: id, Chunks: []Chunk{{ID: id << postings.ChunkBits}}}
	}
	if u.Sort == query.ByRelevance {
		u.Sort = query.ByDate
	}
	u.Total += total
	return docs, nil
}

// Load reads the document with its best passage.
func (f *Candidate) Load(ctx context.Context) (err error) {
	if f.Passage == nil {
		f.Passage, err = f.Source.Passage(ctx, f.Chunks[0].ID)
	}
	return err
}

// loadPassages reads the best passages of documents, with one statement for each database.
func loadPassages(ctx context.Context, docs []*Candidate) error {
	ids := map[*Source][]int64{}
	for _, f := range docs {
		ids[f.Source] = append(ids[f.Source], f.Chunks[0].ID)
	}
	for s, list := range ids {
		if err := s.LoadPassages(ctx, list...); err != nil {
			return s.Failed(err)
		}
	}
	return nil
}
