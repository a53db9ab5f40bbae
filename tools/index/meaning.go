package index

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	lru "github.com/hashicorp/golang-lru/v2"

	"satchel/internal/space"
	"satchel/tools/index/query"
	"satchel/tools/index/semantic"
)

// Meaning configures the part of a search that goes by what texts mean. Each of
// its three models may be absent. The zero value of a field means its default.
type Meaning struct {
	// Vectors has the embedder and its bounds; nil, or without an Embedder: pages
	// are found by their words alone.
	Vectors *semantic.Options
	// Weight is the share of the vectors in a document's score, beside that of
	// its words. Default 0.5.
	Weight float64
	// Nearest is how many documents the vectors may add to those that have a
	// word of the query. Default 100.
	Nearest int

	// Reranker judges the best documents once more; nil: none does.
	Reranker Reranker
	// RerankCount is how many documents it judges, RerankChars how much of each,
	// RerankWait how long it may take, and RerankWeight the share of its judgment
	// in their order. Default 30, 2,000, 1.5 s and 0.7.
	RerankCount  int
	RerankChars  int
	RerankWait   time.Duration
	RerankWeight float64

	// Expander knows other words of a query; nil: none are looked for.
	Expander Expander
	// ExpandWait is how long it may take. Default 1.5 s.
	ExpandWait time.Duration
	// ExpandCache is how many queries' other words are remembered. Default 1,000.
	ExpandCache int

	// Wait is how long one search waits for all three of them together. Default
	// 1.5 s.
	Wait time.Duration

	// Close is called once the index no longer uses any of the models; nil:
	// nothing is.
	Close func()
}

// Reranker judges how relevant texts are to a query, higher being better, in
// the texts' order. It may be called concurrently.
type Reranker interface {
	Rerank(ctx context.Context, query string, documents []string) ([]float64, error)
}

// Expander returns a few other words or short phrases for what a query asks.
// It may be called concurrently.
type Expander interface {
	Expand(ctx context.Context, query string) ([]string, error)
}

// The defaults of Meaning.
const (
	DefaultMeaningWeight = 0.5
	DefaultNearest       = 100
	DefaultRerankCount   = 30
	DefaultRerankChars   = 2000
	DefaultRerankWait    = 1500 * time.Millisecond
	DefaultRerankWeight  = 0.7
	DefaultExpandWait    = 1500 * time.Millisecond
	DefaultExpandCache   = 1000
	DefaultMeaningWait   = 1500 * time.Millisecond
)

func (m Meaning) withDefaults() Meaning {
	m.Weight = cmp.Or(m.Weight, DefaultMeaningWeight)
	m.Nearest = cmp.Or(m.Nearest, DefaultNearest)
	m.RerankCount = cmp.Or(m.RerankCount, DefaultRerankCount)
	m.RerankChars = cmp.Or(m.RerankChars, DefaultRerankChars)
	m.RerankWait = cmp.Or(m.RerankWait, DefaultRerankWait)
	m.RerankWeight = cmp.Or(m.RerankWeight, DefaultRerankWeight)
	m.ExpandWait = cmp.Or(m.ExpandWait, DefaultExpandWait)
	m.ExpandCache = cmp.Or(m.ExpandCache, DefaultExpandCache)
	m.Wait = cmp.Or(m.Wait, DefaultMeaningWait)
	return m
}

// leg is what an Index has of Meaning; nil if it is switched off.
type leg struct {
	o      Meaning
	engine *semantic.Engine // nil: no vectors
	rerank *semantic.Breaker
	expand *semantic.Breaker
	others *lru.Cache[string, []string] // what the Expander said of queries
}

func (x *Index) openMeaning() error {
	if x.opts.Meaning == nil {
		return nil
	}
	l := &leg{o: x.opts.Meaning.withDefaults()}
	l.rerank = semantic.NewBreaker(semantic.DefaultBreakAfter, semantic.DefaultBreakFor, x.opts.Now)
	l.expand = semantic.NewBreaker(semantic.DefaultBreakAfter, semantic.DefaultBreakFor, x.opts.Now)
	var err error
	if l.others, err = lru.New[string, []string](l.o.ExpandCache); err != nil {
		return fmt.Errorf("expand cache: %w", err)
	}
	if v := l.o.Vectors; v != nil && v.Embedder != nil {
		o := *v
		o.Logger, o.Now = x.opts.Logger, x.opts.Now
		if l.engine, err = semantic.Open(context.Background(), chunkSource{x}, o); err != nil {
			return err
		}
	}
	x.leg = l
	return nil
}

func (x *Index) closeMeaning() error {
	if x.leg == nil {
		return nil
	}
	err := x.leg.engine.Close()
	if f := x.leg.o.Close; f != nil {
		f()
	}
	return err
}

// meaningChanged has what changed in a collection embedded in the background.
func (x *Index) meaningChanged(id space.SpaceID) {
	if x.leg != nil {
		x.leg.engine.Changed(string(id))
	}
}

// meaningDropped forgets a collection's vectors.
func (x *Index) meaningDropped(ctx context.Context, id space.SpaceID) error {
	if x.leg == nil {
		return nil
	}
	return x.leg.engine.Drop(ctx, string(id))
}

// ForgetMeaning removes a collection's vectors, so that nothing is left of what
// was purged from it; what is still there is embedded again.
func (x *Index) ForgetMeaning(ctx context.Context, id space.SpaceID) error {
	err := x.meaningDropped(ctx, id)
	x.meaningChanged(id)
	return err
}

// MeaningStatus reports how far the vectors of a collection are; ok is false if
// none are made.
func (x *Index) MeaningStatus(id space.SpaceID) (_ semantic.Status, ok bool) {
	if x.leg == nil || x.leg.engine == nil {
		return semantic.Status{}, false
	}
	return x.leg.engine.Status(string(id)), true
}

// WaitMeaning returns when the vectors of a collection are those of what its
// index has, or when ctx ends; at once where none are made. It also returns the
// error of a run that fails meanwhile.
func (x *Index) WaitMeaning(ctx context.Context, id space.SpaceID) error {
	if x.leg == nil || x.leg.engine == nil {
		return nil
	}
	st, err := x.Status(ctx, id)
	if err != nil || st.Commit == "" {
		return err
	}
	return x.leg.engine.Wait(ctx, string(id), string(st.Commit))
}

// meaning is the leg during one search; nil if it is switched off.
type meaning struct {
	leg     *leg
	text    string // of the query, without qualifiers
	views   map[*session]*semantic.View
	answers map[semantic.Identity]*semantic.Answer
	left    time.Duration // that the search may still wait for models
	now     func() time.Time
}

// startMeaning begins to embed the query, while its words are looked for. end
// must be called.
func (x *Index) startMeaning(q *query.Parsed, sessions []*session, r *Results) *meaning {
	l := x.leg
	text := strings.Join(slices.Concat(q.Words, q.Phrases), " ")
	if l == nil || text == "" || q.Sort != query.ByRelevance {
		return nil
	}
	m := &meaning{leg: l, text: text, left: l.o.Wait, now: x.opts.Now}
	if l.engine == nil {
		return m
	}
	m.views, m.answers = map[*session]*semantic.View{}, map[semantic.Identity]*semantic.Answer{}
	for _, s := range sessions {
		v := l.engine.View(string(s.col.ID))
		if v == nil {
			if st := l.engine.Status(string(s.col.ID)); s.state.docs > 0 {
				r.Notes = append(r.Notes, unembedded(s.col.Label, st))
			}
			continue
		}
		m.views[s] = v
		if id := v.Identity(); m.answers[id] == nil {
			m.answers[id] = l.engine.Ask(id, text)
		}
	}
	return m
}

func unembedded(label string, st semantic.Status) string {
	why := ""
	switch {
	case st.Err != nil:
		why = " (the embedding model fails)"
	case st.Running && st.Total > 0:
		why = fmt.Sprintf(" (%d of about %d passages are)", st.Done, st.Total)
	}
	return fmt.Sprintf("%s is not embedded yet%s, so it was searched by its words alone.", label, why)
}

// End releases what the search used.
func (m *meaning) end() {
	if m != nil {
		for _, v := range m.views {
			v.Release()
		}
	}
}

// maxFused is how many of the documents that words found are scored by their
// meaning too; those after them rank below.
const maxFused = 500

// fuse orders documents by their words and their meaning together, and adds
// those that only mean what was asked. docs is best first, and so is what is
// returned. Where the model does not answer, docs stay as they are, and a note
// says so.
func (x *Index) fuse(ctx context.Context, m *meaning, p *plan, q *query.Parsed, docs []*found, r *Results) ([]*found, error) {
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
	c := &cosines{of: map[*found]float64{}}
	for s, view := range m.views {
		v := vectors[view.Identity()]
		if v == nil {
			continue
		}
		err := x.near(ctx, m, s, v, p, q, docs, c)
		if errors.Is(err, semantic.ErrDimensions) { // another model behind the name
			x.meaningChanged(s.col.ID)
			failed = err
		} else if err != nil {
			return nil, x.failed(ctx, s, err)
		}
	}
	if failed != nil {
		x.logFailed(ctx, "a query's meaning was left out", fmt.Errorf("embedding model: %w", failed))
		r.Notes = append(r.Notes, degraded("embedding", failed))
	}
	if len(c.of) == 0 {
		return docs, nil
	}
	r.Total += len(c.added)
	return c.order(docs, m.leg.o.Weight), nil
}

// cosines are what the vectors say of the documents of one search.
type cosines struct {
	of    map[*found]float64
	added []*found // that no word found
}

// near notes the documents of one collection that are near to the query, and how
// near those are that words found.
func (x *Index) near(ctx context.Context, m *meaning, s *session, v *semantic.Vector, p *plan, q *query.Parsed, docs []*found, c *cosines) error {
	view := m.views[s]
	var near []semantic.Near
	if len(p.phrases) == 0 && len(p.without) == 0 { // only words can tell what must, or must not, occur
		allowed, any, err := filtered(ctx, s, q.Filters)
		if err != nil {
			return err
		}
		if any {
			if near, err = view.Nearest(v, allowed, m.leg.o.Nearest); err != nil {
				return err
			}
		}
	}
	known := map[int64]*found{}
	for _, f := range docs[:min(len(docs), maxFused)] {
		if f.session != s {
			continue
		}
		known[f.id] = f
		if n, ok := view.Cosine(v, f.id); ok {
			near = append(near, n)
		}
	}
	for _, f := range docs[min(len(docs), maxFused):] {
		if f.session == s {
			known[f.id] = nil // not judged, and not added either
		}
	}
	current, err := docKeys(ctx, s, near)
	if err != nil {
		return err
	}
	for _, n := range near {
		if k, ok := current[n.Doc]; !ok || k != n.Key {
			continue // it was embedded as another document than it is now
		}
		f, ok := known[n.Doc]
		if !ok {
			f = &found{session: s, id: n.Doc, chunks: []scored{{id: n.Chunk}}}
			if q.Explain {
				f.why = &Explanation{}
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

// order fuses both scores. The result is scaled to the best score that words
// gave, so that a share of the best score means what it did.
func (c *cosines) order(docs []*found, weight float64) []*found {
	judged := min(len(docs), maxFused)
	all := slices.Concat(docs[:judged], c.added)
	words, meaning := make([]float64, len(all)), make([]float64, len(all))
	for i, f := range all {
		words[i], meaning[i] = f.score, math.NaN()
		if cos, ok := c.of[f]; ok {
			meaning[i] = cos
		}
	}
	top := 1.0
	if len(docs) > 0 && docs[0].score > 0 {
		top = docs[0].score
	}
	last := math.Inf(1)
	for i, s := range fuseScores(words, meaning, weight) {
		all[i].rescore("the meaning of the page", s*top)
		last = min(last, all[i].score)
	}
	for _, f := range docs[judged:] { // in their order, below the others
		f.rescore("below the pages whose meaning was compared", min(last, (1-weight)*f.score))
	}
	slices.SortStableFunc(all, func(a, b *found) int { return cmp.Compare(b.score, a.score) })
	return append(all, docs[judged:]...)
}

// filtered returns the documents that the filters let through, ascending; nil
// for all of them. any is false if there are none.
func filtered(ctx context.Context, s *session, f query.Filters) (docs []int64, any bool, err error) {
	cond, args, err := where(ctx, s.tx, f, s.col.Mount)
	if err != nil || cond == "" {
		return nil, err == nil, err
	}
	rows, err := s.tx.QueryContext(ctx, `SELECT id FROM docs WHERE `+cond+` ORDER BY id`, args...)
	if err != nil {
		return nil, false, err
	}
	defer rows.Close()
	for rows.Next() {
		var id int64
		if err := rows.Scan(&id); err != nil {
			return nil, false, err
		}
		docs = append(docs, id)
	}
	return docs, len(docs) > 0, rows.Err()
}

// docKeys returns what the documents are now.
func docKeys(ctx context.Context, s *session, near []semantic.Near) (map[int64]uint64, error) {
	ids := make([]int64, len(near))
	for i, n := range near {
		ids[i] = n.Doc
	}
	list, err := json.Marshal(ids)
	if err != nil {
		return nil, err
	}
	rows, err := s.tx.QueryContext(ctx, `SELECT id, path, blob FROM docs WHERE id IN (SELECT value FROM json_each(?))`, string(list))
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	current := make(map[int64]uint64, len(near))
	for rows.Next() {
		var id int64
		var p space.Path
		var blob space.BlobID
		if err := rows.Scan(&id, &p, &blob); err != nil {
			return nil, err
		}
		current[id] = docKey(p, blob)
	}
	return current, rows.Err()
}

// degraded says, in an answer, that a model did not take part.
func degraded(model string, err error) string {
	why := "failed"
	switch {
	case errors.Is(err, semantic.ErrSlow), errors.Is(err, context.DeadlineExceeded):
		why = "did not answer in time"
	case errors.Is(err, semantic.ErrResting):
		why = "failed lately and is left alone for a moment"
	case errors.Is(err, errSpent):
		why = "was not asked, since others took the time that a search has for models"
	case errors.Is(err, semantic.ErrBusy):
		why = "is busy"
	case errors.Is(err, semantic.ErrDimensions):
		why = "is another one now, and the pages are being embedded anew"
	}
	return fmt.Sprintf("The %s model %s, so this answer goes without it.", model, why)
}
