package index

import (
	"context"
	"database/sql"
	"errors"
	"hash/fnv"
	"strings"

	"satchel/internal/frontmatter"
	"satchel/internal/space"
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

// with calls f with the collection's database; ok is false where it has none.
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
		var p space.Path
		var blob space.BlobID
		var title, description string
		var text []byte
		err := d.read.QueryRowContext(ctx, `SELECT path, blob, title, description, text FROM docs JOIN texts USING(id) WHERE id = ?`, doc.ID).
			Scan(&p, &blob, &title, &description, &text)
		if errors.Is(err, sql.ErrNoRows) || err == nil && docKey(p, blob) != doc.Key {
			return nil // it has gone since, and a run for what replaced it follows
		}
		if err != nil {
			return err
		}
		rows, err := d.read.QueryContext(ctx, `SELECT id, start, end, crumbs FROM chunks WHERE id BETWEEN ? AND ? ORDER BY id`,
			doc.ID<<chunkBits, (doc.ID+1)<<chunkBits-1)
		if err != nil {
			return err
		}
		defer rows.Close()
		f := format(string(p))
		for rows.Next() {
			var id int64
			var start, end int
			var crumbs string
			if err := rows.Scan(&id, &start, &end, &crumbs); err != nil {
				return err
			}
			var b strings.Builder
			b.WriteString(title)
			if crumbs != "" && crumbs != title {
				b.WriteString("\n" + strings.ReplaceAll(crumbs, "\n", " > "))
			}
			start, end = min(max(start, 0), len(text)), min(end, len(text))
			if start == 0 && f == formatMarkdown {
				start = min(frontmatter.Skip(text), end)
				b.WriteString("\n" + description)
			}
			if start < end {
				b.WriteString("\n" + indexable(f, string(text[start:end])))
			}
			chunks = append(chunks, semantic.Chunk{ID: id, Text: strings.ToValidUTF8(strings.TrimSpace(b.String()), "\ufffd")})
		}
		return rows.Err()
	})
	return chunks, err
}
