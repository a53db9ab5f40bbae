package database

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"gorm.io/gorm"

	"satchel/internal/fault"
)

// Kind is the kind of database.
type Kind string

// The kinds of databases.
const (
	SQLite   Kind = "sqlite"
	Postgres Kind = "postgres"
)

// Defaults of Options.
const (
	DefaultReaders     = 4
	DefaultConns       = 10
	DefaultBusyTimeout = 10 * time.Second
	DefaultSlow        = 250 * time.Millisecond
)

// Options configures a DB.
type Options struct {
	// URL is "sqlite:PATH" or "postgres://user:password@host/name?…". A missing SQLite file
	// is created with mode 0600; its directory must exist. The parameters for PostgreSQL
	// are those of pgx. Behind a pooler that works per transaction, add
	// default_query_exec_mode=exec.
	URL string
	// Logger receives slow queries as warnings, and failed ones as debug records. The
	// records have placeholders instead of values. Nil discards them.
	Logger *slog.Logger
	// Readers is the maximum number of connections that read from SQLite, in addition to its
	// one writer. 0 means DefaultReaders.
	Readers int
	// Conns is the maximum number of connections to PostgreSQL. 0 means DefaultConns.
	Conns int
	// BusyTimeout is how long a SQLite transaction waits for a transaction of another process.
	// 0 means DefaultBusyTimeout.
	BusyTimeout time.Duration
	// Slow is the duration above which a query is logged. 0 means DefaultSlow.
	Slow time.Duration
}

// DB is an open database. It is safe for concurrent use.
type DB struct {
	kind        Kind
	write, read *gorm.DB // the same pool on PostgreSQL
	closers     []func() error
}

// Open opens the database, and connects to it once. It changes no table; see Migrate. The
// error is a fault.Invalid for a malformed URL, and a fault.Unavailable if the database
// cannot be reached. Neither error contains the URL's password.
func Open(ctx context.Context, o Options) (*DB, error) {
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	if o.Readers <= 0 {
		o.Readers = DefaultReaders
	}
	if o.Conns <= 0 {
		o.Conns = DefaultConns
	}
	if o.BusyTimeout <= 0 {
		o.BusyTimeout = DefaultBusyTimeout
	}
	if o.Slow <= 0 {
		o.Slow = DefaultSlow
	}
	src, err := parseURL(o.URL)
	if err != nil {
		return nil, err
	}
	if src.kind == SQLite {
		return openSQLite(ctx, src.path, o)
	}
	return openPostgres(ctx, src.url, o)
}

// Kind returns the kind of the database, for the few statements that differ.
func (d *DB) Kind() Kind { return d.kind }

// Read returns a handle only for queries, bound to ctx. On SQLite it refuses writes and
// never waits for a writer.
func (d *DB) Read(ctx context.Context) *gorm.DB { return d.read.WithContext(ctx) }

// Transact runs fn in one transaction. It commits if fn returns nil. If fn returns an error
// or panics, Transact rolls everything back, and returns the error or panics. All writes go
// through Transact. On SQLite, transactions run one after another, so fn must be short. fn
// must not call Transact, because the call would wait for itself.
//
// The error is that of fn, or a fault.Canceled if ctx has ended, or a fault.Unavailable if
// another program holds the database or if two transactions conflict and only another
// attempt helps.
func (d *DB) Transact(ctx context.Context, fn func(tx *gorm.DB) error) error {
	err := d.write.WithContext(ctx).Transaction(fn)
	if err == nil || fault.CodeOf(err) != fault.Internal {
		return err
	}
	if ctx.Err() != nil {
		return fault.Wrap(errors.Join(ctx.Err(), err), fault.Canceled, "The request ended before its change was stored; nothing was changed.")
	}
	if isBusy(err) {
		f := fault.Wrap(err, fault.Unavailable, "The database is busy; nothing was changed. Try again.")
		f.RetryAfter = time.Second
		return f
	}
	return err
}

// Ping connects to the database once, for a readiness check.
func (d *DB) Ping(ctx context.Context) error {
	var one int
	if err := d.Read(ctx).Raw("SELECT 1").Scan(&one).Error; err != nil {
		return fault.Wrap(err, fault.Unavailable, "The database does not answer.")
	}
	return nil
}

// Close ends all connections. It waits for queries that have begun.
func (d *DB) Close() error {
	var errs []error
	for _, c := range d.closers {
		errs = append(errs, c())
	}
	d.closers = nil
	if err := errors.Join(errs...); err != nil {
		return fmt.Errorf("close database: %w", err)
	}
	return nil
}

// Millis returns t in the form of stored rows: milliseconds since 1970, or 0 for the zero
// time.
func Millis(t time.Time) int64 {
	if t.IsZero() {
		return 0
	}
	return t.UnixMilli()
}

// Time returns the time for a result of Millis, in UTC.
func Time(ms int64) time.Time {
	if ms == 0 {
		return time.Time{}
	}
	return time.UnixMilli(ms).UTC()
}
