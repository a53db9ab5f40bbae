package index

import (
	"context"
	"database/sql"
	"fmt"
	"slices"
	"strings"
	"time"

	"satchel/internal/space"
	"satchel/tools/index/parse"
	"satchel/tools/index/query"
)

// docRow is what a result says of its document.
type docRow struct {
	path        space.Path
	blob        space.BlobID
	title       string
	description string
	kind        parse.Kind
	lang        string
	version     string
	date        int64
	lines       int
	size        int    // of its text
	text        string // whole, where it is no longer than wholeBytes
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
func (u *inquiry) candidates(ctx context.Context, s *session, terms []term, sc *scorer, cover *coverage, more bool, r *Results) ([]*found, error) {
	cond, args, err := where(ctx, s.tx, u.Filters, s.col.Mount)
	if err != nil {
		return nil, err
	}
	p := u.plan
	if len(p.phrases) == 0 && !slices.ContainsFunc(terms, func(t term) bool { return t.df > 0 }) {
		if len(u.Words) == 0 && (cond != "" || u.Sort != query.ByRelevance) {
			if len(p.without) > 0 {
				r.Notes = append(r.Notes, "What to leave out was not looked at: name a word to search for as well.")
			}
			return u.x.list(ctx, s, cond, args, u.Parsed, r)
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
		heads: u.headBits(), more: more,
	})
	r.Total += total
	if s.unread {
		r.Notes = append(r.Notes, fmt.Sprintf("More pages of %s may have the phrase than total counts: only the best passages with its words were looked into.", s.col.Label))
	}
	lead := 0.0
	if u.sentence() {
		lead = leadChunk
	}
	return s.byDocument(best, cover, lead, u.Explain), err
}

// chunksPerDocument is how many chunks are retrieved for each document that an
// evaluation wants.
const chunksPerDocument = 4

// byDocument groups chunks, best first, by document and scores those: by the
// best chunk, a little by the next ones, by lead times the one that leads the
// page, and by how much of the query is in the best.
func (s *session) byDocument(best []candidate, cover *coverage, lead float64, explain bool) []*found {
	place := make(map[int64]int32, len(best))
	of := make([]int32, len(best)) // the document of each chunk
	var counts []int32             // chunks of each document
	for i, c := range best {
		k, ok := place[c.id>>chunkBits]
		if !ok {
			k = int32(len(counts))
			place[c.id>>chunkBits] = k
			counts = append(counts, 0)
		}
		of[i] = k
		counts[k]++
	}
	docs := make([]found, len(counts))
	order := make([]*found, len(counts))
	leading := make([]float64, len(counts))
	rest := make([]scored, len(best))
	for i, c := range best {
		f := &docs[of[i]]
		if f.session == nil {
			n := counts[of[i]]
			*f = found{session: s, id: c.id >> chunkBits, terms: c.terms, chunks: rest[:0:n]}
			order[of[i]] = f
			rest = rest[n:]
		}
		f.chunks = append(f.chunks, scored{c.id, c.score, c.heads | headsKnown})
		if c.lead && lead > 0 {
			leading[of[i]] = lead * c.score
		}
	}
	for i, f := range order {
		if explain {
			f.why = &Explanation{passage: f.chunks[0].id}
		}
		f.rescore("the query's terms in the best passage", f.chunks[0].score)
		share, others := secondChunk, 0.0
		for _, c := range f.chunks[1:min(len(f.chunks), 4)] {
			others += share * c.score
			share /= 2
		}
		f.rescore("other passages of the page", f.score+others)
		f.rescore("the beginning of the page", f.score+leading[i])
		f.rescore("the share of the query that the best passage has", f.score*(1+coverWeight*cover.of(f.terms)))
	}
	return order
}

// list answers a query that has filters and no words: the newest documents.
func (x *Index) list(ctx context.Context, s *session, cond string, args []any, q *query.Parsed, r *Results) ([]*found, error) {
	if cond == "" {
		cond = "TRUE"
	}
	order := "date DESC, path"
	if q.Sort == query.ByPath {
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
	if q.Sort == query.ByRelevance {
		q.Sort = query.ByDate
	}
	r.Total += total
	return docs, rows.Err()
}

// load reads what is shown of the document, with its best passage.
func (f *found) load(ctx context.Context) (err error) {
	if f.loaded != nil {
		return nil
	}
	var l loaded
	if l.best, l.doc, err = f.session.passage(ctx, f.chunks[0].id); err == nil {
		f.loaded = &l
	}
	return err
}

// loadDocs reads what is shown of documents, with one statement for each database.
func (x *Index) loadDocs(ctx context.Context, docs []*found) error {
	if err := x.readPassages(ctx, docs); err != nil {
		return err
	}
	for _, f := range docs {
		if f.loaded == nil {
			f.loaded = f.session.read[f.chunks[0].id]
		}
	}
	return nil
}

// readPassages reads the best passages of documents, of those that there are,
// with one statement for each database.
func (x *Index) readPassages(ctx context.Context, docs []*found) error {
	ids := map[*session][]int64{}
	for _, f := range docs {
		if id := f.chunks[0].id; f.loaded == nil && f.session.read[id] == nil {
			ids[f.session] = append(ids[f.session], id)
		}
	}
	for s, list := range ids {
		if s.read == nil {
			s.read = map[int64]*loaded{}
		}
		if err := s.passages(ctx, list, func(id int64, p passage, d docRow) { s.read[id] = &loaded{d, p} }); err != nil {
			return x.failed(ctx, s, err)
		}
	}
	return nil
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

// wholeBytes is up to what size a document's text is read whole with one of its
// passages: reading it in parts is no faster.
const wholeBytes = 32 << 10

// passage reads a chunk, of a longer one its first lines, and its document.
func (s *session) passage(ctx context.Context, id int64) (p passage, d docRow, err error) {
	if l := s.read[id]; l != nil {
		return l.best, l.doc, nil
	}
	err = sql.ErrNoRows
	if failed := s.passages(ctx, []int64{id}, func(_ int64, one passage, of docRow) { p, d, err = one, of, nil }); failed != nil {
		err = failed
	}
	return p, d, err
}

// passages calls yield with chunks that there are, and their documents.
func (s *session) passages(ctx context.Context, ids []int64, yield func(int64, passage, docRow)) error {
	return s.eachRow(ctx, s.db.stmts.passage, func(rows *sql.Rows) error {
		var id int64
		var p passage
		var d docRow
		var text sql.RawBytes
		var tags, files string
		var sum, textSum, docSum int64
		if err := rows.Scan(&id, &p.start, &p.end, &p.lines[0], &p.lines[1], &p.crumbs, &p.anchors, &sum, &d.size, &text, &textSum,
			&d.path, &d.blob, &d.title, &d.description, &d.kind, &d.lang, &d.version, &d.date, &d.lines, &tags, &files, &docSum); err != nil {
			return err
		}
		doc, part := id>>chunkBits, []byte(text)
		if d.size <= wholeBytes {
			if err := textFields(doc).check(textSum, text, "text", doc); err != nil {
				return err
			}
			from := min(max(p.start, 0), len(text))
			part = text[from:min(max(p.end, from), from+maxPassageBytes, len(text))]
			d.text = string(text)
		}
		if err := chunkFields(id, p.start, p.end, p.lines, p.crumbs, p.anchors).check(sum, part, "chunk", id); err != nil {
			return err
		}
		if err := docFields(doc, &d, tags, files).check(docSum, nil, "document", doc); err != nil {
			return err
		}
		if p.text = string(part); len(p.text) < p.end-p.start {
			if i := strings.LastIndexByte(p.text, '\n'); i >= 0 {
				p.text = p.text[:i+1]
			}
			p.end = p.start + len(p.text)
			p.lines[1] = p.lines[0] + max(0, strings.Count(p.text, "\n")-1)
		}
		yield(id, p, d)
		return nil
	}, wholeBytes, maxPassageBytes, jsonList(ids))
}

// wholeText returns the text of a loaded document.
func (f *found) wholeText(ctx context.Context) (string, error) {
	if f.doc.size <= wholeBytes {
		return f.doc.text, nil
	}
	text, err := readText(ctx, f.session.tx, f.id)
	return string(text), err
}
