package postings

import (
	"context"
	"database/sql"
	"slices"
	"strings"
	"time"

	"satchel/internal/space"
	"satchel/tools/index/parse"
)

// Document holds the facts about a document that a result shows.
type Document struct {
	Path        space.Path
	Blob        space.BlobID
	Title       string
	Description string
	URL         string // the page on the web, from its front matter; "" if there is none
	Kind        parse.Kind
	Lang        string
	Version     string
	Date        int64 // Unix seconds; 0: not known
	Lines       int
	Size        int    // the size of the text
	text        string // the whole text, if it is no longer than wholeBytes
}

// Time returns the time of the document's last change, or the zero time if it is not known.
func (d *Document) Time() time.Time {
	if d.Date == 0 {
		return time.Time{}
	}
	return time.Unix(d.Date, 0).UTC()
}

// Passage is a chunk with its text and its document.
type Passage struct {
	Doc        Document
	Start, End int
	Lines      [2]int
	Crumbs     string // see parse.Chunk; one heading on each line
	Anchors    string // see parse.Chunk
	Text       string
}

// maxPassageBytes is the maximum number of bytes of a chunk that are read. A chunk may be
// longer, because it may contain a code fence of parse.MaxFence bytes and other text.
const maxPassageBytes = 32 << 10

// wholeBytes is the size up to which the whole text of a document is read together with a
// passage, because reading only a part is not faster.
const wholeBytes = 32 << 10

// Passage reads a chunk and its document. It reads only the first lines of a chunk of more
// than maxPassageBytes. The error is sql.ErrNoRows if the chunk does not exist.
func (s *Snapshot) Passage(ctx context.Context, id int64) (*Passage, error) {
	if err := s.LoadPassages(ctx, id); err != nil {
		return nil, err
	}
	if p := s.read[id]; p != nil {
		return p, nil
	}
	return nil, sql.ErrNoRows
}

// LoadPassages reads chunks with one statement, so that [Snapshot.Passage] does not have to
// read each of them. It ignores chunks that do not exist.
func (s *Snapshot) LoadPassages(ctx context.Context, ids ...int64) error {
	missing := slices.DeleteFunc(slices.Clone(ids), func(id int64) bool { return s.read[id] != nil })
	if len(missing) == 0 {
		return nil
	}
	return s.eachRow(ctx, s.db.stmts.passage, func(rows *sql.Rows) error {
		var id int64
		p := &Passage{}
		d := &p.Doc
		var text sql.RawBytes
		var tags, files string
		var sum, textSum, docSum int64
		if err := rows.Scan(&id, &p.Start, &p.End, &p.Lines[0], &p.Lines[1], &p.Crumbs, &p.Anchors, &sum, &d.Size, &text, &textSum,
			&d.Path, &d.Blob, &d.Title, &d.Description, &d.URL, &d.Kind, &d.Lang, &d.Version, &d.Date, &d.Lines, &tags, &files, &docSum); err != nil {
			return err
		}
		doc, part, whole := id>>ChunkBits, []byte(text), string(text)
		p.Text = whole
		if d.Size <= wholeBytes {
			if err := textFields(doc).check(textSum, text, "text", doc); err != nil {
				return err
			}
			from := min(max(p.Start, 0), len(text))
			to := min(max(p.End, from), from+maxPassageBytes, len(text))
			part, p.Text, d.text = text[from:to], whole[from:to], whole
		}
		if err := chunkFields(id, p.Start, p.End, p.Lines, p.Crumbs, p.Anchors).check(sum, part, "chunk", id); err != nil {
			return err
		}
		if err := docFields(doc, d, tags, files).check(docSum, nil, "document", doc); err != nil {
			return err
		}
		if len(p.Text) < p.End-p.Start {
			if i := strings.LastIndexByte(p.Text, '\n'); i >= 0 {
				p.Text = p.Text[:i+1]
			}
			p.End = p.Start + len(p.Text)
			p.Lines[1] = p.Lines[0] + max(0, strings.Count(p.Text, "\n")-1)
		}
		s.read[id] = p
		return nil
	}, wholeBytes, maxPassageBytes, jsonList(missing))
}

// WholeText returns the whole text of d. id is the id of this document.
func (s *Snapshot) WholeText(ctx context.Context, id int64, d *Document) (string, error) {
	if d.Size <= wholeBytes {
		return d.text, nil
	}
	text, err := readText(ctx, s.tx, id)
	return string(text), err
}
