package store

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"gorm.io/gorm"

	"satchel/auth"
	"satchel/internal/database"
	"satchel/internal/space"
)

// GrantInfo is a grant with the names that people see.
type GrantInfo struct {
	space.Grant
	Kind      string // "key", "oauth" or "external"
	Client    string // the client's id; empty for a key
	Issuer    string // set for an external client
	SpaceName string
}

// Stdio reports whether "satchel stdio" created the key for one run.
func (g GrantInfo) Stdio() bool {
	return g.Kind == "key" && strings.HasPrefix(g.Name, auth.StdioKey)
}

// Grants returns a user's grants of all kinds that are neither revoked nor expired, newest
// first.
func (s *Store) Grants(ctx context.Context, user space.UserID) ([]GrantInfo, error) {
	var rows []struct {
		Row       grantRow `gorm:"embedded"`
		SpaceName string
	}
	err := s.db.Read(ctx).Raw(`SELECT g.*, s.name AS space_name FROM auth_grants g JOIN auth_spaces s ON s.id = g.space_id
		WHERE g.user_id = ? AND g.revoked = 0 AND (g.expires = 0 OR g.expires > ?) ORDER BY g.created DESC, g.id`,
		string(user), s.now().UnixMilli()).Scan(&rows).Error
	if err != nil {
		return nil, fmt.Errorf("list grants: %w", err)
	}
	out := make([]GrantInfo, len(rows))
	for i, r := range rows {
		r.Row.LastUsed = s.lastUsed(space.GrantID(r.Row.ID), r.Row.LastUsed)
		out[i] = GrantInfo{Grant: r.Row.grant(), Kind: r.Row.Kind, Client: r.Row.ClientID, Issuer: r.Row.Issuer, SpaceName: r.SpaceName}
	}
	return out, nil
}

// EverUsed reports whether a grant of the user was ever used. It also counts ended grants
// that were not swept yet.
func (s *Store) EverUsed(ctx context.Context, user space.UserID) (bool, error) {
	var used []string
	err := s.db.Read(ctx).Raw("SELECT id FROM auth_grants WHERE user_id = ? AND last_used > 0 LIMIT 1", string(user)).Scan(&used).Error
	if err != nil || len(used) > 0 {
		return len(used) > 0, wrap("find a used grant", err)
	}
	// A recent use may be only in memory.
	var ids []string
	if err := s.db.Read(ctx).Raw("SELECT id FROM auth_grants WHERE user_id = ?", string(user)).Scan(&ids).Error; err != nil {
		return false, fmt.Errorf("list grants: %w", err)
	}
	return slices.ContainsFunc(ids, func(id string) bool { return s.lastUsed(space.GrantID(id), 0) > 0 }), nil
}

// lastKeysRead is the maximum number of keys that LastKeys reads, newest first.
const lastKeysRead = 200

// LastKeys returns the used keys of a user whose names begin with prefix. For each name and
// space, it returns only the key that was used last. It also returns ended keys that were not
// swept yet.
func (s *Store) LastKeys(ctx context.Context, user space.UserID, prefix string) ([]GrantInfo, error) {
	var rows []struct {
		Row       grantRow `gorm:"embedded"`
		SpaceName string
	}
	err := s.db.Read(ctx).Raw(`SELECT g.*, s.name AS space_name FROM auth_grants g JOIN auth_spaces s ON s.id = g.space_id
		WHERE g.user_id = ? AND g.kind = 'key' AND SUBSTR(g.name, 1, ?) = ? ORDER BY g.created DESC, g.id LIMIT ?`,
		string(user), len(prefix), prefix, lastKeysRead).Scan(&rows).Error
	if err != nil {
		return nil, fmt.Errorf("list keys by their names: %w", err)
	}
	type of struct{ name, space string }
	last := map[of]int{}
	var out []GrantInfo
	for _, r := range rows {
		if r.Row.LastUsed = s.lastUsed(space.GrantID(r.Row.ID), r.Row.LastUsed); r.Row.LastUsed == 0 {
			continue
		}
		g := GrantInfo{Grant: r.Row.grant(), Kind: r.Row.Kind, SpaceName: r.SpaceName}
		key := of{r.Row.Name, r.Row.SpaceID}
		switch i, ok := last[key]; {
		case !ok:
			last[key] = len(out)
			out = append(out, g)
		case g.LastUsed.After(out[i].LastUsed):
			out[i] = g
		}
	}
	return out, nil
}

// RevokeGrant ends a grant of any kind at once. A second call changes nothing. The error is a
// fault.NotFound if there is no such grant, or if user is not empty and the grant is not theirs.
func (s *Store) RevokeGrant(ctx context.Context, by Actor, id space.GrantID, user space.UserID) error {
	return s.db.Transact(ctx, func(tx *gorm.DB) error {
		q := tx.Where("id = ?", lookup(id))
		if user != "" {
			q = q.Where("user_id = ?", string(user))
		}
		var g grantRow
		if err := q.Take(&g).Error; err != nil {
			return notFound(err, "There is no such grant.")
		}
		_, err := s.endGrant(tx, by, g)
		return err
	})
}

// endGrant revokes one grant, and writes an audit entry. It returns false if the grant was
// already revoked.
func (s *Store) endGrant(tx *gorm.DB, by Actor, g grantRow) (bool, error) {
	n, err := s.revokeGrants(tx, "id = ?", g.ID)
	if err != nil || n == 0 {
		return false, err
	}
	action, detail := "grant.revoke", map[string]any{"user": g.UserID, "name": g.Name, "client": clean(g.ClientID, 200)}
	if g.Kind == "key" {
		action, detail = "key.revoke", map[string]any{"user": g.UserID, "name": g.Name}
	}
	return true, s.record(tx, by, action, g.ID, detail)
}

// revokeGrants revokes grants, and returns how many of them were not revoked before. It keeps
// the rows of their tokens, so that the error can say why a token no longer works.
func (s *Store) revokeGrants(tx *gorm.DB, where string, args ...any) (int64, error) {
	set := "UPDATE auth_grants SET revoked = ? WHERE revoked = 0 AND " + where
	if s.db.Kind() == database.Postgres {
		// Lock the rows in the same order as Flush, to avoid a deadlock.
		set = "UPDATE auth_grants SET revoked = ? WHERE id IN (SELECT id FROM auth_grants WHERE revoked = 0 AND " + where + " ORDER BY id FOR UPDATE)"
	}
	done := tx.Exec(set, append([]any{s.now().UnixMilli()}, args...)...)
	if done.Error != nil {
		return 0, fmt.Errorf("revoke grants: %w", done.Error)
	}
	return done.RowsAffected, nil
}
