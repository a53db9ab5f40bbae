package index

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"satchel/internal/fault"
	"satchel/internal/space"
	"satchel/tools/index/parse"
	"satchel/tools/index/postings"
	"satchel/tools/index/present"
	"satchel/tools/index/query"
	"satchel/tools/index/rank"
)

// maxTime is how long a search may take before it is cancelled. Only filters that are built to be
// slow take almost this long.
const maxTime = 10 * time.Second

// Search answers a query over several collections as if they were one. It returns an error
// only if ctx ends, the search takes too long (fault.TooLarge), or a database cannot be read.
// Results.Notes describe problems of the query or of an index.
func (x *Index) Search(ctx context.Context, cols []Collection, q Query) (r Results, err error) {
	limited, cancel := context.WithTimeout(ctx, x.opts.maxTime)
	defer cancel()
	err = x.withRepair(limited, func(broken map[space.SpaceID]bool) (err error) {
		r, err = x.search(limited, cols, q, broken)
		return err
	})
	if err != nil && limited.Err() != nil && ctx.Err() == nil {
		err = fault.Wrap(err, fault.TooLarge, "The search was stopped after %v. Use fewer filters, or simpler ones.", x.opts.maxTime)
	}
	if err != nil {
		return Results{}, err
	}
	return r, nil
}

// Ranked is a document of a complete ranking.
type Ranked struct {
	Collection space.SpaceID
	Path       string // like Hit.Path
	Score      float64
}

// Rank returns what a query finds, for evaluations: at most depth documents (0: 1,000), in
// the order in which Search ranks them by relevance. It drops no documents that score far
// below the best, does not merge translations, versions or copies, and calls no reranker.
func (x *Index) Rank(ctx context.Context, cols []Collection, q Query, depth int) (ranked []Ranked, err error) {
	if depth <= 0 {
		depth = 1000
	}
	err = x.withRepair(ctx, func(broken map[space.SpaceID]bool) error {
		var r Results
		run, end, err := x.start(ctx, cols, q, depth, broken, &r)
		defer end()
		if err != nil {
			return err
		}
		docs, err := run.Rank(ctx)
		ranked = nil
		for _, f := range docs {
			ranked = append(ranked, Ranked{Collection: f.Source.ID, Path: f.Source.Shown(f.Header.Path), Score: f.Score})
		}
		return err
	})
	return ranked, err
}

// withRepair calls search. If search finds a damaged database, withRepair requests a
// rebuild and calls search again without that collection.
func (x *Index) withRepair(ctx context.Context, search func(broken map[space.SpaceID]bool) error) error {
	broken := map[space.SpaceID]bool{}
	for {
		err := search(broken)
		if err == nil || ctx.Err() != nil {
			return err
		}
		var in *rank.SourceError
		if !errors.As(err, &in) || !postings.Damaged(in.Err) || broken[in.ID] {
			return err
		}
		x.reportDamage(ctx, in)
		broken[in.ID] = true
	}
}

// reportDamage marks a database as damaged and requests an update, which rebuilds it.
func (x *Index) reportDamage(ctx context.Context, in *rank.SourceError) {
	e, err := x.entry(in.ID)
	if err != nil {
		return
	}
	e.mu.Lock()
	first := !e.damaged
	e.damaged = true
	e.mu.Unlock()
	e.fell(x.opts.Now())
	if first {
		x.opts.Logger.WarnContext(ctx, "index is damaged and will be rebuilt", "collection", in.ID, "error", in.Err)
		e.refresh()
	}
}

// start opens the databases of a query and plans the search. depth is the maximum number of
// documents for Rank, or 0 for Search. end must be called even if there is an error.
func (x *Index) start(ctx context.Context, cols []Collection, q Query, depth int, broken map[space.SpaceID]bool, r *Results) (run *rank.Run, end func(), err error) {
	parsed := x.parse(q)
	for _, globs := range []*[]string{&parsed.Filters.Path.Is, &parsed.Filters.Path.Not} {
		if *globs = distinct(*globs); len(*globs) > postings.MaxGlobs {
			*globs = (*globs)[:postings.MaxGlobs]
			parsed.Notef("Only the first %d path filters were used.", postings.MaxGlobs)
		}
	}
	if depth > 0 {
		parsed.Sort = query.ByRelevance
	}
	var sources []*rank.Source
	end = func() {
		if run != nil {
			run.End()
		}
		for _, s := range sources {
			s.End()
		}
	}
	chosen := chooseCollections(cols, parsed.Filters.Source)
	for _, c := range chosen {
		if broken[c.ID] {
			r.Notes = append(r.Notes, fmt.Sprintf("The index of %s is damaged and is being rebuilt, so nothing in it was searched. Search again in a moment.", c.Label))
			e, err := x.entry(c.ID)
			if err != nil {
				return nil, end, err
			}
			r.IndexAge = max(r.IndexAge, leastAge+e.fell(x.opts.Now()))
			continue
		}
		s, err := x.begin(ctx, c, r)
		if err != nil {
			return nil, end, err
		}
		if s != nil {
			sources = append(sources, s)
		}
	}
	// Notes about the whole answer come before notes about a part of the query.
	notes := slices.Concat(lagNotes(r.Indexes), r.Notes, parsed.Notes, unknownSources(cols, parsed.Filters.Source))
	r.Scope = scope(chosen, parsed.Filters, r.Indexes)
	limit := q.limitWith(parsed.Limit)
	if limit > rank.MaxResults {
		limit = rank.MaxResults
		notes = append(notes, fmt.Sprintf("limit was lowered to %d, the most that is allowed.", limit))
	}
	run, err = x.ranker.Start(ctx, rank.Request{Sources: sources, Query: &parsed, Limit: limit, Depth: depth, Behind: r.IndexAge > 0, Notes: notes})
	return run, end, err
}

func (x *Index) search(ctx context.Context, cols []Collection, q Query, broken map[space.SpaceID]bool) (r Results, err error) {
	run, end, err := x.start(ctx, cols, q, 0, broken, &r)
	defer end()
	if err != nil {
		return r, err
	}
	docs, err := run.Rank(ctx)
	if err != nil {
		return r, err
	}
	r.Total = run.Total
	for _, f := range docs {
		r.Total -= f.AlsoCount // the hit represents these documents and lists their paths
	}
	docs = docs[:min(len(docs), run.Limit())]
	if q.Explain {
		if err := run.ExplainTerms(ctx, docs); err != nil {
			return r, err
		}
	}
	if q.Outline {
		r.Weak = run.WeakAnswer(docs)
		r.Hits, r.Tokens, err = present.Outline(ctx, run, docs, cmp.Or(q.MaxTokens, present.DefaultMaxTokens), r.Weak)
	} else {
		r.Hits, r.Tokens, err = present.Hits(ctx, run, docs, q.MaxTokens, r.Scope)
	}
	if err != nil {
		return r, err
	}
	r.Notes, r.ScoreNotes = run.Notes, run.ScoreNotes
	if len(r.Hits) < len(docs) && !r.Weak {
		r.Notes = append(r.Notes, present.CutNote(len(r.Hits)))
	}
	r.Total = max(r.Total, len(r.Hits))
	r.Truncated = r.Total > len(r.Hits)
	docCount, behind := int64(0), r.IndexAge > 0
	for _, s := range r.Indexes {
		docCount += s.Docs
	}
	if missing := run.Missing(); docCount > 0 && len(missing) > 0 && !behind {
		r.Notes = append(r.Notes, respelledNote(missing, run.Respelled))
		r.Suggestions = run.RespelledWords()
	}
	if len(r.Hits) > 0 || behind {
		return r, nil // if the index is behind, a page that it lacks may match
	}
	unmet := ""
	if docCount > 0 {
		if unmet, err = unmetNote(ctx, run.Sources(), run.Filters); err != nil {
			return r, err
		}
		if unmet != "" {
			r.Notes = append(r.Notes, unmet)
		}
	}
	if why := whyEmpty(run, docCount, unmet == "", &r); why != "" {
		r.Notes = append(r.Notes, why)
	}
	if len(run.Terms()) > 0 && len(r.Suggestions) == 0 {
		r.Suggestions, err = run.Suggest(ctx)
	}
	return r, err
}

// distinct returns the values without repetitions, in order.
func distinct(values []string) []string {
	var d []string
	for _, v := range values {
		if !slices.Contains(d, v) {
			d = append(d, v)
		}
	}
	return d
}

// maxQueryBytes limits how much of a query is read.
const maxQueryBytes = 2000

// parse parses the text of q, and adds the filters that are in other fields of q.
func (x *Index) parse(q Query) query.Parsed {
	parsed := query.Parse(q.Text, x.opts.Now(), maxQueryBytes)
	if q.Source != "" {
		parsed.Filters.Source.Is = append(parsed.Filters.Source.Is, strings.Split(strings.ToLower(q.Source), ",")...)
	}
	parsed.Explain = q.Explain
	if q.Since.After(parsed.Filters.Since) {
		parsed.Filters.Since = q.Since
	}
	return parsed
}

// chooseCollections returns the collections that the source filter c selects.
func chooseCollections(cols []Collection, c query.Condition) []Collection {
	var chosen []Collection
	for _, col := range cols {
		label := strings.ToLower(col.Label)
		if (len(c.Is) == 0 || slices.Contains(c.Is, label)) && !slices.Contains(c.Not, label) {
			chosen = append(chosen, col)
		}
	}
	return chosen
}

// unknownSources returns notes about the sources in a filter that do not exist.
func unknownSources(cols []Collection, c query.Condition) (notes []string) {
	for _, want := range c.Is {
		if !slices.ContainsFunc(cols, func(col Collection) bool { return strings.EqualFold(col.Label, want) }) {
			var labels []string
			for _, col := range cols[:min(len(cols), 30)] {
				labels = append(labels, col.Label)
			}
			notes = append(notes, fmt.Sprintf("There is no source %q here. The sources are: %s.", parse.Clip(want, 60), strings.Join(labels, ", ")))
		}
	}
	return notes
}

// begin opens a collection for a search. It returns nil if the collection is not indexed
// yet.
func (x *Index) begin(ctx context.Context, c Collection, r *Results) (*rank.Source, error) {
	e, err := x.entry(c.ID)
	if err != nil {
		return nil, err
	}
	d, err := x.open(ctx, e)
	if err != nil {
		return nil, err
	}
	if d == nil {
		st := IndexState{Collection: c}
		if st.Behind, st.Pages, err = x.lag(ctx, e, "", false); err != nil {
			return nil, err
		}
		if err := e.failure(); fault.CodeOf(err) == fault.Damaged {
			r.Notes = append(r.Notes, fault.PublicOf(err))
		}
		r.Indexes = append(r.Indexes, st)
		r.IndexAge = max(r.IndexAge, st.Behind)
		return nil, nil
	}
	s := &rank.Source{ID: c.ID, Label: c.Label, Mount: c.Mount, Names: c.Names, Version: c.Version, Web: c.Web}
	if s.Snapshot, err = d.Snapshot(ctx); err != nil {
		return nil, s.Failed(err)
	}
	if err := x.describe(ctx, e, s, c, r); err != nil {
		s.End()
		return nil, err
	}
	return s, nil
}

// describe adds the state and the notes of a collection to the answer.
func (x *Index) describe(ctx context.Context, e *entry, s *rank.Source, c Collection, r *Results) (err error) {
	st := IndexState{Collection: c, Commit: s.State.Commit, Docs: s.State.Docs}
	// Look up the head after opening the database. Otherwise the head could be older than
	// the database.
	if st.Behind, st.Pages, err = x.lag(ctx, e, st.Commit, true); err != nil {
		return err
	}
	if len(r.Indexes) == 0 {
		r.IndexCommit = st.Commit
	}
	r.Indexes = append(r.Indexes, st)
	r.IndexAge = max(r.IndexAge, st.Behind)
	if err := e.failure(); err != nil {
		note := fmt.Sprintf("The index of %s could not be brought up to date; the answer is from commit %s.", c.Label, st.Commit.Short())
		if fault.CodeOf(err) == fault.Damaged {
			note += " " + fault.PublicOf(err)
		}
		r.Notes = append(r.Notes, note)
	}
	if s.State.Unread > 0 {
		note, err := unreadNote(ctx, s)
		if err != nil {
			return s.Failed(err)
		}
		r.Notes = append(r.Notes, note)
		e.refresh() // a file may have been repaired without a new commit
	}
	return nil
}
