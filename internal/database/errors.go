package database

import (
	"errors"

	"github.com/jackc/pgx/v5/pgconn"
)

// Result codes of SQLite (https://www.sqlite.org/rescode.html).
const (
	sqliteBusy       = 5
	sqliteLocked     = 6
	sqliteCorrupt    = 11
	sqliteNotADB     = 26
	sqliteUnique     = 2067
	sqlitePrimaryKey = 1555
	sqliteForeignKey = 787
)

// sqliteCode returns the extended result code of err or an error that it wraps, or 0.
func sqliteCode(err error) int {
	var e interface{ Code() int }
	if errors.As(err, &e) {
		return e.Code()
	}
	return 0
}

// pgCode returns the SQLSTATE of err or an error that it wraps, or "".
func pgCode(err error) string {
	var e *pgconn.PgError
	if errors.As(err, &e) {
		return e.Code
	}
	return ""
}

// IsDuplicate reports whether err says that a row with the same unique key exists.
func IsDuplicate(err error) bool {
	c := sqliteCode(err)
	return c == sqliteUnique || c == sqlitePrimaryKey || pgCode(err) == "23505"
}

// IsOrphan reports whether err says that a row refers to a missing row.
func IsOrphan(err error) bool { return sqliteCode(err) == sqliteForeignKey || pgCode(err) == "23503" }

// IsDamaged reports whether err says that a SQLite file is damaged or is not a SQLite file.
func IsDamaged(err error) bool {
	c := sqliteCode(err) & 0xff
	return c == sqliteCorrupt || c == sqliteNotADB || errors.Is(err, errDamaged)
}

// isBusy reports whether another attempt may help. Either another process holds SQLite's
// file, or PostgreSQL could not serialize (40001), found a deadlock (40P01) or ran out of a
// resource such as connections (class 53).
func isBusy(err error) bool {
	if c := sqliteCode(err) & 0xff; c == sqliteBusy || c == sqliteLocked {
		return true
	}
	c := pgCode(err)
	return c == "40001" || c == "40P01" || len(c) == 5 && c[:2] == "53"
}
