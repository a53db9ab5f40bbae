package store

import (
	"context"
	"fmt"
	"time"

	"gorm.io/gorm"

	"satchel/auth"
)

const (
	// sweepBatch limits the number of rows that one statement deletes, so that other writers
	// never wait long.
	sweepBatch = 500
	// remembered is how long revoked or expired rows are kept, for lists and error messages.
	remembered = 90 * day
	// codesRemembered is how long an expired code is kept, to detect its reuse.
	codesRemembered = day
)

// Sweep deletes rows that are no longer needed, such as expired codes, tokens, flows, links,
// invitations and sessions, unused clients that registered themselves, and grants that ended
// 90 days ago. It changes nobody's rights. The store's goroutine calls it every Options.Sweep.
func (s *Store) Sweep(ctx context.Context) error {
	now := s.now()
	at := func(ago time.Duration) int64 { return now.Add(-ago).UnixMilli() }
	for _, t := range []struct {
		table, key, where string
		args              []any
	}{
		{"auth_flows", "hash", "expires <= ?", []any{at(0)}},
		{"auth_links", "hash", "expires <= ?", []any{at(0)}},
		// The notice of a used link stays, like an entry of the audit log.
		{"auth_link_notices", "id", "state = 1 AND expires <= ?", []any{at(remembered)}},
		{"auth_sessions", "id", "expires <= ?", []any{at(0)}},
		{"auth_codes", "hash", "expires <= ?", []any{at(codesRemembered)}},
		// Keep the rows from which mayRepeat reads when a generation began.
		{"auth_tokens", "hash", "expires <= ? AND created <= ?", []any{at(0), at(s.reuseWindow())}},
		{"auth_families", "grant_id", "expires <= ?", []any{at(0)}},
		{"auth_invitations", "id", "expires <= ?", []any{at(remembered)}},
		{"auth_github_deliveries", "id", "seen <= ?", []any{at(s.o.KeepDeliveries)}},
		{"auth_github_requests", "space_id", "created <= ?", []any{at(s.o.KeepApprovals)}},
	} {
		stmt := fmt.Sprintf("DELETE FROM %s WHERE %s IN (SELECT %[2]s FROM %[1]s WHERE %[3]s LIMIT %d)", t.table, t.key, t.where, sweepBatch)
		err := s.inBatches(ctx, func(tx *gorm.DB) (int64, error) {
			done := tx.Exec(stmt, t.args...)
			return done.RowsAffected, wrap("sweep "+t.table, done.Error)
		})
		if err != nil {
			return err
		}
	}
	// Write the pending visits first, so that no recently visited session is deleted.
	if err := s.Flush(ctx); err != nil {
		return err
	}
	for _, sweep := range []func(*gorm.DB, time.Time, int) (int64, error){s.sweepIdle, s.sweepGrants, s.sweepClients} {
		err := s.inBatches(ctx, func(tx *gorm.DB) (int64, error) { return sweep(tx, now, sweepBatch) })
		if err != nil {
			return err
		}
	}
	return s.db.Transact(ctx, func(tx *gorm.DB) error { return sweepKeys(tx, now) })
}

// inBatches calls do in successive transactions, until one of them deletes less than a full
// batch.
func (s *Store) inBatches(ctx context.Context, do func(tx *gorm.DB) (int64, error)) error {
	for {
		var n int64
		err := s.db.Transact(ctx, func(tx *gorm.DB) (err error) {
			n, err = do(tx)
			return err
		})
		if err != nil || n < sweepBatch {
			return err
		}
	}
}

func (s *Store) sweepIdle(tx *gorm.DB, now time.Time, n int) (int64, error) {
	done := tx.Exec("DELETE FROM auth_sessions WHERE id IN (SELECT id FROM auth_sessions WHERE seen <= ? LIMIT ?)", now.Add(-s.o.SessionIdle).UnixMilli(), n)
	return done.RowsAffected, wrap("sweep idle sessions", done.Error)
}

// sweepGrants deletes grants that were revoked long ago, and OAuth grants that expired long
// ago. A revoked grant of another issuer's client stays, because its row keeps the client out.
func (s *Store) sweepGrants(tx *gorm.DB, now time.Time, n int) (int64, error) {
	before := now.Add(-remembered).UnixMilli()
	// The query uses UNION ALL, because SQLite scans all grants for UNION.
	var ids []string
	err := tx.Raw(`SELECT id FROM auth_grants WHERE revoked <> 0 AND revoked <= ? AND kind <> 'external'
		UNION ALL SELECT id FROM auth_grants WHERE kind = 'oauth' AND expires <= ? LIMIT ?`, before, before, n).Scan(&ids).Error
	if err != nil || len(ids) == 0 {
		return 0, wrap("sweep grants", err)
	}
	for _, stmt := range []string{
		"DELETE FROM auth_tokens WHERE grant_id IN ?",
		"DELETE FROM auth_families WHERE grant_id IN ?",
		"DELETE FROM auth_grants WHERE id IN ?",
	} {
		if err := tx.Exec(stmt, ids).Error; err != nil {
			return 0, fmt.Errorf("sweep grants: %w", err)
		}
	}
	return int64(len(ids)), nil
}

// sweepClients deletes clients that registered themselves, have no valid grant, and never got a
// token or last got one a long time ago.
func (s *Store) sweepClients(tx *gorm.DB, now time.Time, n int) (int64, error) {
	var gone int64
	// There are two statements, so that each uses an index.
	for _, old := range []struct {
		where string
		at    time.Time
	}{
		{"c.last_used = 0 AND c.created <= ?", now.Add(-s.o.UnusedClient)},
		{"c.last_used > 0 AND c.last_used <= ?", now.Add(-s.o.IdleClient)},
	} {
		done := tx.Exec(`DELETE FROM auth_clients WHERE id IN (
			SELECT c.id FROM auth_clients c WHERE c.kind = ? AND `+old.where+`
			AND NOT EXISTS (SELECT 1 FROM auth_grants g WHERE g.client_id = c.id AND g.client_id <> '' AND g.kind = 'oauth' AND g.revoked = 0 AND g.expires > ?)
			AND NOT EXISTS (SELECT 1 FROM auth_codes a WHERE a.client_id = c.id AND a.used = 0 AND a.expires > ?)
			LIMIT ?)`, string(auth.ClientRegistered), old.at.UnixMilli(), now.UnixMilli(), now.UnixMilli(), n)
		if done.Error != nil {
			return 0, fmt.Errorf("sweep clients: %w", done.Error)
		}
		gone = max(gone, done.RowsAffected)
	}
	return gone, nil
}

// sweepKeys deletes the salts that no family needs, except the newest salt. It keeps an unused
// salt for a day, for tokens of the previous generation.
func sweepKeys(tx *gorm.DB, now time.Time) error {
	const idle = "id < (SELECT MAX(id) FROM auth_token_keys) AND NOT EXISTS (SELECT 1 FROM auth_families f WHERE f.key_id = auth_token_keys.id)"
	if err := tx.Exec("DELETE FROM auth_token_keys WHERE idle <> 0 AND idle <= ? AND "+idle, now.Add(-day).UnixMilli()).Error; err != nil {
		return fmt.Errorf("sweep token keys: %w", err)
	}
	return wrap("sweep token keys", tx.Exec("UPDATE auth_token_keys SET idle = ? WHERE idle = 0 AND "+idle, now.UnixMilli()).Error)
}
