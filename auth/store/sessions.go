package store

import (
	"context"
	"crypto/subtle"
	"database/sql"
	"errors"
	"fmt"
	"time"

	"gorm.io/gorm"

	"satchel/auth"
	"satchel/internal/database"
	"satchel/internal/fault"
	"satchel/internal/space"
)

// maxSessions is the maximum number of sessions of one user. A new session ends the one with
// the oldest visit.
const maxSessions = 100

// Session is a browser in which a user signed in.
type Session struct {
	ID   string // identifies the session in lists; not secret
	User space.UserID
	// Method is how the person signed in: "link", "mail", "passkey", "github", "oidc" or
	// "invitation".
	Method         string
	Agent, Address string // the browser's, at sign-in; may be empty
	// Seen is the last visit. In the result of CheckSession, it is the visit before the current
	// one.
	Created, Seen time.Time
	Expires       time.Time // the latest possible end
}

// NewSession is the input of StartSession.
type NewSession struct {
	User                   space.UserID
	Method, Agent, Address string
	// Replaces is the secret of the browser's former session, which ends. Any other text
	// has no effect.
	Replaces string
}

type sessionRow struct {
	ID                     string `gorm:"primaryKey"`
	Hash                   []byte
	UserID                 string
	Method, Agent, Address string
	Created, Seen, Expires int64
}

func (sessionRow) TableName() string { return "auth_sessions" }

func (r sessionRow) session() Session {
	return Session{
		ID: r.ID, User: space.UserID(r.UserID), Method: r.Method, Agent: r.Agent, Address: r.Address,
		Created: database.Time(r.Created), Seen: database.Time(r.Seen), Expires: database.Time(r.Expires),
	}
}

func errSignedOut() error {
	return fault.New(fault.Unauthenticated, "You are no longer signed in here; sign in again.")
}

// StartSession creates a session after a sign-in. The secret is always fresh, to prevent
// session fixation. The error is a fault.NotFound if there is no such user, and a
// fault.Forbidden if they are suspended.
func (s *Store) StartSession(ctx context.Context, n NewSession) (auth.Secret, Session, error) {
	now := s.now()
	secret := auth.NewSecret(auth.KindSession)
	row := sessionRow{
		ID: newID("ss_"), Hash: hashOf(secret), UserID: string(n.User), Method: clean(n.Method, 20), Agent: clean(n.Agent, 200), Address: clean(n.Address, 64),
		Created: database.Millis(now), Seen: database.Millis(now), Expires: database.Millis(now.Add(s.o.SessionLifetime)),
	}
	err := s.db.Transact(ctx, func(tx *gorm.DB) error {
		if _, err := s.lockActive(tx, n.User); err != nil {
			return err
		}
		if hash, ok := parseHash(auth.KindSession, n.Replaces); ok {
			if err := s.endSessions(tx, Actor{User: n.User, Via: "web"}, "hash = ?", hash); err != nil {
				return err
			}
		}
		if err := tx.Create(&row).Error; err != nil {
			return fmt.Errorf("start session: %w", err)
		}
		err := s.endSessions(tx, Actor{User: n.User, Via: "web"}, `user_id = ? AND id <> ? AND id NOT IN
			(SELECT id FROM auth_sessions WHERE user_id = ? AND id <> ? ORDER BY seen DESC, created DESC, id LIMIT ?)`,
			row.UserID, row.ID, row.UserID, row.ID, maxSessions-1)
		if err != nil {
			return err
		}
		return s.record(tx, Actor{User: n.User, Via: "web"}, "session.start", row.ID,
			map[string]any{"user": n.User, "method": row.Method, "address": row.Address, "agent": row.Agent})
	})
	if err != nil {
		return auth.Secret{}, Session{}, err
	}
	return secret, row.session(), nil
}

const sessionQuery = `SELECT t.id, t.hash, t.user_id, t.method, t.agent, t.address, t.created, t.seen, t.expires,
	u.id, u.issuer, u.subject, u.name, u.display, u.email, u.admin, u.created, u.removed, u.admitted, u.suspended
FROM auth_sessions t JOIN auth_users u ON u.id = t.user_id WHERE t.hash = ?`

// CheckSession returns the session of a secret and its user, with one query, and records
// the visit. The error is a fault.Unauthenticated if the session is unknown, has ended or
// expired, or was idle for too long, or if its user was removed or suspended.
func (s *Store) CheckSession(ctx context.Context, secret string) (User, Session, error) {
	hash, ok := parseHash(auth.KindSession, secret)
	if !ok {
		return User{}, Session{}, errSignedOut()
	}
	var r sessionRow
	var u userRow
	err := s.row(ctx, sessionQuery, hash, sessionColumns(&r, &u)...)
	switch {
	case errors.Is(err, sql.ErrNoRows):
		return User{}, Session{}, errSignedOut()
	case err != nil && ctx.Err() != nil:
		return User{}, Session{}, fault.Wrap(errors.Join(ctx.Err(), err), fault.Canceled, "The request ended.")
	case err != nil:
		return User{}, Session{}, fault.Wrap(err, fault.Unavailable, "The server cannot check who you are now; try again.")
	}
	now := s.now()
	if !s.sessionGood(r, u, hash, now) {
		return User{}, Session{}, errSignedOut()
	}
	r.Seen = s.lastSeen(r.ID, r.Seen)
	s.markSeen(r.ID, now)
	return u.user(), r.session(), nil
}

// sessionColumns returns the destinations of the columns of sessionQuery.
func sessionColumns(r *sessionRow, u *userRow) []any {
	return []any{
		&r.ID, &r.Hash, &r.UserID, &r.Method, &r.Agent, &r.Address, &r.Created, &r.Seen, &r.Expires,
		&u.ID, &u.Issuer, &u.Subject, &u.Name, &u.Display, &u.Email, &u.Admin, &u.Created, &u.Removed, &u.Admitted, &u.Suspended,
	}
}

func (s *Store) sessionGood(r sessionRow, u userRow, hash []byte, now time.Time) bool {
	at := now.UnixMilli()
	return subtle.ConstantTimeCompare(r.Hash, hash) == 1 && u.Removed == 0 && u.Suspended == 0 && at < r.Expires &&
		at < s.lastSeen(r.ID, r.Seen)+s.o.SessionIdle.Milliseconds()
}

// RotateSession gives a session a fresh secret after its rights changed. The old secret
// stops working. The errors are those of CheckSession.
func (s *Store) RotateSession(ctx context.Context, secret string) (auth.Secret, error) {
	hash, ok := parseHash(auth.KindSession, secret)
	if !ok {
		return auth.Secret{}, errSignedOut()
	}
	fresh := auth.NewSecret(auth.KindSession)
	err := s.db.Transact(ctx, func(tx *gorm.DB) error {
		var r sessionRow
		var u userRow
		err := tx.Raw(sessionQuery, hash).Row().Scan(sessionColumns(&r, &u)...)
		if errors.Is(err, sql.ErrNoRows) {
			return errSignedOut()
		}
		if err != nil {
			return fmt.Errorf("look up session: %w", err)
		}
		if !s.sessionGood(r, u, hash, s.now()) {
			return errSignedOut()
		}
		done := tx.Exec("UPDATE auth_sessions SET hash = ? WHERE id = ? AND hash = ?", hashOf(fresh), r.ID, hash)
		if done.Error == nil && done.RowsAffected == 0 {
			return errSignedOut() // another request was faster
		}
		return wrap("rotate session", done.Error)
	})
	if err != nil {
		return auth.Secret{}, err
	}
	return fresh, nil
}

// Sessions returns the valid sessions of a user. Those with the latest visits come first.
func (s *Store) Sessions(ctx context.Context, user space.UserID) ([]Session, error) {
	now := s.now()
	var rows []sessionRow
	err := s.db.Read(ctx).Where("user_id = ? AND expires > ?", string(user), now.UnixMilli()).Order("seen DESC, created DESC, id").Find(&rows).Error
	if err != nil {
		return nil, fmt.Errorf("list sessions: %w", err)
	}
	out := make([]Session, 0, len(rows))
	for _, r := range rows {
		if r.Seen = s.lastSeen(r.ID, r.Seen); r.Seen+s.o.SessionIdle.Milliseconds() > now.UnixMilli() {
			out = append(out, r.session())
		}
	}
	return out, nil
}

// EndSession ends one session of a user at once. The error is a fault.NotFound if the user
// does not have the session.
func (s *Store) EndSession(ctx context.Context, by Actor, user space.UserID, id string) error {
	return s.db.Transact(ctx, func(tx *gorm.DB) error {
		n, err := s.countEnded(tx, by, "user_id = ? AND id = ?", lookup(user), lookup(id))
		if err == nil && n == 0 {
			return fault.New(fault.NotFound, "There is no such session.")
		}
		return err
	})
}

// EndOtherSessions ends all sessions of a user except the one with the id keep, and returns how
// many it ended.
func (s *Store) EndOtherSessions(ctx context.Context, by Actor, user space.UserID, keep string) (int, error) {
	n := 0
	err := s.db.Transact(ctx, func(tx *gorm.DB) (err error) {
		n, err = s.countEnded(tx, by, "user_id = ? AND id <> ?", lookup(user), lookup(keep))
		return err
	})
	return n, err
}

func (s *Store) endSessions(tx *gorm.DB, by Actor, where string, args ...any) error {
	_, err := s.countEnded(tx, by, where, args...)
	return err
}

// countEnded ends sessions, writes an audit entry for each, and returns how many it ended.
func (s *Store) countEnded(tx *gorm.DB, by Actor, where string, args ...any) (int, error) {
	var gone []sessionRow
	if err := s.lockSessions(tx, where, args...); err != nil {
		return 0, err
	}
	if err := tx.Raw("DELETE FROM auth_sessions WHERE "+where+" RETURNING id, user_id", args...).Scan(&gone).Error; err != nil {
		return 0, fmt.Errorf("end session: %w", err)
	}
	for _, r := range gone {
		if err := s.record(tx, by, "session.end", r.ID, map[string]any{"user": r.UserID}); err != nil {
			return 0, err
		}
	}
	return len(gone), nil
}

// lockSessions locks sessions in the order in which Flush updates them, to avoid a deadlock.
func (s *Store) lockSessions(tx *gorm.DB, where string, args ...any) error {
	if s.db.Kind() != database.Postgres {
		return nil
	}
	var ids []string
	return wrap("lock sessions", tx.Raw("SELECT id FROM auth_sessions WHERE "+where+" ORDER BY id FOR UPDATE", args...).Scan(&ids).Error)
}
