package postings

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

// docKey returns a key for the path and the content of a document.
func docKey(p space.Path, blob space.BlobID) uint64 {
	h := fnv.New64a()
	_, _ = h.Write([]byte(p))
	_, _ = h.Write([]byte{0})
	_, _ = h.Write([]byte(blob))
	return h.Sum64()
}

// EmbeddingDocs lists the documents whose chunks must be embedded, ascending by id.
func (d *Database) EmbeddingDocs(ctx context.Context) (docs []semantic.Doc, st semantic.State, err error) {
	// Read the state before the documents, so that it is never newer than they are.
	st = semantic.State{Fingerprint: Fingerprint, Commit: string(d.State().Commit)}
	err = eachKey(ctx, d.read, `SELECT id, path, blob FROM docs ORDER BY id`, func(id int64, key uint64) {
		docs = append(docs, semantic.Doc{ID: id, Key: key})
	})
	return docs, st, err
}

// Keys returns the current keys of documents; see docKey.
func (s *Snapshot) Keys(ctx context.Context, ids []int64) (map[int64]uint64, error) {
	keys := make(map[int64]uint64, len(ids))
	err := eachKey(ctx, s.tx, `SELECT id, path, blob FROM docs WHERE id IN (SELECT value FROM json_each(?))`, func(id int64, key uint64) { keys[id] = key }, jsonList(ids))
	return keys, err
}

func eachKey(ctx context.Context, q queryer, statement string, f func(id int64, key uint64), args ...any) error {
	rows, err := q.QueryContext(ctx, statement, args...)
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
		f(id, docKey(p, blob))
	}
	return rows.Err()
}

// EmbeddingChunks returns the chunks of a document, or none if the document was removed. The
// text of a chunk here consists of the document's title, the headings above the chunk, and the
// chunk's own text. In the first chunk of a Markdown page, the description replaces the front
// matter.
func (d *Database) EmbeddingChunks(ctx context.Context, doc semantic.Doc) (chunks []semantic.Chunk, err error) {
	have, text, err := readWhole(ctx, d.read, doc.ID)
	if errors.Is(err, sql.ErrNoRows) || err == nil && docKey(have.Path, have.Blob) != doc.Key {
		return nil, nil // the document was removed; another run embeds its replacement
	}
	if err != nil {
		return nil, err
	}
	rows, err := d.read.QueryContext(ctx, `SELECT id, start, end, line0, line1, crumbs, anchors, sum FROM chunks WHERE id BETWEEN ? AND ? ORDER BY id`,
		doc.ID<<ChunkBits, (doc.ID+1)<<ChunkBits-1)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	f := parse.Format(string(have.Path))
	for rows.Next() {
		var id, sum int64
		var start, end int
		var lines [2]int
		var crumbs, anchors string
		if err := rows.Scan(&id, &start, &end, &lines[0], &lines[1], &crumbs, &anchors, &sum); err != nil {
			return nil, err
		}
		var b strings.Builder
		b.WriteString(have.Title)
		if crumbs != "" && crumbs != have.Title {
			b.WriteString("\n" + strings.ReplaceAll(crumbs, "\n", " > "))
		}
		if start < 0 || start > end || end > len(text) {
			return nil, fmt.Errorf("%w: place of chunk %d", segment.ErrDamaged, id)
		}
		if err := chunkFields(id, start, end, lines, crumbs, anchors).check(sum, text[start:min(end, start+maxPassageBytes)], "chunk", id); err != nil {
			return nil, err
		}
		if start == 0 && f == parse.FormatMarkdown {
			start = min(frontmatter.Skip(text), end)
			b.WriteString("\n" + have.Description)
		}
		if start < end {
			b.WriteString("\n" + parse.Indexable(f, string(text[start:end])))
		}
		chunks = append(chunks, semantic.Chunk{ID: id, Text: strings.ToValidUTF8(strings.TrimSpace(b.String()), "\ufffd")})
	}
	return chunks, rows.Err()
}
