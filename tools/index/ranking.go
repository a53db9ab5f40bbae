package index

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"satchel/internal/space"
	"satchel/tools/index/parse"
	"satchel/tools/index/query"
)

const (
	// reranked is how many documents are looked at for what is not in the
	// postings: their titles, their paths and where the words stand.
	reranked = 60
	// relevantShare is how near to the best score a document must come to be
	// listed where the order is another one, unless it has all words of the best.
	relevantShare = 0.4
)

// inquiry is one search while it runs.
type inquiry struct {
	*query.Parsed
	*lexicon
	a     *parse.Analyzer
	m     *meaning
	stats statistics
	plan  *plan
	limit int
	// deep is how many documents an evaluation wants ranked, each of which then
	// stands for itself; 0 for an answer.
	deep   int
	scored *scorer // of the last pass
	// unplanned reports what namesMore does.
	unplanned bool
}

// prepare makes the plan.
func (u *inquiry) prepare(ctx context.Context, r *Results) error {
	states := make([]state, 0, len(u.sessions))
	for _, s := range u.sessions {
		states = append(states, s.state)
	}
	u.stats = sumStatistics(states)
	others, err := u.x.expand(ctx, u.m, u.Parsed, r)
	if err != nil {
		return err
	}
	return u.makePlan(ctx, others)
}

// rank returns the documents that match, best first.
func (u *inquiry) rank(ctx context.Context, r *Results) ([]*found, error) {
	all, err := u.match(ctx, r)
	if err != nil {
		return nil, err
	}
	x := u.x
	if all, err = x.fuse(ctx, u.m, u.plan, u.Parsed, all, r); err != nil {
		return nil, err
	}
	scored := len(u.plan.terms) > 0
	if u.deep == 0 {
		look := u.limit
		if u.Sort != query.ByRelevance {
			look = maxKin // the last of them may come first
		}
		if all, err = x.prefer(ctx, u.tongue, u.sessions, u.Parsed, all, look); err != nil {
			return nil, err
		}
	}
	if u.Sort != query.ByRelevance {
		if all, err = u.ordered(ctx, all, r); err != nil {
			return nil, err
		}
		return x.collapse(ctx, u.Parsed, all, u.limit)
	}
	if scored {
		if err := u.weighEvidence(ctx, all[:min(len(all), max(reranked, u.limit))]); err != nil {
			return nil, err
		}
		sortFound(all)
	}
	if u.deep > 0 {
		return all, nil
	}
	if scored {
		if all, err = x.rerank(ctx, u.m, all, r); err != nil {
			return nil, err
		}
	}
	if all, err = x.collapse(ctx, u.Parsed, all, u.limit); err != nil || !scored {
		return all, err
	}
	return x.cutWeak(all, u.limit, r), nil
}

// match returns the documents that match, best first by their words: a first
// pass and, where the query is a sentence, a second one with the words that the
// best of the first have in common.
func (u *inquiry) match(ctx context.Context, r *Results) ([]*found, error) {
	all, err := u.pass(ctx, u.plan.terms, false, r)
	if err != nil || !u.feeds() || len(all) < 2 {
		return all, err
	}
	more, err := u.feedback(ctx, all)
	if err != nil || len(more) == 0 {
		return all, err
	}
	var again Results // what matches has been counted
	if all, err = u.pass(ctx, append(slices.Clone(u.plan.terms), more...), true, &again); err != nil {
		return nil, err
	}
	r.Total = max(r.Total, len(all)) // some may have none of the query's own words
	return all, nil
}

// pass retrieves what any of the terms match from every database and groups it
// by document, best first. more reports that it is another pass, with terms after
// those of the one before.
func (u *inquiry) pass(ctx context.Context, terms []term, more bool, r *Results) ([]*found, error) {
	sc := newScorer(terms, u.stats)
	u.scored = sc
	cover := newCoverage(u.plan.terms, u.stats)
	var all []*found
	for _, s := range u.sessions {
		docs, err := u.candidates(ctx, s, terms, sc, cover, more, r)
		if err != nil {
			return nil, u.x.failed(ctx, s, err)
		}
		all = append(all, docs...)
	}
	sortFound(all)
	return all, nil
}

// sortFound puts the best first; equal ones are in the order in which the query
// names their collections, and of their paths, or, where those have not been read, of their ids, which
// depend on when a page was indexed.
func sortFound(all []*found) {
	slices.SortFunc(all, func(a, b *found) int {
		if a.score != b.score {
			return cmp.Compare(b.score, a.score)
		}
		return cmp.Or(cmp.Compare(a.session.order, b.session.order),
			strings.Compare(string(a.path), string(b.path)), cmp.Compare(a.id, b.id))
	})
}

// ordered puts the documents that are nearly as relevant as the best into
// another order. r is told where others that match are left out.
func (u *inquiry) ordered(ctx context.Context, all []*found, r *Results) ([]*found, error) {
	if len(u.plan.terms) > 0 {
		sortFound(all)
		matched := len(all)
		if matched > 0 {
			best := all[0]
			all = slices.DeleteFunc(all, func(f *found) bool {
				return f.score < best.score*relevantShare && f.terms&best.terms != best.terms
			})
		}
		if len(all) < matched {
			r.Notes = append(r.Notes, fmt.Sprintf("Only the pages with all words of the best one, or at least %.0f%% of its score, are put in order; the others that match are left out.", 100*relevantShare))
		}
	}
	if err := u.x.readKin(ctx, u.sessions, all); err != nil {
		return nil, err
	}
	switch u.Sort {
	case query.ByDate:
		slices.SortStableFunc(all, func(a, b *found) int { return cmp.Compare(b.kin.date, a.kin.date) })
	case query.ByPath:
		slices.SortStableFunc(all, func(a, b *found) int { return strings.Compare(a.kin.path, b.kin.path) })
	}
	return all, nil
}

// leastHits is how many documents an answer has, where as many match, however
// far they are below the best: one whose name the query is may tower above pages
// that are worth a look.
const leastHits = DefaultLimit

// cutWeak leaves out the documents after the first few, best first, that are far
// below the best. r is told where that leaves the answer with fewer than the
// Limit allows.
func (x *Index) cutWeak(all []*found, limit int, r *Results) []*found {
	for i, f := range all {
		if i >= leastHits && f.score < all[0].score*x.opts.MinScoreShare {
			if i < limit {
				r.Notes = append(r.Notes, fmt.Sprintf("Hits under %.0f%% of the best score are left out.", 100*x.opts.MinScoreShare))
			}
			return all[:i]
		}
	}
	return all
}

// Head is what a document is called.
type head struct {
	path  space.Path
	title string
}

// readHeads reads what documents are called.
func (u *inquiry) readHeads(ctx context.Context, docs []*found) (map[*found]head, error) {
	if err := u.x.readKin(ctx, u.sessions, docs); err != nil {
		return nil, err
	}
	heads := make(map[*found]head, len(docs))
	for _, f := range docs {
		heads[f] = head{space.Path(f.kin.path), f.kin.title}
	}
	return heads, nil
}

// Ranked is a document in a whole ranking.
type Ranked struct {
	Collection space.SpaceID
	Path       string // as Hit.Path
	Score      float64
}

// Rank returns what a query finds, best first, at most depth documents (0:
// 1,000), as Search orders it by relevance, for evaluations: nothing is cut off
// for being far below the best, and no document stands for its translations,
// versions or copies. It reads no passages and asks no reranker.
func (x *Index) Rank(ctx context.Context, cols []Collection, q Query, depth int) ([]Ranked, error) {
	if depth <= 0 {
		depth = 1000
	}
	broken := map[space.SpaceID]bool{}
	for {
		ranked, err := x.rankOnce(ctx, cols, q, depth, broken)
		var d *damageError
		if !errors.As(err, &d) || broken[d.id] {
			return ranked, err
		}
		broken[d.id] = true
	}
}

func (x *Index) rankOnce(ctx context.Context, cols []Collection, q Query, depth int, broken map[space.SpaceID]bool) (ranked []Ranked, err error) {
	var r Results
	u, end, err := x.inquire(ctx, cols, q, broken, &r)
	defer end()
	if err != nil {
		return nil, err
	}
	u.Sort, u.deep = query.ByRelevance, depth
	all, err := u.rank(ctx, &r)
	if err != nil {
		return nil, err
	}
	all = all[:min(len(all), depth)]
	heads, err := u.readHeads(ctx, all)
	if err != nil {
		return nil, err
	}
	for _, f := range all {
		ranked = append(ranked, Ranked{Collection: f.session.col.ID, Path: shownPath(f.session.col, heads[f].path), Score: f.score})
	}
	return ranked, nil
}

// shownPath is a path within a collection as a hit names it.
func shownPath(c Collection, p space.Path) string {
	if c.Mount == "" {
		return string(p)
	}
	return string(c.Mount) + "/" + string(p)
}
