package semantic

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// Forget removes a collection's vectors from a directory that no Engine has open, for example
// after the model was switched off. The cache does not contain the names of collections. So
// Forget keeps only the vectors that other collections use: any other vector may come from an
// interrupted run of this collection.
func Forget(ctx context.Context, dir, name string) error {
	if _, err := os.Stat(dir); err != nil {
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		return fmt.Errorf("forget vectors: %w", err)
	}
	all, err := os.ReadDir(dir)
	if err != nil {
		return fmt.Errorf("forget vectors: %w", err)
	}
	var others []string
	for _, f := range all {
		file := filepath.Join(dir, f.Name())
		isVec, isNew := strings.HasSuffix(f.Name(), ".vec"), strings.HasPrefix(f.Name(), "new-") && strings.HasSuffix(f.Name(), ".tmp")
		switch {
		case isVec && !strings.HasPrefix(f.Name(), name+"."):
			others = append(others, file)
		case isVec, isNew:
			if err := os.Remove(file); err != nil && !errors.Is(err, fs.ErrNotExist) {
				return fmt.Errorf("forget vectors: %w", err)
			}
		}
	}
	file := filepath.Join(dir, "cache.db")
	if _, err := os.Stat(file); errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	c, err := openCache(ctx, file, 0)
	if err != nil {
		return err
	}
	err = c.keepOnly(ctx, func(keep func([]textHash) error) error {
		for _, f := range others {
			m, err := openMatrix(f)
			if err != nil { // the next Engine creates it again
				continue
			}
			err = keep(m.hashes)
			m.retire(false)
			if err != nil {
				return err
			}
		}
		return nil
	})
	return errors.Join(err, c.close())
}

// keepOnly calls tell, which passes hashes of texts to the function keep. It removes the vectors
// of all other texts.
func (c *cache) keepOnly(ctx context.Context, tell func(keep func([]textHash) error) error) error {
	tx, err := c.db.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	defer tx.Rollback()
	if _, err := tx.ExecContext(ctx, `CREATE TEMP TABLE held(hash BLOB PRIMARY KEY) WITHOUT ROWID`); err != nil {
		return err
	}
	err = tell(func(hashes []textHash) error {
		for _, h := range hashes {
			if _, err := tx.ExecContext(ctx, `INSERT OR IGNORE INTO held(hash) VALUES(?)`, h[:]); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return err
	}
	for _, q := range []string{`DELETE FROM vectors WHERE hash NOT IN (SELECT hash FROM held)`, `DROP TABLE held`} {
		if _, err := tx.ExecContext(ctx, q); err != nil {
			return err
		}
	}
	return tx.Commit()
}
