package index

import (
	"bytes"
	"context"
	"fmt"
	"slices"
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

// secondChunk is what the next best chunks of a document add to its score, each
// half of the one before.
const secondChunk = 0.05

// leadChunk is what the chunk that a page with headings begins with adds to the
// page's score where the query is a sentence: such a page says first what it is
// about, and its sections go into what others are about. A text without headings
// need not begin with its subject, and a name is sought wherever it stands.
const leadChunk = 0.5

// candidates asks one database for what any of the terms match and scores it.
func (u *inquiry) candidates(ctx context.Context, s *session, terms []term, sc *scorer, cover *coverage, r *Results) ([]*found, error) {
	cond, args, err := u.filters.where(ctx, s.tx, s.col.Mount)
	if err != nil {
		return nil, err
	}
	p := u.plan
	if len(p.phrases) == 0 && !slices.ContainsFunc(terms, func(t term) bool { return t.df > 0 }) {
		if len(u.words) == 0 && cond != "" {
			if len(p.without) > 0 {
				r.Notes = append(r.Notes, "What to leave out was not looked at: name a word to search for as well.")
			}
			return u.x.list(ctx, s, cond, args, u.parsedQuery, r)
		}
		return nil, nil
	}
	docs, err := s.filterDocs(ctx, cond, args)
	if err != nil {
		return nil, err
	}
	depth := max(u.x.opts.Candidates, u.deep*chunksPerDocument)
	best, total, err := s.retrieve(ctx, retrieval{
		terms: terms, sc: sc, phrases: p.phrases, without: p.without, docs: docs, depth: depth, verify: u.x.opts.MaxRows,
	})
	r.Total += total
	if s.unread {
		r.Notes = append(r.Notes, fmt.Sprintf("More pages of %s may have the phrase than total counts: only the best passages with its words were looked into.", s.col.Label))
	}
	lead := 0.0
	if u.sentence() {
		lead = leadChunk
	}
	return s.byDocument(best, cover, lead), err
}

// chunksPerDocument is how many chunks are retrieved for each document that an
// evaluation wants.
const chunksPerDocument = 4

// byDocument groups chunks, best first, by document and scores those: by the
// best chunk, a little by the next ones, by lead times the one that leads the
// page, and by how much of the query is in the best.
func (s *session) byDocument(best []candidate, cover *coverage, lead float64) (order []*found) {
	docs := map[int64]*found{}
	leading := map[*found]float64{}
	for _, c := range best {
		f := docs[c.id>>chunkBits]
		if f == nil {
			f = &found{session: s, id: c.id >> chunkBits, terms: c.terms}
			docs[f.id] = f
			order = append(order, f)
		}
		f.chunks = append(f.chunks, scored{c.id, c.score})
		if c.lead && lead > 0 {
			leading[f] = lead * c.score
		}
	}
	for _, f := range order {
		f.score = f.chunks[0].score
		share := secondChunk
		for _, c := range f.chunks[1:min(len(f.chunks), 4)] {
			f.score += share * c.score
			share /= 2
		}
		f.score += leading[f]
		f.score *= 1 + coverWeight*cover.of(f.terms)
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
	var tags, files string
	var sum, docSum int64
	err = s.tx.StmtContext(ctx, s.db.stmts.passage).QueryRowContext(ctx, maxPassageBytes, id).
		Scan(&p.start, &p.end, &p.lines[0], &p.lines[1], &p.crumbs, &p.anchors, &sum, &text,
			&d.path, &d.blob, &d.title, &d.description, &d.kind, &d.lang, &d.version, &d.date, &d.lines, &tags, &files, &docSum)
	if err == nil {
		err = chunkFields(id, p.start, p.end, p.lines, p.crumbs, p.anchors).check(sum, text, "chunk", id)
	}
	if err == nil {
		err = docFields(id>>chunkBits, &d, tags, files).check(docSum, nil, "document", id>>chunkBits)
	}
	if err != nil {
		return passage{}, docRow{}, err
	}
	if len(text) < p.end-p.start {
		if i := bytes.LastIndexByte(text, '\n'); i >= 0 {
			text = text[:i+1]
		}
		p.end = p.start + len(text)
		p.lines[1] = p.lines[0] + max(0, bytes.Count(text, []byte{'\n'})-1)
	}
	p.text = string(text)
	return p, d, nil
}
