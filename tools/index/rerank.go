package index

import (
	"cmp"
	"container/list"
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"time"
	"unicode/utf8"

	"satchel/tools/index/semantic"
)

// rerank has a model judge the best documents, and orders them by the weighted
// mean of its judgment and their score. docs is best first, and so is what is
// returned; where the model does not answer, it stays as it is, and a note says
// so.
func (x *Index) rerank(ctx context.Context, m *meaning, docs []*found, r *Results) ([]*found, error) {
	if m == nil || m.leg.o.Reranker == nil || len(docs) < 2 {
		return docs, nil
	}
	o := &m.leg.o
	top := docs[:min(len(docs), o.RerankCount)]
	texts := make([]string, len(top))
	scores := make([]float64, len(top))
	for i, f := range top {
		if err := f.load(ctx); err != nil {
			return nil, x.failed(ctx, f.session, err)
		}
		text := f.doc.title
		if f.best.crumbs != "" {
			text += "\n" + strings.ReplaceAll(f.best.crumbs, "\n", " > ")
		}
		texts[i] = firstChars(strings.ToValidUTF8(text+"\n"+f.best.text, "\ufffd"), o.RerankChars)
		scores[i] = f.score
	}
	var judged []float64
	err := guarded(ctx, m.leg.rerank, o.RerankWait, func(ctx context.Context) (err error) {
		if judged, err = o.Reranker.Rerank(ctx, m.text, texts); err == nil && len(judged) != len(texts) {
			err = errors.New("the reranker judged other texts")
		}
		return err
	})
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	if err != nil {
		x.opts.Logger.WarnContext(ctx, "results were not reranked", "error", err)
		r.Notes = append(r.Notes, degraded("reranking", err))
		return docs, nil
	}
	// Within the range that the scores had, so that they stay above the rest.
	high, low := slices.Max(scores), slices.Min(scores)
	for i, s := range fuseScores(scores, judged, o.RerankWeight) {
		top[i].score = low + s*(high-low)
	}
	slices.SortStableFunc(top, func(a, b *found) int { return cmp.Compare(b.score, a.score) })
	return docs, nil
}

// guarded calls a model within a time, and not at all while its breaker rests.
func guarded(ctx context.Context, b *semantic.Breaker, wait time.Duration, call func(context.Context) error) error {
	if !b.Allow(wait) {
		return semantic.ErrResting
	}
	inner, cancel := context.WithTimeout(ctx, wait)
	defer cancel()
	err := call(inner)
	switch {
	case err == nil:
		b.Succeeded()
	case ctx.Err() == nil:
		b.Failed()
	}
	return err
}

func firstChars(s string, n int) string {
	if utf8.RuneCountInString(s) <= n {
		return s
	}
	for i := range s {
		if n == 0 {
			return s[:i]
		}
		n--
	}
	return s
}

// expand returns other words for the query, to be looked for with a small
// weight; none where there is no Expander or it does not answer, which a note
// tells.
func (x *Index) expand(ctx context.Context, q *parsedQuery, r *Results) ([]string, error) {
	l := x.leg
	if l == nil || l.o.Expander == nil || q.sort != byRelevance || len(q.words) == 0 {
		return nil, nil
	}
	text := strings.Join(q.words, " ")
	if words, ok := l.others.get(text); ok {
		return words, nil
	}
	var words []string
	err := guarded(ctx, l.expand, l.o.ExpandWait, func(ctx context.Context) (err error) {
		words, err = l.o.Expander.Expand(ctx, text)
		return err
	})
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	if err != nil {
		x.opts.Logger.WarnContext(ctx, "a query was not expanded", "error", err)
		r.Notes = append(r.Notes, degraded("expansion", err))
		return nil, nil
	}
	l.others.put(text, words)
	return words, nil
}

// otherWords remembers what an Expander said, the newest of it.
type otherWords struct {
	most int

	mu    sync.Mutex
	known map[string]*list.Element
	order list.List // of otherWord, the newest first
}

type otherWord struct {
	query string
	words []string
}

func (o *otherWords) get(query string) ([]string, bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	e := o.known[query]
	if e == nil {
		return nil, false
	}
	o.order.MoveToFront(e)
	return e.Value.(otherWord).words, true
}

func (o *otherWords) put(query string, words []string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.known[query] != nil {
		return
	}
	if o.known == nil {
		o.known = map[string]*list.Element{}
	}
	o.known[query] = o.order.PushFront(otherWord{query, words})
	for o.order.Len() > o.most {
		last := o.order.Back()
		delete(o.known, last.Value.(otherWord).query)
		o.order.Remove(last)
	}
}
