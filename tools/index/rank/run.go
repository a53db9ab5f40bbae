package rank

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"satchel/tools/index/parse"
	"satchel/tools/index/postings"
	"satchel/tools/index/query"
)

const (
	// reranked is how many of the best documents are checked for evidence that is not in the
	// postings: titles, paths and positions of words. An answer with a higher limit checks more.
	reranked = 60
	// relevantShare is the share of the best score that a document needs to be listed in an
	// order other than by relevance, unless it has all words that the best document has.
	relevantShare = 0.4
)

// Run is one search.
type Run struct {
	*query.Parsed
	*lexicon
	// Notes are sentences for the caller, and Total is how many documents match.
	Notes []string
	Total int
	// ScoreNotes are the notes in Notes that are about scores.
	ScoreNotes []string

	opts     *Options
	analyzer *parse.Analyzer
	semantic *semanticRun // nil if the search uses no models
	stats    statistics
	norms    *norms
	plan     *plan
	limit    int
	depth    int     // see Request.Depth
	scored   *scorer // the scorer of the last pass
	// unplanned is the result of namesMore.
	unplanned bool
}

// Request is the input of a search.
type Request struct {
	Sources []*Source
	Query   *query.Parsed
	Limit   int // number of wanted hits
	// Depth is the number of documents in an evaluation's ranking, or 0 for an answer. An
	// evaluation keeps documents with a low score, variants and copies, and uses no reranking
	// model.
	Depth int
	// Behind means that the databases may lack pages, so a missing word may still be on a
	// page.
	Behind bool
	Notes  []string // the first notes of the answer
}

// Start plans a search. [Run.End] must be called even if there is an error.
func (r *Ranker) Start(ctx context.Context, q Request) (*Run, error) {
	u := &Run{
		Parsed: q.Query, Notes: q.Notes, opts: &r.opts, analyzer: r.Analyzer(), limit: q.Limit, depth: q.Depth,
		lexicon: &lexicon{ranker: r, sources: q.Sources, behind: q.Behind},
	}
	states := make([]postings.State, 0, len(q.Sources))
	held := map[string]int64{}
	for i, s := range q.Sources {
		s.order = i
		states = append(states, s.State)
		langs, err := s.Languages(ctx)
		if err != nil {
			return u, s.Failed(err)
		}
		for l, n := range langs {
			held[l] += n
		}
	}
	u.queryLanguage = queryLanguageOf(q.Query.Words, held)
	u.stats = sumStatistics(states)
	u.norms = newNorms(u.stats)
	u.startSemantic()
	others, err := u.expand(ctx)
	if err != nil {
		return u, err
	}
	return u, u.makePlan(ctx, others)
}

// End releases the search's resources. It does not close the databases.
func (u *Run) End() {
	u.semantic.end()
	u.ranker.analyzers.Put(u.analyzer)
}

// Analyzer returns the analyzer of the search.
func (u *Run) Analyzer() *parse.Analyzer { return u.analyzer }

// Terms returns the terms of the search.
func (u *Run) Terms() []Term { return u.plan.terms }

// Limit returns how many hits are wanted. Sources returns the searched databases.
func (u *Run) Limit() int         { return u.limit }
func (u *Run) Sources() []*Source { return u.sources }

// Missing returns the words of the query that no document has in any form.
func (u *Run) Missing() []string { return u.plan.missing }

// Weak reports whether a score is so far below the best that the document is left out by
// default.
func (u *Run) Weak(score, best float64) bool { return score < best*u.opts.MinScoreShare }

// strongCoverage is the share of the query above which a match is not weak.
const strongCoverage = 0.5

// WeakAnswer reports whether none of the documents contains much of the query. It returns false
// if this is not known: for a query without words or with phrases, if an index is behind, or if
// a model compares meanings.
func (u *Run) WeakAnswer(docs []*Candidate) bool {
	if len(docs) == 0 || len(u.plan.terms) == 0 || len(u.plan.phrases) > 0 || u.behind || u.semantic != nil {
		return false
	}
	return !slices.ContainsFunc(docs, func(c *Candidate) bool { return u.covered(c) > strongCoverage })
}

// covered returns the share of the query's words, by weight, that the best passage of a
// document has. A word that no page has weighs as much as the heaviest other word.
func (u *Run) covered(c *Candidate) float64 {
	weights, has := map[int]float64{}, map[int]bool{}
	for i, t := range u.plan.terms {
		if t.word < 0 || t.DF == 0 {
			continue
		}
		weights[t.word] = max(weights[t.word], t.residualIDF*idf(u.stats.chunks, t.DF))
		if i < 63 && c.terms&(1<<i) != 0 {
			has[t.word] = true
		}
	}
	total, covered, most := 0.0, 0.0, 0.0
	for word, w := range weights {
		total += w
		most = max(most, w)
		if has[word] {
			covered += w
		}
	}
	total += most * float64(max(0, len(u.plan.missing)-len(u.Respelled)))
	if total == 0 {
		return 1 // nothing of the query can be weighed
	}
	return covered / total
}

func (u *Run) note(format string, args ...any) {
	u.Notes = append(u.Notes, fmt.Sprintf(format, args...))
}

// noteScores adds a note about scores.
func (u *Run) noteScores(format string, args ...any) {
	u.note(format, args...)
	u.ScoreNotes = append(u.ScoreNotes, u.Notes[len(u.Notes)-1])
}

// Rank returns the documents that match, best first or in the order that the query wants.
func (u *Run) Rank(ctx context.Context) ([]*Candidate, error) {
	all, err := u.match(ctx)
	if err != nil {
		return nil, err
	}
	if all, err = u.fuse(ctx, all); err != nil {
		return nil, err
	}
	if u.depth == 0 {
		look := u.limit
		if u.Sort != query.ByRelevance {
			look = maxVariants // the last of these documents may come first in another order
		}
		if all, err = u.prefer(ctx, all, look); err != nil {
			return nil, err
		}
	}
	if u.Sort != query.ByRelevance {
		if all, err = u.ordered(ctx, all); err != nil {
			return nil, err
		}
		return u.collapse(ctx, all)
	}
	scored := len(u.plan.terms) > 0
	if scored {
		if err := u.weighEvidence(ctx, all[:min(len(all), max(reranked, u.limit))]); err != nil {
			return nil, err
		}
		u.preferNamed(all)
		sortCandidates(all)
	}
	if u.depth > 0 {
		all = all[:min(len(all), u.depth)]
		return all, u.readHeaders(ctx, all)
	}
	if scored {
		if err := u.rerank(ctx, all); err != nil {
			return nil, err
		}
	}
	if all, err = u.collapse(ctx, all); err != nil || !scored {
		return all, err
	}
	return u.cutWeak(all), nil
}

// match returns the documents that match, best first by their words. If the query is a
// sentence, a second pass adds the words that the best documents of the first pass have in
// common.
func (u *Run) match(ctx context.Context) ([]*Candidate, error) {
	all, err := u.pass(ctx, u.plan.terms, false)
	if err != nil || !u.feeds() || len(all) < 2 {
		return all, err
	}
	more, err := u.feedback(ctx, all)
	if err != nil || len(more) == 0 {
		return all, err
	}
	total, notes := u.Total, u.Notes
	if all, err = u.pass(ctx, append(slices.Clone(u.plan.terms), more...), true); err != nil {
		return nil, err
	}
	// The first pass counted the matches of the query's own words; feedback may add pages
	// that contain none of them.
	u.Total, u.Notes = max(total, len(all)), notes
	return all, nil
}

// pass retrieves the chunks that match any of the terms from every database and groups them
// by document, best first. more reports that terms begins with the terms of the previous
// pass.
func (u *Run) pass(ctx context.Context, terms []Term, more bool) ([]*Candidate, error) {
	sc := newScorer(terms, u.stats, u.norms)
	u.scored = sc
	cover := newCoverage(u.plan.terms, u.stats)
	var all []*Candidate
	for _, s := range u.sources {
		docs, err := u.candidates(ctx, s, terms, sc, cover, more)
		if err != nil {
			return nil, s.Failed(err)
		}
		all = append(all, docs...)
	}
	sortCandidates(all)
	return all, nil
}

// sortCandidates sorts the best first. Documents with equal scores are in the order of their
// databases in Request.Sources, and then by path. If the paths were not read, they are sorted
// by id, which depends on when a page was indexed.
func sortCandidates(all []*Candidate) {
	slices.SortFunc(all, func(a, b *Candidate) int {
		if a.Score != b.Score {
			return cmp.Compare(b.Score, a.Score)
		}
		return cmp.Or(cmp.Compare(a.Source.order, b.Source.order),
			strings.Compare(string(a.path), string(b.path)), cmp.Compare(a.ID, b.ID))
	})
}

// ordered returns the documents that are nearly as relevant as the best, by date or by path, as
// the query wants. It adds a note if other matches are left out.
func (u *Run) ordered(ctx context.Context, all []*Candidate) ([]*Candidate, error) {
	if len(u.plan.terms) > 0 {
		sortCandidates(all)
		matched := len(all)
		if matched > 0 {
			best := all[0]
			all = slices.DeleteFunc(all, func(f *Candidate) bool {
				return f.Score < best.Score*relevantShare && f.terms&best.terms != best.terms
			})
		}
		if len(all) < matched {
			u.noteScores("Only the pages with all words of the best one, or at least %.0f%% of its score, are sorted; the other matches are left out.", 100*relevantShare)
		}
	}
	if err := u.readHeaders(ctx, all); err != nil {
		return nil, err
	}
	switch u.Sort {
	case query.ByDate:
		slices.SortStableFunc(all, func(a, b *Candidate) int { return cmp.Compare(b.Header.Date, a.Header.Date) })
	case query.ByPath:
		slices.SortStableFunc(all, func(a, b *Candidate) int { return strings.Compare(a.Header.Path, b.Header.Path) })
	}
	return all, nil
}

// leastHits is how many matching documents an answer lists even if they are far below the
// best: a page named like the query may have a far higher score than other useful pages.
const leastHits = 10

// cutWeak removes documents that are far below the best, but keeps the first leastHits. It
// adds a note if that leaves fewer than the limit.
func (u *Run) cutWeak(all []*Candidate) []*Candidate {
	for i, f := range all {
		if i >= leastHits && u.Weak(f.Score, all[0].Score) {
			if i < u.limit {
				u.noteScores("Hits under %.0f%% of the best score are left out.", 100*u.opts.MinScoreShare)
			}
			return all[:i]
		}
	}
	return all
}
