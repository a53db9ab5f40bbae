package index

import (
	"bytes"
	"context"
	"fmt"
	"math"
	"path"
	"slices"
	"strings"
	"time"

	"satchel/internal/space"
)

// docRow is what a result says of its document.
type docRow struct {
	path        space.Path
	blob        space.BlobID
	title       string
	description string
	kind        Kind
	lang        string
	version     string
	date        int64
	lines       int
}

// How the chunks of a document, and what is not in BM25F, add to its score.
const (
	// secondChunk is what the next best chunks of a document add, each half of
	// the one before.
	secondChunk = 0.05
	// namedBoost is for a document whose title or file name is the query's
	// words in one, titledBoost for one whose title consists of the query's
	// words in any order.
	namedBoost  = 0.6
	titledBoost = 0.2
	// headedBoost is for a passage with a heading that is the query's words.
	headedBoost = 0.6
	// adjacentBoost is for the share of the query's neighbouring words that are
	// neighbours in the passage too.
	adjacentBoost = 0.2
	// phraseBoost is for a passage in which all of them are.
	phraseBoost = 0.2
	// reranked is how many documents are looked at for the boosts.
	reranked = 40
	// relevantShare is how near to the best score a document must come to be
	// listed where the order is another one.
	relevantShare = 0.4
)

// rank returns the documents that match, best first; at least limit of them
// are loaded where there are as many.
func (x *Index) rank(ctx context.Context, a *analyzer, m *meaning, lex *lexicon, p *plan, q *parsedQuery, limit int, r *Results) ([]*found, error) {
	states := make([]state, 0, len(lex.sessions))
	for _, s := range lex.sessions {
		states = append(states, s.state)
	}
	sc := newScorer(p, sumStatistics(states))
	var all []*found
	for _, s := range lex.sessions {
		docs, err := x.candidates(ctx, s, p, q, sc, r)
		if err != nil {
			return nil, x.failed(ctx, s, err)
		}
		all = append(all, docs...)
	}
	byScore := func(a, b *found) int {
		switch {
		case a.score != b.score:
			if a.score > b.score {
				return -1
			}
			return 1
		case a.session != b.session:
			return strings.Compare(string(a.session.col.ID), string(b.session.col.ID))
		}
		return int(a.id - b.id)
	}
	slices.SortFunc(all, byScore)
	all, err := x.fuse(ctx, m, p, q, all, r)
	if err != nil {
		return nil, err
	}
	if len(p.terms) > 0 {
		if all, err = x.prefer(ctx, lex.tongue, lex.sessions, q, all, limit); err != nil {
			return nil, err
		}
	}
	look := min(len(all), max(reranked, limit))
	if q.sort != byRelevance && len(p.terms) > 0 {
		for i, f := range all {
			if f.score < all[0].score*relevantShare {
				all = all[:i]
				break
			}
		}
		look = len(all)
	}
	for _, f := range all[:look] {
		if err := f.load(ctx); err != nil {
			return nil, x.failed(ctx, f.session, err)
		}
		if len(p.terms) > 0 {
			f.score *= 1 + f.boost(a, p)
		}
	}
	switch q.sort {
	case byRelevance:
		if len(p.terms) > 0 {
			slices.SortFunc(all[:look], byScore)
			if all, err = x.rerank(ctx, m, all, r); err != nil {
				return nil, err
			}
			all = x.cutWeak(all, limit, r)
		}
	case byDate:
		slices.SortStableFunc(all[:look], func(a, b *found) int { return int(b.doc.date - a.doc.date) })
	case byPath:
		slices.SortStableFunc(all[:look], func(a, b *found) int { return strings.Compare(string(a.doc.path), string(b.doc.path)) })
	}
	return all, nil
}

// cutWeak leaves out the documents, best first, that are far below the best. r is
// told where that leaves the answer with fewer than the limit allows.
func (x *Index) cutWeak(all []*found, limit int, r *Results) []*found {
	for i, f := range all {
		if f.score < all[0].score*x.opts.MinScoreShare {
			if i < limit {
				r.Notes = append(r.Notes, fmt.Sprintf("Hits under %.0f%% of the best score are left out.", 100*x.opts.MinScoreShare))
			}
			return all[:i]
		}
	}
	return all
}

// candidates asks one database for what matches and scores it.
func (x *Index) candidates(ctx context.Context, s *session, p *plan, q *parsedQuery, sc *scorer, r *Results) ([]*found, error) {
	cond, args, err := q.filters.where(ctx, s.tx, s.col.Mount)
	if err != nil {
		return nil, err
	}
	if len(p.terms) == 0 && len(p.phrases) == 0 || len(p.phrases) == 0 && !slices.ContainsFunc(p.terms, func(t term) bool { return t.df > 0 }) {
		if len(q.words) == 0 && cond != "" {
			return x.list(ctx, s, cond, args, q, r)
		}
		return nil, nil
	}
	docs, err := s.filterDocs(ctx, cond, args)
	if err != nil {
		return nil, err
	}
	best, total, err := s.retrieve(ctx, retrieval{
		terms: p.terms, sc: sc, phrases: p.phrases, without: p.without, docs: docs,
		depth: x.opts.Candidates, verify: x.opts.MaxRows,
	})
	r.Total += total
	return s.byDocument(best), err
}

// byDocument groups chunks, best first, by document and scores those.
func (s *session) byDocument(best []candidate) (order []*found) {
	docs := map[int64]*found{}
	for _, c := range best {
		f := docs[c.id>>chunkBits]
		if f == nil {
			f = &found{session: s, id: c.id >> chunkBits}
			docs[f.id] = f
			order = append(order, f)
		}
		f.chunks = append(f.chunks, scored{c.id, c.score})
	}
	for _, f := range order {
		f.score = f.chunks[0].score
		share := secondChunk
		for _, c := range f.chunks[1:min(len(f.chunks), 4)] {
			f.score += share * c.score
			share /= 2
		}
	}
	return order
}

// list answers a query that has filters and no words: the newest documents.
func (x *Index) list(ctx context.Context, s *session, cond string, args []any, q *parsedQuery, r *Results) ([]*found, error) {
	order := "date DESC, path"
	if q.sort == byPath {
		order = "path"
	}
	rows, err := s.tx.QueryContext(ctx, `SELECT id, count(*) OVER () FROM docs WHERE `+cond+` ORDER BY `+order+` LIMIT ?`, append(args, x.opts.MaxResults)...)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	var docs []*found
	total := 0
	for rows.Next() {
		f := &found{session: s}
		if err := rows.Scan(&f.id, &total); err != nil {
			return nil, err
		}
		f.chunks = []scored{{id: f.id << chunkBits}}
		docs = append(docs, f)
	}
	if q.sort == byRelevance {
		q.sort = byDate
	}
	r.Total += total
	return docs, rows.Err()
}

// load reads what is shown of the document, with its best passage.
func (f *found) load(ctx context.Context) (err error) {
	if !f.loaded {
		f.best, f.doc, err = f.session.passage(ctx, f.chunks[0].id)
		f.loaded = err == nil
	}
	return err
}

func (d *docRow) time() time.Time {
	if d.date == 0 {
		return time.Time{}
	}
	return time.Unix(d.date, 0).UTC()
}

// passage is a chunk with its text.
type passage struct {
	start, end int
	lines      [2]int
	crumbs     string
	anchors    string // see chunk.anchors
	head       string // of a table that it begins in the middle of; see found.tableHead
	text       string
}

// maxPassageBytes is how much of a chunk is looked at: a code fence, which is
// never cut, may be as long as a file.
const maxPassageBytes = 32 << 10

// passage reads a chunk, of a longer one its first lines, and its document.
func (s *session) passage(ctx context.Context, id int64) (p passage, d docRow, err error) {
	var text []byte
	err = s.tx.StmtContext(ctx, s.db.stmts.passage).QueryRowContext(ctx, maxPassageBytes, id).
		Scan(&p.start, &p.end, &p.lines[0], &p.lines[1], &p.crumbs, &p.anchors, &text,
			&d.path, &d.blob, &d.title, &d.description, &d.kind, &d.lang, &d.version, &d.date, &d.lines)
	if len(text) < p.end-p.start {
		if i := bytes.LastIndexByte(text, '\n'); i >= 0 {
			text = text[:i+1]
		}
		p.end = p.start + len(text)
		p.lines[1] = p.lines[0] + max(0, bytes.Count(text, []byte{'\n'})-1)
	}
	p.text = string(text)
	return p, d, err
}

// boost returns what a document's name and the nearness of the query's words in
// its best passage add to its score.
func (f *found) boost(a *analyzer, p *plan) float64 {
	boost := 0.0
	if len(p.sequence) > 0 {
		base := path.Base(string(f.doc.path))
		base = strings.TrimLeft(strings.TrimSuffix(base, path.Ext(base)), "0123456789.")
		switch {
		case p.name != "" && (a.whole(f.doc.title) == p.name || a.whole(base) == p.name):
			boost += namedBoost
		case sameWords(a, f.doc.title, p.sequence):
			boost += titledBoost
		}
	}
	ps := f.best
	if boost == 0 && p.name != "" {
		for _, l := range parseLines(string(f.doc.path), []byte(ps.text), ps.start) {
			if l.level > 0 && a.whole(l.heading) == p.name {
				boost += headedBoost
				break
			}
		}
	}
	if len(p.sequence) < 2 {
		return boost
	}
	near := adjacency(a, ps.text, p.sequence)
	if near == 1 {
		boost += phraseBoost
	}
	return boost + adjacentBoost*near
}

// whole returns a text as the one identifier that its words make.
func (a *analyzer) whole(text string) string {
	var b strings.Builder
	a.words(text, func(w word) { b.WriteString(text[w.start:w.end]) })
	return a.join([]string{b.String()}, false)
}

// sameWords tells whether a title has the query's words and no others but stop
// words.
func sameWords(a *analyzer, title string, sequence []string) bool {
	same, n := true, 0
	a.words(title, func(w word) {
		if !stopWords[w.term] {
			n++
			same = same && slices.Contains(sequence, w.term)
		}
	})
	if !same || n == 0 {
		return false
	}
	distinct := map[string]bool{}
	for _, s := range sequence {
		distinct[s] = true
	}
	return n >= len(distinct)
}

// adjacency returns how many of the neighbouring pairs of the query's words are
// neighbours in the text, in the same order with at most one word between:
// from 0 to 1.
func adjacency(a *analyzer, text string, sequence []string) float64 {
	index := make(map[string][]int, len(sequence))
	for i, t := range sequence {
		index[t] = append(index[t], i)
	}
	seen := make([]bool, len(sequence))
	const never = math.MinInt / 2
	last := make([]int, len(sequence))
	for i := range last {
		last[i] = never
	}
	at := 0
	a.words(text, func(w word) {
		at++
		for _, i := range index[w.term] {
			if i > 0 && at-last[i-1] <= 2 {
				seen[i] = true
			}
		}
		for _, i := range index[w.term] {
			last[i] = at
		}
	})
	n := 0
	for _, s := range seen {
		if s {
			n++
		}
	}
	return float64(n) / float64(len(sequence)-1)
}
