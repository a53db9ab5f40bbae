package database

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/stdlib"
	"gorm.io/driver/postgres"
	"gorm.io/driver/sqlite"
	"gorm.io/gorm"
	_ "modernc.org/sqlite" // the driver "sqlite": SQLite in pure Go

	"satchel/internal/fault"
)

type source struct {
	kind Kind
	path string // of a SQLite file
	url  string // of a PostgreSQL database
}

// SQLitePath returns the file of a SQLite URL. ok is false for any other URL.
func SQLitePath(u string) (path string, ok bool) {
	src, err := parseURL(u)
	return src.path, err == nil && src.kind == SQLite
}

func parseURL(s string) (source, error) {
	scheme, rest, ok := strings.Cut(s, ":")
	switch {
	case ok && scheme == "sqlite":
		// sqlite:/abs, sqlite:rel and sqlite:///abs are all in use.
		path := rest
		if after, cut := strings.CutPrefix(rest, "//"); cut {
			path = after
		}
		if path == "" || strings.ContainsRune(path, 0) {
			return source{}, fault.New(fault.Invalid, "The database URL names no file; write sqlite:/path/to/satchel.db.")
		}
		return source{kind: SQLite, path: path}, nil
	case ok && (scheme == "postgres" || scheme == "postgresql"):
		// The errors of url.Parse and of pgx may quote the URL, so they are not returned.
		if u, err := url.Parse(s); err != nil || u.Host == "" && u.Query().Get("host") == "" {
			return source{}, fault.New(fault.Invalid, "The database URL is malformed; write postgres://user:password@host/name.")
		}
		if _, err := pgx.ParseConfig(s); err != nil {
			return source{}, fault.New(fault.Invalid, "The database URL has a parameter that PostgreSQL's driver refuses; write postgres://user:password@host/name.")
		}
		return source{kind: Postgres, url: s}, nil
	}
	return source{}, fault.New(fault.Invalid, "The database URL must begin with sqlite: or postgres://.")
}

func (o Options) gorm() *gorm.Config {
	return &gorm.Config{
		Logger: &queryLog{log: o.Logger, slow: o.Slow},
		// All writes go through Transact, so gorm need not open transactions itself.
		SkipDefaultTransaction: true,
		// gorm's cache of prepared statements starts a goroutine that never ends. pgx has
		// its own cache, and SQLite prepares in microseconds.
		PrepareStmt: false,
		// Satchel's own migrations create the tables. gorm's migrations are not used.
		DisableForeignKeyConstraintWhenMigrating: true,
		DisableAutomaticPing:                     true,
	}
}

func openSQLite(ctx context.Context, path string, o Options) (*DB, error) {
	abs, err := filepath.Abs(path)
	if err != nil {
		abs = path
	}
	unavailable := func(err error) error {
		if IsDamaged(err) {
			return damaged(abs, err)
		}
		return fault.Wrap(err, fault.Unavailable, "The database %s cannot be used: %s.", abs, sqliteHint(err))
	}
	if err != nil {
		return nil, unavailable(err)
	}
	// SQLite would create the file readable by all. The journal gets the mode of the file.
	f, err := os.OpenFile(abs, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, unavailable(err)
	}
	f.Close()

	d := &DB{kind: SQLite}
	pool := func(conns int, params url.Values) (*gorm.DB, error) {
		for k, v := range map[string]string{
			"_busy_timeout": fmt.Sprint(o.BusyTimeout.Milliseconds()),
			"_foreign_keys": "1",
			"_synchronous":  "FULL",
			"_defensive":    "1",
			"_dqs":          "0",
		} {
			params.Set(k, v)
		}
		db, err := sql.Open("sqlite", sqliteDSN(abs, params))
		if err != nil {
			return nil, err
		}
		d.closers = append(d.closers, db.Close)
		db.SetMaxOpenConns(conns)
		db.SetMaxIdleConns(conns)
		if err := db.PingContext(ctx); err != nil {
			return nil, err
		}
		return gorm.Open(sqlite.New(sqlite.Config{Conn: db}), o.gorm())
	}
	// The writer comes first, because only it can switch the file to WAL.
	d.write, err = pool(1, url.Values{"_txlock": {"immediate"}, "_journal_mode": {"WAL"}})
	if err == nil {
		// Check before the first write, because a write could spread damage.
		err = quickCheck(ctx, d.write)
	}
	if err == nil {
		d.read, err = pool(o.Readers, url.Values{"_query_only": {"1"}})
	}
	if err != nil {
		return nil, errors.Join(unavailable(err), d.Close())
	}
	return d, nil
}

// sqliteDSN returns a file: URI in which no byte of the path looks like a parameter.
func sqliteDSN(abs string, params url.Values) string {
	p := filepath.ToSlash(abs)
	if !strings.HasPrefix(p, "/") {
		p = "/" + p // for C:/… on Windows
	}
	return (&url.URL{Scheme: "file", Path: p, RawQuery: params.Encode()}).String()
}

func sqliteHint(err error) string {
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return "its directory does not exist"
	case errors.Is(err, fs.ErrPermission):
		return "this user may not write it"
	case errors.Is(err, syscall.EISDIR):
		return "it is a directory"
	case errors.Is(err, syscall.EROFS):
		return "its disk is mounted read-only"
	case isBusy(err):
		return "another program holds it"
	}
	return "the log has the details"
}

func openPostgres(ctx context.Context, u string, o Options) (*DB, error) {
	cfg, err := pgx.ParseConfig(u)
	if err != nil {
		return nil, fault.New(fault.Invalid, "The database URL is malformed.")
	}
	if cfg.ConnectTimeout == 0 {
		cfg.ConnectTimeout = 10 * time.Second
	}
	db := stdlib.OpenDB(*cfg)
	d := &DB{kind: Postgres, closers: []func() error{db.Close}}
	db.SetMaxOpenConns(o.Conns)
	db.SetMaxIdleConns(o.Conns)
	db.SetConnMaxIdleTime(5 * time.Minute)
	err = db.PingContext(ctx)
	if err == nil {
		d.write, err = gorm.Open(postgres.New(postgres.Config{Conn: db}), o.gorm())
	}
	if err != nil {
		return nil, errors.Join(fault.Wrap(err, fault.Unavailable,
			"The PostgreSQL server at %s cannot be reached, or refuses the user or the database of the URL.", cfg.Host), d.Close())
	}
	d.read = d.write
	return d, nil
}
