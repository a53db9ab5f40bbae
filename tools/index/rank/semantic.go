package rank

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	lru "github.com/hashicorp/golang-lru/v2"

	"satchel/tools/index/query"
	"satchel/tools/index/semantic"
)

// Semantic configures semantic search. Each of its three models may be absent. The zero value
// of a field means its default.
type Semantic struct {
	// Vectors holds the embedder and its limits. If it is nil or has no Embedder, pages are
	// found only by words.
	Vectors *semantic.Options
	// Weight is the share of the vectors in a document's score. The rest is the share of
	// its words. Default 0.5.
	Weight float64
	// Nearest is how many documents the vectors may add to those that have a word of the
	// query. Default 100.
	Nearest int

	// Reranker judges the best documents again; nil for none.
	Reranker Reranker
	// RerankCount is how many documents the Reranker judges (default 30), and RerankChars how
	// many characters of each (default 2,000). RerankWait is how long the Reranker may take
	// (default 1.5 s). RerankWeight is the share of its judgment in a document's new score
	// (default 0.7).
	RerankCount  int
	RerankChars  int
	RerankWait   time.Duration
	RerankWeight float64

	// Expander suggests other words for a query; nil for none.
	Expander Expander
	// ExpandWait is how long the Expander may take. Default 1.5 s.
	ExpandWait time.Duration
	// ExpandCache is the number of queries whose other words are cached. Default 1,000.
	ExpandCache int

	// Wait is how long one search waits for all three models together. Default 1.5 s.
	Wait time.Duration

	// Close is called when the index no longer uses any of the models; it may be nil.
	Close func()
}

// Reranker judges how relevant texts are to a query. The scores are in the order of the
// texts, and higher is better. It may be called concurrently.
type Reranker interface {
	Rerank(ctx context.Context, query string, documents []string) ([]float64, error)
}

// Expander returns a few other words or short phrases for a query. It may be called
// concurrently.
type Expander interface {
	Expand(ctx context.Context, query string) ([]string, error)
}

// The defaults of Semantic.
const (
	DefaultSemanticWeight = 0.5
	DefaultNearest        = 100
	DefaultRerankCount    = 30
	DefaultRerankChars    = 2000
	DefaultRerankWait     = 1500 * time.Millisecond
	DefaultRerankWeight   = 0.7
	DefaultExpandWait     = 1500 * time.Millisecond
	DefaultExpandCache    = 1000
	DefaultSemanticWait   = 1500 * time.Millisecond
)

func (m Semantic) withDefaults() Semantic {
	m.Weight = cmp.Or(m.Weight, DefaultSemanticWeight)
	m.Nearest = cmp.Or(m.Nearest, DefaultNearest)
	m.RerankCount = cmp.Or(m.RerankCount, DefaultRerankCount)
	m.RerankChars = cmp.Or(m.RerankChars, DefaultRerankChars)
	m.RerankWait = cmp.Or(m.RerankWait, DefaultRerankWait)
	m.RerankWeight = cmp.Or(m.RerankWeight, DefaultRerankWeight)
	m.ExpandWait = cmp.Or(m.ExpandWait, DefaultExpandWait)
	m.ExpandCache = cmp.Or(m.ExpandCache, DefaultExpandCache)
	m.Wait = cmp.Or(m.Wait, DefaultSemanticWait)
	return m
}

// models are the models of a Ranker.
type models struct {
	Semantic
	engine        *semantic.Engine // nil if there are no vectors
	rerankBreaker *semantic.Breaker
	expandBreaker *semantic.Breaker
	expanded      *lru.Cache[string, []string] // what the Expander returned for queries
}

// semanticRun is the semantic part of one search. It is nil if the search uses no models.
type semanticRun struct {
	models  *models
	text    string // the text of the query, without qualifiers
	views   map[*Source]*semantic.View
	answers map[semantic.Identity]*semantic.Answer
	left    time.Duration // time that the search may still wait for models
	now     func() time.Time
}

// startSemantic starts to embed the query, while the search for its words runs.
func (u *Run) startSemantic() {
	o := u.ranker.models
	text := strings.Join(slices.Concat(u.Words, u.Phrases), " ")
	if o == nil || text == "" || u.Sort != query.ByRelevance {
		return
	}
	m := &semanticRun{models: o, text: text, left: o.Wait, now: u.opts.Now}
	u.semantic = m
	if o.engine == nil {
		return
	}
	m.views, m.answers = map[*Source]*semantic.View{}, map[semantic.Identity]*semantic.Answer{}
	for _, s := range u.sources {
		v := o.engine.View(string(s.ID))
		if v == nil {
			if st := o.engine.Status(string(s.ID)); s.State.Docs > 0 {
				u.note("%s", unembedded(s.Label, st))
			}
			continue
		}
		m.views[s] = v
		if id := v.Identity(); m.answers[id] == nil {
			m.answers[id] = o.engine.Ask(id, text)
		}
	}
}

func unembedded(label string, st semantic.Status) string {
	why := ""
	switch {
	case st.Err != nil:
		why = " (the embedding model fails)"
	case st.Running && st.Total > 0:
		why = fmt.Sprintf(" (%d of about %d passages are)", st.Done, st.Total)
	}
	return fmt.Sprintf("%s is not embedded yet%s, so it was searched only by its words.", label, why)
}

// end releases the search's resources.
func (m *semanticRun) end() {
	if m != nil {
		for _, v := range m.views {
			v.Release()
		}
	}
}

// maxFused is how many of the documents that words found also get a score from their
// vectors. The others rank below.
const maxFused = 500

// fuse orders documents by the scores of words and vectors together, and adds documents
// that only vectors find. docs and the result are sorted best first. If no embedding model
// answers, fuse returns docs unchanged and adds a note.
func (u *Run) fuse(ctx context.Context, docs []*Candidate) ([]*Candidate, error) {
	m := u.semantic
	if m == nil || len(m.views) == 0 {
		return docs, nil
	}
	vectors, failed := map[semantic.Identity]*semantic.Vector{}, error(nil)
	for id, a := range m.answers {
		var v *semantic.Vector
		err := m.within(ctx, m.left, func(inner context.Context) (err error) {
			v, err = a.Wait(inner)
			return err
		})
		switch {
		case ctx.Err() != nil:
			return nil, ctx.Err()
		case err != nil:
			failed = err
		default:
			vectors[id] = v
		}
	}
	c := &cosines{of: map[*Candidate]float64{}}
	for s, view := range m.views {
		v := vectors[view.Identity()]
		if v == nil {
			continue
		}
		err := u.near(ctx, s, v, docs, c)
		if errors.Is(err, semantic.ErrDimensions) { // the model's name now belongs to another model
			m.models.engine.Changed(string(s.ID))
			failed = err
		} else if err != nil {
			return nil, s.Failed(err)
		}
	}
	if failed != nil {
		u.logFailed(ctx, "a query's meaning was left out", fmt.Errorf("embedding model: %w", failed))
		u.note("%s", degraded("embedding", failed))
	}
	if len(c.of) == 0 {
		return docs, nil
	}
	u.Total += len(c.added)
	return c.order(docs, m.models.Weight), nil
}

// cosines are the vector scores of the documents of one search.
type cosines struct {
	of    map[*Candidate]float64
	added []*Candidate // documents found only by vectors
}

// near adds to c the documents of one collection that are near the query, and the vector scores
// of the documents that words found.
func (u *Run) near(ctx context.Context, s *Source, v *semantic.Vector, docs []*Candidate, c *cosines) error {
	m, p, view := u.semantic, u.plan, u.semantic.views[s]
	var near []semantic.Near
	if len(p.phrases) == 0 && len(p.without) == 0 { // only words can show whether a phrase occurs
		filter, err := s.Filter(ctx, u.Filters, s.Mount)
		if err != nil {
			return err
		}
		allowed, err := s.Select(ctx, filter)
		if err != nil {
			return err
		}
		if ids := allowed.IDs(); ids == nil || len(ids) > 0 {
			if near, err = view.Nearest(v, ids, m.models.Nearest); err != nil {
				return err
			}
		}
	}
	known := map[int64]*Candidate{}
	for _, f := range docs[:min(len(docs), maxFused)] {
		if f.Source != s {
			continue
		}
		known[f.ID] = f
		if n, ok := view.Cosine(v, f.ID); ok {
			near = append(near, n)
		}
	}
	for _, f := range docs[min(len(docs), maxFused):] {
		if f.Source == s {
			known[f.ID] = nil // neither scored nor added
		}
	}
	ids := make([]int64, len(near))
	for i, n := range near {
		ids[i] = n.Doc
	}
	current, err := s.Keys(ctx, ids)
	if err != nil {
		return err
	}
	for _, n := range near {
		if k, ok := current[n.Doc]; !ok || k != n.Key {
			continue // the vector belongs to a former document with this id
		}
		f, ok := known[n.Doc]
		if !ok {
			f = &Candidate{Source: s, ID: n.Doc, Chunks: []Chunk{{ID: n.Chunk}}}
			if u.Parsed.Explain {
				f.Why = &Explanation{}
			}
			known[n.Doc] = f
			c.added = append(c.added, f)
		}
		if f != nil {
			c.of[f] = n.Cosine
		}
	}
	return nil
}

// order combines the scores of the words and of the vectors. It scales the result to the best
// score of the words, so that shares of the best score keep their meaning.
func (c *cosines) order(docs []*Candidate, weight float64) []*Candidate {
	judged := min(len(docs), maxFused)
	all := slices.Concat(docs[:judged], c.added)
	words, meaning := make([]float64, len(all)), make([]float64, len(all))
	for i, f := range all {
		words[i], meaning[i] = f.Score, math.NaN()
		if cos, ok := c.of[f]; ok {
			meaning[i] = cos
		}
	}
	top := 1.0
	if len(docs) > 0 && docs[0].Score > 0 {
		top = docs[0].Score
	}
	last := math.Inf(1)
	for i, s := range fuseScores(words, meaning, weight) {
		all[i].rescore("The meaning of the page was compared with the search.", s*top)
		last = min(last, all[i].Score)
	}
	for _, f := range docs[judged:] { // in their previous order, below the others
		f.rescore("The search compared the meaning of other pages, which come first.", min(last, (1-weight)*f.Score))
	}
	slices.SortStableFunc(all, func(a, b *Candidate) int { return cmp.Compare(b.Score, a.Score) })
	return append(all, docs[judged:]...)
}

// degraded returns the note that a model did not take part.
func degraded(model string, err error) string {
	why := "failed"
	switch {
	case errors.Is(err, semantic.ErrSlow), errors.Is(err, context.DeadlineExceeded):
		why = "did not answer in time"
	case errors.Is(err, semantic.ErrResting):
		why = "failed recently and is not called for a moment"
	case errors.Is(err, errSpent):
		why = "was not called, because other models used up the search's time for models"
	case errors.Is(err, semantic.ErrBusy):
		why = "is busy"
	case errors.Is(err, semantic.ErrDimensions):
		why = "is another one now, and the pages are being embedded again"
	}
	return fmt.Sprintf("The %s model %s, so this answer does not use it.", model, why)
}
