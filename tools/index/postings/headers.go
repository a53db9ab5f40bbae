package postings

import (
	"context"
	"database/sql"
	"strings"

	"satchel/internal/space"
	"satchel/tools/index/parse"
)

// Header holds the facts about a document that ranking needs: its names, and the values that
// identify its variants in other languages and versions.
type Header struct {
	Path, Title, Lang, Version string
	Date                       int64
	Family                     string // the family of the path; see parse.Family
}

// Headers returns the headers of documents, in the order of ids.
func (s *Snapshot) Headers(ctx context.Context, ids []int64) ([]*Header, error) {
	all := make([]*Header, len(ids))
	at := map[int64]int{}
	var missing []int64
	for i, id := range ids {
		if r, ok := s.db.cache.find(rowKey{db: s.db, row: id, doc: true}); ok {
			all[i] = r.head
			continue
		}
		all[i], at[id] = &Header{}, i
		missing = append(missing, id)
	}
	if len(missing) == 0 {
		return all, nil
	}
	return all, s.eachRow(ctx, s.db.stmts.header, func(rows *sql.Rows) error {
		var id, sum int64
		h := &Header{}
		if err := rows.Scan(&id, &h.Path, &h.Title, &h.Lang, &h.Version, &h.Date, &sum); err != nil {
			return err
		}
		if err := headFields(id, h.Path, h.Title, h.Lang, h.Version, h.Date).check(sum, nil, "document", id); err != nil {
			return err
		}
		h.Family = parse.Family(h.Path)
		all[at[id]] = h
		s.db.cache.keep(cachedRow{key: rowKey{db: s.db, row: id, doc: true}, head: h})
		return nil
	}, jsonList(missing))
}

// Languages returns the counts of documents by language. The key "" is for documents whose
// language is unknown. Languages counts once for each commit.
func (s *Snapshot) Languages(ctx context.Context) (map[string]int64, error) {
	s.db.mu.Lock()
	langs, current := s.db.langs, s.db.state.Commit == s.State.Commit
	s.db.mu.Unlock()
	if langs != nil && current {
		return langs, nil
	}
	rows, err := s.tx.QueryContext(ctx, `SELECT lang, count(*) FROM docs GROUP BY lang`)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	langs = map[string]int64{}
	for rows.Next() {
		var l string
		var n int64
		if err := rows.Scan(&l, &n); err != nil {
			return nil, err
		}
		langs[l] = n
	}
	if err := rows.Err(); err != nil {
		return nil, err
	}
	s.db.mu.Lock()
	if s.db.state.Commit == s.State.Commit {
		s.db.langs = langs
	}
	s.db.mu.Unlock()
	return langs, nil
}

// Links holds a page and the files that its front matter names (relevant_files).
type Links struct {
	Path  string
	Files []string
}

// maxLinkingPages limits how many pages with relevant_files are read.
const maxLinkingPages = 5000

// Links returns the pages that name files. It reads them once for each View.
func (s *Snapshot) Links(ctx context.Context) ([]Links, error) {
	v := s.View
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.known {
		return v.links, nil
	}
	links, err := s.readLinks(ctx)
	if err == nil {
		v.links, v.known = links, true
	}
	return links, err
}

func (s *Snapshot) readLinks(ctx context.Context) (links []Links, err error) {
	rows, err := s.tx.QueryContext(ctx, `SELECT id, path, files, link FROM docs WHERE files <> '' ORDER BY path LIMIT ?`, maxLinkingPages)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	for rows.Next() {
		var l Links
		var files string
		var id, sum int64
		if err := rows.Scan(&id, &l.Path, &files, &sum); err != nil {
			return nil, err
		}
		if err := linkFields(id, l.Path, files).check(sum, nil, "document", id); err != nil {
			return nil, err
		}
		l.Files = strings.Split(files, "\n")
		links = append(links, l)
	}
	return links, rows.Err()
}

// HasPath reports whether a document has this path.
func (s *Snapshot) HasPath(ctx context.Context, path string) (has bool, err error) {
	err = s.tx.QueryRowContext(ctx, `SELECT EXISTS (SELECT 1 FROM docs WHERE path = ?)`, path).Scan(&has)
	return has, err
}

// UnreadPaths lists paths of documents that the source could not read, sorted. most is the
// maximum number of paths.
func (s *Snapshot) UnreadPaths(ctx context.Context, most int) ([]space.Path, error) {
	return readPaths(ctx, s.tx, `SELECT path FROM docs WHERE blob = '' ORDER BY path LIMIT ?`, most)
}

// UnreadPaths lists paths of documents that the source could not read, chosen at random. most
// is the maximum number of paths.
func (d *Database) UnreadPaths(ctx context.Context, most int) ([]space.Path, error) {
	return readPaths(ctx, d.read, `SELECT path FROM docs WHERE blob = '' ORDER BY random() LIMIT ?`, most)
}

func readPaths(ctx context.Context, q queryer, statement string, most int) (paths []space.Path, err error) {
	rows, err := q.QueryContext(ctx, statement, most)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	for rows.Next() {
		var p space.Path
		if err := rows.Scan(&p); err != nil {
			return nil, err
		}
		paths = append(paths, p)
	}
	return paths, rows.Err()
}
