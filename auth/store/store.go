package store

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"gorm.io/gorm"

	"satchel/internal/database"
	"satchel/internal/fault"
	"satchel/internal/seal"
	"satchel/internal/space"
)

// LocalIssuer is the issuer of users who have no identity at another issuer.
const LocalIssuer = "local"

// Defaults of Options.
const (
	DefaultFlush           = time.Minute
	DefaultSweep           = time.Hour
	DefaultAccessLifetime  = 7 * day
	DefaultRefreshLifetime = 90 * day
	DefaultRefreshReuse    = 15 * time.Minute
	DefaultCodeLifetime    = 2 * time.Minute
	DefaultSessionIdle     = 30 * day
	DefaultSessionLifetime = 180 * day
	DefaultMaxClients      = 10_000
	DefaultUnusedClient    = day
	DefaultIdleClient      = 90 * day
	DefaultMaxFlows        = 10_000
	DefaultKeepDeliveries  = 7 * day // GitHub redelivers for three days
	DefaultKeepApprovals   = 30 * day

	day = 24 * time.Hour
)

// Options configures a Store. A zero field means the default.
type Options struct {
	// Logger receives warnings, such as failures to write times of last use or to sweep. Nil
	// discards them.
	Logger *slog.Logger
	// Flush is the time between writes of the times of last use. Sweep is the time between
	// deletions of expired rows.
	Flush, Sweep time.Duration
	// Now is the clock; nil means time.Now.
	Now func() time.Time

	// TokenKey holds at least 32 secret bytes from which tokens are derived. Without it clients
	// get no tokens. After a change of the key, each client's access tokens and newest refresh
	// token stay valid.
	TokenKey []byte
	// AccessLifetime is how long an access token is valid. RefreshLifetime is how long a
	// refresh token is valid without a use.
	AccessLifetime, RefreshLifetime time.Duration
	// RefreshReuse is how long a used refresh token can be used again. A negative value
	// means never.
	RefreshReuse time.Duration
	CodeLifetime time.Duration
	// SessionIdle is how long a session lasts without a visit. SessionLifetime is the
	// maximum lifetime of a session.
	SessionIdle, SessionLifetime time.Duration
	// MaxClients is the maximum number of clients that registered themselves. UnusedClient
	// is how long such a client is kept if it never gets a token. IdleClient is how long one
	// without valid grants is kept after it last got a token.
	MaxClients               int
	UnusedClient, IdleClient time.Duration
	// MaxFlows is the maximum number of sign-ins in progress.
	MaxFlows int

	// Seal encrypts the secrets of the GitHub App. Without it, a server cannot have an App.
	Seal *seal.Box
	// KeepDeliveries is how long the ids of webhooks are kept. KeepApprovals is how long
	// requests for an approval are kept; see AskForApproval.
	KeepDeliveries, KeepApprovals time.Duration
}

func (o *Options) setDefaults() {
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	for _, d := range []struct {
		value     *time.Duration
		otherwise time.Duration
	}{
		{&o.Flush, DefaultFlush},
		{&o.Sweep, DefaultSweep},
		{&o.AccessLifetime, DefaultAccessLifetime},
		{&o.RefreshLifetime, DefaultRefreshLifetime},
		{&o.CodeLifetime, DefaultCodeLifetime},
		{&o.SessionIdle, DefaultSessionIdle},
		{&o.SessionLifetime, DefaultSessionLifetime},
		{&o.UnusedClient, DefaultUnusedClient},
		{&o.IdleClient, DefaultIdleClient},
		{&o.KeepDeliveries, DefaultKeepDeliveries},
		{&o.KeepApprovals, DefaultKeepApprovals},
	} {
		if *d.value <= 0 {
			*d.value = d.otherwise
		}
	}
	if o.RefreshReuse == 0 {
		o.RefreshReuse = DefaultRefreshReuse
	}
	if o.MaxClients <= 0 {
		o.MaxClients = DefaultMaxClients
	}
	if o.MaxFlows <= 0 {
		o.MaxFlows = DefaultMaxFlows
	}
}

// Store stores accounts in the tables auth_…. It is safe for concurrent use.
type Store struct {
	db  *database.DB
	log *slog.Logger
	now func() time.Time
	o   Options

	mu   sync.Mutex
	used map[space.GrantID]int64 // times of last use in milliseconds that are not written yet
	seen map[string]int64        // times of last visits in milliseconds that are not written yet

	prepared map[string]*sql.Stmt // prepared statements by query; see rows
	clients  clientCount

	stop context.CancelFunc
	done chan struct{}
}

// New returns a store on a database to which Migrations were applied. It starts the goroutine
// that writes times of last use and deletes expired rows. Close ends the goroutine.
func New(db *database.DB, o Options) *Store {
	o.setDefaults()
	ctx, stop := context.WithCancel(context.Background())
	s := &Store{
		db: db, log: o.Logger, now: o.Now, o: o,
		used: map[space.GrantID]int64{}, seen: map[string]int64{},
		prepared: map[string]*sql.Stmt{}, stop: stop, done: make(chan struct{}),
	}
	go s.work(ctx)
	return s
}

// work flushes and sweeps periodically, until ctx ends.
func (s *Store) work(ctx context.Context) {
	defer close(s.done)
	flush, sweep := time.NewTicker(s.o.Flush), time.NewTicker(s.o.Sweep)
	defer flush.Stop()
	defer sweep.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-flush.C:
			if err := s.Flush(ctx); err != nil && ctx.Err() == nil {
				s.log.WarnContext(ctx, "times of last use were not stored; they are kept for the next try", "error", err)
			}
		case <-sweep.C:
			if err := s.Sweep(ctx); err != nil && ctx.Err() == nil {
				s.log.WarnContext(ctx, "expired rows could not be deleted; they have no effect, and the next sweep deletes them", "error", err)
			}
		}
	}
}

// Close writes pending times of last use, and ends the store's goroutine. It does not close
// the database. It may be called more than once.
func (s *Store) Close() error {
	s.stop()
	<-s.done
	return errors.Join(s.Flush(context.Background()), s.closeStatements())
}

// Actor is the person or program that does something, for the audit log.
type Actor struct {
	User space.UserID // empty if the actor is not a user
	Via  string       // such as "command line", "web", "first run", "consent", "client"
}

// Entry is one entry of the audit log.
type Entry struct {
	ID      int64
	At      time.Time
	Actor   Actor
	Action  string // such as "user.create", "grant.revoke", "session.start"
	Subject string // the id of the object
	Detail  string // a JSON object; never a secret
}

// Record adds an entry of another package to the audit log. detail may be nil, and must not
// contain a secret.
func (s *Store) Record(ctx context.Context, by Actor, action, subject string, detail map[string]any) error {
	return s.db.Transact(ctx, func(tx *gorm.DB) error { return s.record(tx, by, action, subject, detail) })
}

// record adds an audit entry in the transaction of the operation.
func (s *Store) record(tx *gorm.DB, by Actor, action, subject string, detail map[string]any) error {
	text, err := json.Marshal(detail)
	if err != nil {
		return fmt.Errorf("audit %s: %w", action, err)
	}
	row := auditRow{At: database.Millis(s.now()), Actor: string(by.User), Via: by.Via, Action: action, Subject: subject, Detail: string(text)}
	if err := tx.Create(&row).Error; err != nil {
		return fmt.Errorf("audit %s: %w", action, err)
	}
	return nil
}

// FirstRun reports whether the server has never had a user.
func (s *Store) FirstRun(ctx context.Context) (bool, error) {
	var n int64
	if err := s.db.Read(ctx).Model(&userRow{}).Limit(1).Count(&n).Error; err != nil {
		return false, fmt.Errorf("count users: %w", err)
	}
	return n == 0, nil
}

// Stats returns the counts of users, spaces and keys.
func (s *Store) Stats(ctx context.Context) (Stats, error) {
	var st Stats
	err := s.db.Read(ctx).Raw(`SELECT
		(SELECT COUNT(*) FROM auth_users WHERE removed = 0) AS users,
		(SELECT COUNT(*) FROM auth_users WHERE removed = 0 AND admin) AS admins,
		(SELECT COUNT(*) FROM auth_spaces WHERE source = '') AS spaces,
		(SELECT COUNT(*) FROM auth_grants WHERE key_hash IS NOT NULL AND revoked = 0 AND (expires = 0 OR expires > ?)) AS keys`,
		database.Millis(s.now())).Scan(&st).Error
	if err != nil {
		return Stats{}, fmt.Errorf("count users: %w", err)
	}
	return st, nil
}

// MaxNameBytes is the maximum length of the names of users and spaces in bytes.
const MaxNameBytes = 64

// CheckName returns a fault.Invalid unless s is valid as the name of a user or a space: 1
// to 64 of a-z, 0-9, "-", "_" and ".", beginning with a letter or a digit. Such a name is
// one word in a shell, a URL and a file name.
func CheckName(s string) error {
	ok := s != "" && len(s) <= MaxNameBytes && s[0] != '-' && s[0] != '.' && s[0] != '_'
	for i := range len(s) {
		c := s[i]
		ok = ok && (c >= 'a' && c <= 'z' || c >= '0' && c <= '9' || c == '-' || c == '_' || c == '.')
	}
	if ok {
		return nil
	}
	if len(s) > MaxNameBytes {
		return fault.New(fault.Invalid, "A name has at most %d characters; this one has %d.", MaxNameBytes, len(s))
	}
	return fault.New(fault.Invalid, "%q is not a valid name. A name has lowercase letters, digits, - _ or . and begins with a letter or a digit.", s)
}

// checkLabel returns an error unless s is valid as a label: at most 200 bytes of printable
// characters.
func checkLabel(what, s string) error {
	if len(s) > 200 {
		return fault.New(fault.Invalid, "The %s has %d bytes, and 200 are allowed.", what, len(s))
	}
	if !printable(s) {
		return fault.New(fault.Invalid, "The %s has characters that cannot be displayed.", what)
	}
	return nil
}

// notFound turns gorm's error for a missing row into a fault, and wraps other errors.
func notFound(err error, format string, args ...any) error {
	if errors.Is(err, gorm.ErrRecordNotFound) {
		return fault.New(fault.NotFound, format, args...)
	}
	return fmt.Errorf("look up: %w", err)
}

// wrap adds a description of the attempt to an error. It returns nil for nil.
func wrap(what string, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%s: %w", what, err)
}
