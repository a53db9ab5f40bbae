package database

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"strings"

	"gorm.io/gorm"

	"satchel/internal/fault"
)

// errDamaged marks damage that SQLite's check found.
var errDamaged = errors.New("the database is damaged")

func damaged(file string, err error) error {
	what := "it is damaged"
	if sqliteCode(err)&0xff == sqliteNotADB {
		what = "it is damaged, or is not a SQLite database"
	}
	return fault.Wrap(err, fault.Unavailable, "The database %s cannot be used: %s. %s", file, what, Restore(file))
}

// Restore returns the text that explains how to replace a damaged database with a copy.
func Restore(file string) string {
	return fmt.Sprintf("Stop Satchel, move %s away together with the -wal and -shm files beside it, and put a copy from your backup in its place.", filepath.Base(file))
}

// quickCheck reads the pages of a SQLite database until it finds a damaged one.
func quickCheck(ctx context.Context, db *gorm.DB) error {
	var said string
	if err := db.WithContext(ctx).Raw("PRAGMA quick_check(1)").Scan(&said).Error; err != nil {
		return err
	}
	if said != "ok" {
		return fmt.Errorf("%w: %s", errDamaged, said)
	}
	return nil
}

// The values of the argument how of CheckFile.
const (
	Quick    = "quick_check"     // checks every page
	Thorough = "integrity_check" // also compares indexes with their tables
)

// maxSaid is the maximum number of defects that CheckFile returns.
const maxSaid = 20

// CheckFile looks for damage in a SQLite file, which may be in use. It returns SQLite's
// messages, or none if it finds no damage. SQLite has no checksums, so it does not notice a
// changed letter within a text.
func CheckFile(ctx context.Context, file, how string) (said []string, err error) {
	abs, err := filepath.Abs(file)
	if err != nil {
		return nil, err
	}
	st, err := os.Stat(abs)
	if err != nil {
		return nil, err
	}
	if st.Size() == 0 {
		return []string{"the file is empty"}, nil
	}
	db, err := sql.Open("sqlite", sqliteDSN(abs, url.Values{"mode": {"rw"}, "_query_only": {"1"}, "_busy_timeout": {"5000"}}))
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	db.SetMaxOpenConns(1)
	rows, err := db.QueryContext(ctx, fmt.Sprintf("PRAGMA %s(%d)", how, maxSaid))
	if IsDamaged(err) {
		return []string{err.Error()}, nil
	}
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	for rows.Next() {
		var line string
		if err := rows.Scan(&line); err != nil {
			return nil, err
		}
		for s := range strings.SplitSeq(line, "\n") {
			if s != "ok" && !strings.HasPrefix(s, "***") { // a line with *** only names the database
				said = append(said, s)
			}
		}
	}
	if err = rows.Err(); IsDamaged(err) {
		return append(said, err.Error()), nil
	}
	return said, err
}

// CheckWrite checks whether the database can be written now. It does the smallest possible
// write.
func (d *DB) CheckWrite(ctx context.Context) error {
	return d.Transact(ctx, func(tx *gorm.DB) error {
		if d.kind == Postgres {
			var refused bool
			// Assigning a transaction id is a write. A standby refuses it.
			err := tx.Raw("SELECT current_setting('transaction_read_only')::bool OR pg_current_xact_id() IS NULL").Scan(&refused).Error
			if err == nil && refused {
				err = errors.New("the PostgreSQL server accepts no writes")
			}
			return err
		}
		var version int64
		if err := tx.Raw("PRAGMA user_version").Scan(&version).Error; err != nil {
			return err
		}
		return tx.Exec(fmt.Sprintf("PRAGMA user_version = %d", version)).Error
	})
}
