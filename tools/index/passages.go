package index

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"hash/fnv"
	"strings"

	"satchel/internal/frontmatter"
	"satchel/internal/space"
	"satchel/tools/index/parse"
	"satchel/tools/index/segment"
	"satchel/tools/index/semantic"
)

// chunkSource offers the index's chunks to be embedded. It is a semantic.Source.
type chunkSource struct{ x *Index }

// docKey names a document with its content.
func docKey(p space.Path, blob space.BlobID) uint64 {
	h := fnv.New64a()
	_, _ = h.Write([]byte(p))
	_, _ = h.Write([]byte{0})
	_, _ = h.Write([]byte(blob))
	return h.Sum64()
}

// with calls f with the collection's database; ok is false if it has none.
func (s chunkSource) with(ctx context.Context, collection string, f func(*database) error) (ok bool, err error) {
	e, err := s.x.entry(space.SpaceID(collection))
	if err != nil {
		return false, err
	}
	d, err := s.x.open(ctx, e)
	if err != nil || d == nil {
		return false, err
	}
	defer d.release()
	return true, f(d)
}

// Docs implements semantic.Source.
func (s chunkSource) Docs(ctx context.Context, collection string) (docs []semantic.Doc, st semantic.State, ok bool, err error) {
	ok, err = s.with(ctx, collection, func(d *database) error {
		// Read before the documents, so that it is never newer than they are.
		st = semantic.State{Fingerprint: s.x.opts.fingerprint(), Commit: string(d.current().commit)}
		rows, err := d.read.QueryContext(ctx, `SELECT id, path, blob FROM docs ORDER BY id`)
		if err != nil {
			return err
		}
		defer rows.Close()
		for rows.Next() {
			var id int64
			var p space.Path
			var blob space.BlobID
			if err := rows.Scan(&id, &p, &blob); err != nil {
				return err
			}
			docs = append(docs, semantic.Doc{ID: id, Key: docKey(p, blob)})
		}
		return rows.Err()
	})
	return docs, st, ok, err
}

// Chunks implements semantic.Source. A chunk's text is its document's title and
// description, the headings above it, and what it says.
func (s chunkSource) Chunks(ctx context.Context, collection string, doc semantic.Doc) (chunks []semantic.Chunk, err error) {
	_, err = s.with(ctx, collection, func(d *database) error {
		have, text, err := readWhole(ctx, d.read, doc.ID)
		if errors.Is(err, sql.ErrNoRows) || err == nil && docKey(have.path, have.blob) != doc.Key {
			return nil // it has gone since, and a run for what replaced it follows
		}
		if err != nil {
			return err
		}
		rows, err := d.read.QueryContext(ctx, `SELECT id, start, end, line0, line1, crumbs, anchors, sum FROM chunks WHERE id BETWEEN ? AND ? ORDER BY id`,
			doc.ID<<chunkBits, (doc.ID+1)<<chunkBits-1)
		if err != nil {
			return err
		}
		defer rows.Close()
		f := parse.Format(string(have.path))
		for rows.Next() {
			var id, sum int64
			var start, end int
			var lines [2]int
			var crumbs, anchors string
			if err := rows.Scan(&id, &start, &end, &lines[0], &lines[1], &crumbs, &anchors, &sum); err != nil {
				return err
			}
			var b strings.Builder
			b.WriteString(have.title)
			if crumbs != "" && crumbs != have.title {
				b.WriteString("\n" + strings.ReplaceAll(crumbs, "\n", " > "))
			}
			if start < 0 || start > end || end > len(text) {
				return fmt.Errorf("%w: place of chunk %d", segment.ErrDamaged, id)
			}
			if err := chunkFields(id, start, end, lines, crumbs, anchors).check(sum, text[start:min(end, start+maxPassageBytes)], "chunk", id); err != nil {
				return err
			}
			if start == 0 && f == parse.FormatMarkdown {
				start = min(frontmatter.Skip(text), end)
				b.WriteString("\n" + have.description)
			}
			if start < end {
				b.WriteString("\n" + parse.Indexable(f, string(text[start:end])))
			}
			chunks = append(chunks, semantic.Chunk{ID: id, Text: strings.ToValidUTF8(strings.TrimSpace(b.String()), "\ufffd")})
		}
		return rows.Err()
	})
	return chunks, err
}
