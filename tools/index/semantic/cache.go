package semantic

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"

	_ "modernc.org/sqlite" // the driver "sqlite"
)

// cache holds vectors by model and text, so that a text is not embedded again after a restart or
// a move of the text. It is a SQLite file of limited size in the directory of the vectors.
type cache struct {
	db       *sql.DB
	maxBytes int64
}

// cacheVersion must change when the tables or the format of packed rows change. A cache of
// another version is deleted.
const cacheVersion = 1

func openCache(ctx context.Context, file string, maxBytes int64) (*cache, error) {
	c, err := tryCache(ctx, file, maxBytes)
	if err == nil || ctx.Err() != nil {
		return c, err
	}
	for _, suffix := range []string{"", "-wal", "-shm", "-journal"} {
		os.Remove(file + suffix)
	}
	return tryCache(ctx, file, maxBytes)
}

func tryCache(ctx context.Context, file string, maxBytes int64) (_ *cache, err error) {
	// secure_delete overwrites deleted rows, so that the vectors of purged text do not stay in
	// free pages.
	dsn := "file:" + (&url.URL{Path: filepath.ToSlash(file)}).EscapedPath() +
		"?_pragma=busy_timeout(5000)&_pragma=journal_mode(wal)&_pragma=synchronous(normal)&_pragma=secure_delete(1)&_pragma=cache_size(-2048)&_txlock=immediate"
	f, err := os.OpenFile(file, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, fmt.Errorf("open the cache of vectors: %w", err)
	}
	f.Close()
	db, err := sql.Open("sqlite", dsn)
	if err != nil {
		return nil, err
	}
	db.SetMaxOpenConns(2)
	db.SetMaxIdleConns(2)
	defer func() {
		if err != nil {
			err = fmt.Errorf("open the cache of vectors: %w", errors.Join(err, db.Close()))
		}
	}()
	var version int
	if err := db.QueryRowContext(ctx, `PRAGMA user_version`).Scan(&version); err != nil {
		return nil, err
	}
	if version != 0 && version != cacheVersion {
		return nil, fmt.Errorf("it has version %d", version)
	}
	for _, q := range []string{
		`CREATE TABLE IF NOT EXISTS models(id INTEGER PRIMARY KEY, identity TEXT NOT NULL, dims INTEGER NOT NULL, UNIQUE(identity, dims))`,
		`CREATE TABLE IF NOT EXISTS vectors(model INTEGER NOT NULL, hash BLOB NOT NULL, row BLOB NOT NULL, used INTEGER NOT NULL, PRIMARY KEY(model, hash)) WITHOUT ROWID`,
		fmt.Sprintf(`PRAGMA user_version=%d`, cacheVersion),
	} {
		if _, err := db.ExecContext(ctx, q); err != nil {
			return nil, err
		}
	}
	return &cache{db, maxBytes}, nil
}

func (c *cache) close() error { return c.db.Close() }

// model returns the id under which the cache stores vectors of this identity and length.
func (c *cache) model(ctx context.Context, id Identity, dims int) (n int64, err error) {
	if _, err := c.db.ExecContext(ctx, `INSERT OR IGNORE INTO models(identity, dims) VALUES(?, ?)`, id.text(), dims); err != nil {
		return 0, err
	}
	err = c.db.QueryRowContext(ctx, `SELECT id FROM models WHERE identity = ? AND dims = ?`, id.text(), dims).Scan(&n)
	return n, err
}

// dims returns the length of the identity's newest vectors, or 0 if there are none.
func (c *cache) dims(ctx context.Context, id Identity) (dims int, err error) {
	err = c.db.QueryRowContext(ctx, `SELECT dims FROM models WHERE identity = ? ORDER BY id DESC LIMIT 1`, id.text()).Scan(&dims)
	if errors.Is(err, sql.ErrNoRows) {
		return 0, nil
	}
	return dims, err
}

// get returns a cached vector; ok is false if there is none.
func (c *cache) get(ctx context.Context, model int64, h textHash, dims int) (r row, ok bool, err error) {
	var b []byte
	err = c.db.QueryRowContext(ctx, `SELECT row FROM vectors WHERE model = ? AND hash = ?`, model, h[:]).Scan(&b)
	if errors.Is(err, sql.ErrNoRows) {
		return row{}, false, nil
	}
	if err != nil {
		return row{}, false, err
	}
	if r, err = unpackRow(b, dims); err != nil {
		return row{}, false, nil // damaged, so the text is embedded again
	}
	return r, true, nil
}

// has reports whether a vector is cached.
func (c *cache) has(ctx context.Context, model int64, h textHash) (bool, error) {
	var one int
	err := c.db.QueryRowContext(ctx, `SELECT 1 FROM vectors WHERE model = ? AND hash = ?`, model, h[:]).Scan(&one)
	if errors.Is(err, sql.ErrNoRows) {
		return false, nil
	}
	return err == nil, err
}

// put adds vectors in one transaction. day is the current day, in days since 1970. If the cache
// is too large, trim removes the vectors of the oldest days.
func (c *cache) put(ctx context.Context, model int64, hashes []textHash, rows []row, day int64) error {
	tx, err := c.db.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	defer tx.Rollback()
	var b []byte
	for i, h := range hashes {
		b = rows[i].append(b[:0])
		if _, err := tx.ExecContext(ctx, `INSERT OR REPLACE INTO vectors(model, hash, row, used) VALUES(?, ?, ?, ?)`, model, h[:], b, day); err != nil {
			return err
		}
	}
	return tx.Commit()
}

// remove removes the vectors of texts under every model.
func (c *cache) remove(ctx context.Context, hashes []textHash) error {
	tx, err := c.db.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	defer tx.Rollback()
	var models []int64
	rows, err := tx.QueryContext(ctx, `SELECT id FROM models`)
	if err != nil {
		return err
	}
	for rows.Next() {
		var m int64
		if err := rows.Scan(&m); err != nil {
			rows.Close()
			return err
		}
		models = append(models, m)
	}
	if err := errors.Join(rows.Err(), rows.Close()); err != nil {
		return err
	}
	for _, h := range hashes {
		for _, m := range models {
			if _, err := tx.ExecContext(ctx, `DELETE FROM vectors WHERE model = ? AND hash = ?`, m, h[:]); err != nil {
				return err
			}
		}
	}
	return tx.Commit()
}

// trim removes the oldest vectors if the file exceeds its limit.
func (c *cache) trim(ctx context.Context) error {
	var pages, free, size, n int64
	for q, into := range map[string]*int64{`PRAGMA page_count`: &pages, `PRAGMA freelist_count`: &free, `PRAGMA page_size`: &size} {
		if err := c.db.QueryRowContext(ctx, q).Scan(into); err != nil {
			return err
		}
	}
	used := (pages - free) * size
	if used <= c.maxBytes {
		return nil
	}
	if err := c.db.QueryRowContext(ctx, `SELECT count(*) FROM vectors`).Scan(&n); err != nil {
		return err
	}
	drop := int64(float64(n) * (1 - 0.9*float64(c.maxBytes)/float64(used)))
	_, err := c.db.ExecContext(ctx, `DELETE FROM vectors WHERE (model, hash) IN (SELECT model, hash FROM vectors ORDER BY used LIMIT ?)`, drop)
	return err
}
