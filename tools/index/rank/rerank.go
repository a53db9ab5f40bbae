package rank

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

	"satchel/tools/index/semantic"
)

// rerank lets a model judge the best documents, and orders them by the weighted mean of
// that judgment and their score. If the model does not answer, rerank keeps the order and
// adds a note.
func (u *Run) rerank(ctx context.Context, docs []*Candidate) error {
	m := u.semantic
	if m == nil || m.models.Reranker == nil || len(docs) < 2 {
		return nil
	}
	o := m.models
	top := docs[:min(len(docs), o.RerankCount)]
	texts := make([]string, len(top))
	scores := make([]float64, len(top))
	for i, f := range top {
		if err := f.Load(ctx); err != nil {
			return f.Source.Failed(err)
		}
		text := f.Doc.Title
		if f.Crumbs != "" {
			text += "\n" + strings.ReplaceAll(f.Crumbs, "\n", " > ")
		}
		texts[i] = firstChars(strings.ToValidUTF8(text+"\n"+f.Text, "\ufffd"), o.RerankChars)
		scores[i] = f.Score
	}
	var judged []float64
	err := m.ask(ctx, "reranking", o.rerankBreaker, o.RerankWait, func(ctx context.Context) (err error) {
		if judged, err = o.Reranker.Rerank(ctx, m.text, texts); err == nil && len(judged) != len(texts) {
			err = errors.New("the number of scores differs from the number of texts")
		}
		return err
	})
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if err != nil {
		u.logFailed(ctx, "results were not reranked", err)
		u.note("%s", degraded("reranking", err))
		return nil
	}
	// Keep the range of the scores, so that these documents stay above those not judged.
	high, low := slices.Max(scores), slices.Min(scores)
	for i, s := range fuseScores(scores, judged, o.RerankWeight) {
		top[i].rescore("The reranking model compared the page with the search.", low+s*(high-low))
	}
	slices.SortStableFunc(top, func(a, b *Candidate) int { return cmp.Compare(b.Score, a.Score) })
	return nil
}

// errSpent means that earlier models used up the search's time for models.
var errSpent = errors.New("other models used up the search's time for models")

// ask calls a model within its own time limit and the search's remaining time, unless its
// breaker is open. what names the model in the error.
func (m *semanticRun) ask(ctx context.Context, what string, b *semantic.Breaker, wait time.Duration, call func(context.Context) error) (err error) {
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
			// A timeout before the full wait is no failure.
			case ctx.Err() == nil && (whole || inner.Err() == nil):
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

// within calls f with a context that ends after a time, and subtracts f's duration from the
// search's time for models.
func (m *semanticRun) within(ctx context.Context, wait time.Duration, f func(context.Context) error) error {
	inner, cancel := context.WithTimeout(ctx, wait)
	defer cancel()
	began := m.now()
	err := f(inner)
	m.left -= max(0, m.now().Sub(began))
	return err
}

// logFailed logs why a model did not take part in a search. While the model's breaker is open,
// it logs only at the debug level.
func (u *Run) logFailed(ctx context.Context, what string, err error) {
	level := slog.LevelWarn
	if errors.Is(err, semantic.ErrResting) {
		level = slog.LevelDebug
	}
	u.opts.Logger.Log(ctx, level, what, "error", err)
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

// expand returns other words for the query, which get a small weight. Without an Expander
// it returns none. If the Expander does not answer, expand adds a note.
func (u *Run) expand(ctx context.Context) ([]string, error) {
	m := u.semantic
	if m == nil || m.models.Expander == nil || len(u.Words) == 0 {
		return nil, nil
	}
	o := m.models
	text := strings.Join(u.Words, " ")
	if words, ok := o.expanded.Get(text); ok {
		return words, nil
	}
	var words []string
	err := m.ask(ctx, "expansion", o.expandBreaker, o.ExpandWait, func(ctx context.Context) (err error) {
		words, err = o.Expander.Expand(ctx, text)
		return err
	})
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	if err != nil {
		u.logFailed(ctx, "a query was not expanded", err)
		u.note("%s", degraded("expansion", err))
		return nil, nil
	}
	o.expanded.Add(text, words)
	return words, nil
}
