package index

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"
	"strings"

	"satchel/internal/fault"
	"satchel/internal/space"
	"satchel/tools/index/parse"
	"satchel/tools/index/query"
)

// session is one database during one search: a read transaction, so that all
// of an answer speaks of one commit.
type session struct {
	col   Collection
	order int // among those of the query
	entry *entry
	db    *database
	tx    *sql.Tx
	state state
	view  *view
	terms map[string]*termEntry // that were looked up
	// unread reports that phrases were not looked for in all passages that hold
	// their words.
	unread bool

	stmts map[*sql.Stmt]*sql.Stmt // see bound
	words map[int64]parse.Tokens  // of chunks that were read in advance
	read  map[int64]*loaded       // passages that were read

	memory *scratch
	scored int // how many terms memory has the scores of
}

// found is a document that matches, while it is ranked.
type found struct {
	session *session
	id      int64
	score   float64
	chunks  []scored     // best first
	terms   uint64       // which of the query's are in the best; see candidate
	path    space.Path   // once it was looked at, for the order of equal ones
	kin     *kin         // where it was read
	why     *Explanation // nil unless the query asks for it
	*loaded              // nil until load

	// also are the shown paths of documents that this one stands for, at most
	// maxAlso of all alsoCount.
	also      []string
	alsoCount int
}

// loaded is what is shown of a document.
type loaded struct {
	doc  docRow
	best passage // of chunks[0]
}

type scored struct {
	id    int64
	score float64
	heads heads
}

// Search answers a query over several collections as over one. It returns an
// error only where ctx ends or the machine fails: what a query or an index
// lacks is told in Results.Notes.
func (x *Index) Search(ctx context.Context, cols []Collection, q Query) (Results, error) {
	broken := map[space.SpaceID]bool{}
	patience, cancel := context.WithTimeout(ctx, x.opts.MaxTime)
	defer cancel()
	for {
		r, err := x.search(patience, cols, q, broken)
		if err != nil && patience.Err() != nil && ctx.Err() == nil {
			return Results{}, fault.Wrap(err, fault.TooLarge, "The search was given up after %v. Use fewer filters, or simpler ones.", x.opts.MaxTime)
		}
		var d *damageError
		if !errors.As(err, &d) || broken[d.id] {
			return r, err
		}
		broken[d.id] = true // and once more without it
	}
}

// inquire opens what a query searches and makes its plan. end must be called,
// whatever the error.
func (x *Index) inquire(ctx context.Context, cols []Collection, q Query, broken map[space.SpaceID]bool, r *Results) (_ *inquiry, end func(), err error) {
	parsed := x.parse(q)
	for _, globs := range []*[]string{&parsed.Filters.Path.Is, &parsed.Filters.Path.Not} {
		if *globs = distinct(*globs); len(*globs) > maxGlobs {
			*globs = (*globs)[:maxGlobs]
			parsed.Notef("Only the first %d path filters were used.", maxGlobs)
		}
	}
	u := &inquiry{Parsed: &parsed, a: x.analyzer()}
	var sessions []*session
	end = func() {
		u.m.end()
		x.analyzers.put(u.a)
		for _, s := range sessions {
			s.end()
		}
	}
	chosen := chooseCollections(cols, parsed.Filters.Source)
	for _, c := range chosen {
		if broken[c.ID] {
			r.Notes = append(r.Notes, fmt.Sprintf("The index of %s is damaged and is being rebuilt, so nothing in it was searched. Search again in a moment.", c.Label))
			e, err := x.entry(c.ID)
			if err != nil {
				return u, end, err
			}
			r.IndexAge = max(r.IndexAge, leastAge+e.fell(x.opts.Now()))
			continue
		}
		s, err := x.begin(ctx, c, r)
		if err != nil {
			return u, end, err
		}
		if s != nil {
			s.order = len(sessions)
			sessions = append(sessions, s)
		}
	}
	// Notes about the whole answer come before notes about a part of the query.
	r.Notes = slices.Concat(lagNotes(r.Indexes), r.Notes, parsed.Notes, unknownSources(cols, parsed.Filters.Source))
	r.Scope = scope(chosen, parsed.Filters, r.Indexes)
	u.limit = q.limitWith(parsed.Limit)
	if u.limit > x.opts.MaxResults {
		u.limit = x.opts.MaxResults
		r.Notes = append(r.Notes, fmt.Sprintf("limit was lowered to %d, the most that is allowed.", u.limit))
	}
	if u.lexicon, err = x.lexicon(ctx, sessions, &parsed); err != nil {
		return u, end, err
	}
	u.lexicon.behind = r.IndexAge > 0
	u.m = x.startMeaning(&parsed, sessions, r)
	return u, end, u.prepare(ctx, r)
}

func (x *Index) search(ctx context.Context, cols []Collection, q Query, broken map[space.SpaceID]bool) (Results, error) {
	var r Results
	u, end, err := x.inquire(ctx, cols, q, broken, &r)
	defer end()
	if err != nil {
		return Results{}, err
	}
	hits, err := u.rank(ctx, &r)
	if err != nil {
		return Results{}, err
	}
	if q.Explain {
		if err := u.explainTerms(ctx, hits[:min(u.limit, len(hits))]); err != nil {
			return Results{}, err
		}
	}
	p := u.plan
	if err := x.present(ctx, u.a, p, hits[:min(u.limit, len(hits))], q.MaxTokens, &r); err != nil {
		return Results{}, err
	}
	for _, f := range hits {
		r.Total -= f.alsoCount // that it stands for them is told in the hit
	}
	r.Total = max(r.Total, len(r.Hits))
	r.Truncated = r.Total > len(r.Hits)
	docs := int64(0)
	for _, s := range r.Indexes {
		docs += s.Docs
	}
	if docs > 0 && len(p.missing) > 0 && !u.behind {
		r.Notes = append(r.Notes, respelledNote(p.missing, u.instead))
		r.Suggestions = u.suggestions()
	}
	if len(r.Hits) > 0 || u.behind {
		return r, nil // the pages that the index lacks may match
	}
	told := len(r.Notes)
	if docs > 0 {
		if err := x.noteUnmet(ctx, u.sessions, u.Filters, &r); err != nil {
			return Results{}, err
		}
	}
	if why := u.whyEmpty(docs, len(r.Notes) == told, &r); why != "" {
		r.Notes = append(r.Notes, why)
	}
	if len(p.terms) > 0 && len(r.Suggestions) == 0 {
		r.Suggestions, err = suggest(ctx, u.a, u.sessions, u.Parsed)
	}
	return r, err
}

func missingNote(words []string) string {
	quoted := make([]string, len(words))
	for i, w := range words {
		quoted[i] = fmt.Sprintf("%q", parse.Clip(w, 60))
	}
	if n := len(quoted) - 1; n > 0 {
		quoted = append(quoted[:n-1], quoted[n-1]+" or "+quoted[n])
	}
	return "No page has " + strings.Join(quoted, ", ") + "."
}

// maxUnmet is how many values of filters that no document meets are told.
const maxUnmet = 5

// noteUnmet tells, of a search that found nothing, which values of its filters
// no document meets at all.
func (x *Index) noteUnmet(ctx context.Context, sessions []*session, f query.Filters, r *Results) error {
	var unmet []string
	all := f.Single()
	for i, one := range all {
		if len(unmet) == maxUnmet {
			break
		}
		if slices.ContainsFunc(all[:i], func(o query.Filters) bool { return o.Describe() == one.Describe() }) {
			continue
		}
		met := false
		for _, s := range sessions {
			cond, args, err := where(ctx, s.tx, one, s.col.Mount)
			if err == nil && !met {
				err = s.tx.QueryRowContext(ctx, `SELECT EXISTS (SELECT 1 FROM docs WHERE `+cond+`)`, args...).Scan(&met)
			}
			if err != nil {
				return x.failed(ctx, s, err)
			}
		}
		if !met {
			unmet = append(unmet, one.Describe())
		}
	}
	if len(unmet) > 0 {
		r.Notes = append(r.Notes, "No page is "+strings.Join(unmet, " or ")+".")
	}
	return nil
}

// parse parses a query's text and adds its other filters.
func (x *Index) parse(q Query) query.Parsed {
	parsed := query.Parse(q.Text, x.opts.Now(), x.opts.MaxQueryBytes)
	if q.Source != "" {
		parsed.Filters.Source.Is = append(parsed.Filters.Source.Is, strings.Split(strings.ToLower(q.Source), ",")...)
	}
	parsed.Explain = q.Explain
	if q.Since.After(parsed.Filters.Since) {
		parsed.Filters.Since = q.Since
	}
	return parsed
}

// chooseCollections applies the source filter.
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

// unknownSources returns notes about sources that a filter names and that do not
// exist.
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

// begin opens a collection for the query. It returns nil if the collection is not
// indexed yet.
func (x *Index) begin(ctx context.Context, c Collection, r *Results) (*session, error) {
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
	s := &session{col: c, entry: e, db: d, terms: map[string]*termEntry{}}
	if s.tx, err = d.read.BeginTx(ctx, nil); err == nil {
		err = s.snapshot(ctx, x.opts)
	}
	if err != nil {
		err = x.failed(ctx, s, err)
		s.end()
		return nil, err
	}
	st := IndexState{Collection: c, Commit: s.state.commit, Docs: s.state.docs}
	// Look up the head after opening the database, so that it is not the older one.
	if st.Behind, st.Pages, err = x.lag(ctx, e, st.Commit, true); err != nil {
		s.end()
		return nil, err
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
	if s.state.unread > 0 {
		if err := s.noteUnread(ctx, r); err != nil {
			err = x.failed(ctx, s, err)
			s.end()
			return nil, err
		}
		e.refresh() // they may have been repaired, which no commit announces
	}
	return s, nil
}

// shownUnread limits how many unreadable files a note names.
const shownUnread = 3

// noteUnread adds a note about the files that only their names find.
func (s *session) noteUnread(ctx context.Context, r *Results) error {
	paths, err := unreadPaths(ctx, s.tx, shownUnread)
	if err != nil {
		return err
	}
	var names []string
	for _, p := range paths {
		names = append(names, fmt.Sprintf("%q", string(p)))
	}
	list := strings.Join(names, ", ")
	if more := s.state.unread - int64(len(paths)); more > 0 {
		list += fmt.Sprintf(" and %d more", more)
	}
	r.Notes = append(r.Notes, fmt.Sprintf("The text of %s in %s was not searched, because it is damaged on the server's disk. %s", list, s.col.Label, space.DamagedAdvice))
	return nil
}

func (s *session) end() {
	s.db.scratch.put(s.memory)
	if s.tx != nil {
		s.tx.Rollback()
	}
	s.db.release()
}

// damageError is a database that cannot be read. It has been reported for
// repair.
type damageError struct {
	id  space.SpaceID
	err error
}

func (e *damageError) Error() string { return fmt.Sprintf("index of %s is damaged: %v", e.id, e.err) }
func (e *damageError) Unwrap() error { return e.err }

// failed looks at an error of a query. Damage is remembered, so that the next
// update rebuilds, and reported to whoever follows the collection.
func (x *Index) failed(ctx context.Context, s *session, err error) error {
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if !damaged(err) {
		return fmt.Errorf("search %s: %w", s.col.ID, err)
	}
	s.entry.mu.Lock()
	first := !s.entry.rotten
	s.entry.rotten = true
	s.entry.mu.Unlock()
	s.entry.fell(x.opts.Now())
	if first {
		x.opts.Logger.WarnContext(ctx, "index is damaged and will be rebuilt", "collection", s.col.ID, "error", err)
		s.entry.refresh()
	}
	return &damageError{s.col.ID, err}
}

// scope says what a search looked at.
func scope(cols []Collection, f query.Filters, indexes []IndexState) string {
	f.Source = query.Condition{}
	docs := int64(0)
	for _, i := range indexes {
		docs += i.Docs
	}
	var labels []string
	for _, c := range cols {
		labels = append(labels, c.Label)
	}
	where := strings.Join(labels, ", ")
	if len(labels) > 6 {
		where = fmt.Sprintf("%s and %d more", strings.Join(labels[:5], ", "), len(labels)-5)
	}
	s := fmt.Sprintf("%s (%d documents)", where, docs)
	if where == "" {
		s = "0 documents"
	}
	if d := f.Describe(); d != "" {
		s += " with " + d
	}
	return s
}
