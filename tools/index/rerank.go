package index

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"satchel/tools/index/query"
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
	err := m.ask(ctx, "reranking", m.leg.rerank, o.RerankWait, func(ctx context.Context) (err error) {
		if judged, err = o.Reranker.Rerank(ctx, m.text, texts); err == nil && len(judged) != len(texts) {
			err = errors.New("the reranker judged other texts")
		}
		return err
	})
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	if err != nil {
		x.logFailed(ctx, "results were not reranked", err)
		r.Notes = append(r.Notes, degraded("reranking", err))
		return docs, nil
	}
	// Within the range that the scores had, so that they stay above the rest.
	high, low := slices.Max(scores), slices.Min(scores)
	for i, s := range fuseScores(scores, judged, o.RerankWeight) {
		top[i].rescore("the reranking model", low+s*(high-low))
	}
	slices.SortStableFunc(top, func(a, b *found) int { return cmp.Compare(b.score, a.score) })
	return docs, nil
}

// errSpent means that the models asked before took all the time that a search
// has for them.
var errSpent = errors.New("others took the time that the search had for models")

// ask calls a model within its time and what is left of the search's, and not at
// all while its breaker rests. what names the model in the error.
func (m *meaning) ask(ctx context.Context, what string, b *semantic.Breaker, wait time.Duration, call func(context.Context) error) (err error) {
	whole := m.left >= wait
	if wait = min(wait, m.left); wait <= 0 {
		err = errSpent
	} else if !b.Allow(wait) {
		err = semantic.ErrResting
	} else {
		err = m.within(ctx, wait, func(inner context.Context) error {
			err := call(inner)
			switch {
			case err == nil:
				b.Succeeded()
			case ctx.Err() == nil && (whole || inner.Err() == nil): // less time than it may have is no fault of the model's
				b.Failed()
			}
			return err
		})
	}
	if err != nil {
		return fmt.Errorf("%s model: %w", what, err)
	}
	return nil
}

// within calls f with a context that ends after a time, and takes what f took off
// the time that the search has for models.
func (m *meaning) within(ctx context.Context, wait time.Duration, f func(context.Context) error) error {
	inner, cancel := context.WithTimeout(ctx, wait)
	defer cancel()
	began := m.now()
	err := f(inner)
	m.left -= max(0, m.now().Sub(began))
	return err
}

// logFailed logs why a model did not take part in a search. While one is left
// alone, that is no news.
func (x *Index) logFailed(ctx context.Context, what string, err error) {
	level := slog.LevelWarn
	if errors.Is(err, semantic.ErrResting) {
		level = slog.LevelDebug
	}
	x.opts.Logger.Log(ctx, level, what, "error", err)
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
// weight; none if there is no Expander or it does not answer, which a note
// tells.
func (x *Index) expand(ctx context.Context, m *meaning, q *query.Parsed, r *Results) ([]string, error) {
	if m == nil || m.leg.o.Expander == nil || len(q.Words) == 0 {
		return nil, nil
	}
	l := m.leg
	text := strings.Join(q.Words, " ")
	if words, ok := l.others.Get(text); ok {
		return words, nil
	}
	var words []string
	err := m.ask(ctx, "expansion", l.expand, l.o.ExpandWait, func(ctx context.Context) (err error) {
		words, err = l.o.Expander.Expand(ctx, text)
		return err
	})
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	if err != nil {
		x.logFailed(ctx, "a query was not expanded", err)
		r.Notes = append(r.Notes, degraded("expansion", err))
		return nil, nil
	}
	l.others.Add(text, words)
	return words, nil
}
