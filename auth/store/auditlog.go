package store

import (
	"context"
	"fmt"
	"strings"
	"time"

	"satchel/internal/database"
	"satchel/internal/fault"
	"satchel/internal/space"
)

// AuditFilter selects the entries that AuditOf returns. The zero value selects all.
type AuditFilter struct {
	// Users limits the entries to acts by these users, and acts about these users or their
	// grants.
	Users []space.UserID
	// Act is the beginning of the action, such as "grant." or "user.create".
	Act string
	// Via is how the action was done, such as "web" or "command line".
	Via string
	// Client is the name of a client or a key. It selects the entries about clients and grants
	// with this name, and about the grants of such clients.
	Client string
	// Since and Until limit the times of the entries. An entry at the time Until itself is not
	// selected. A zero time is no limit.
	Since, Until time.Time
}

// Audit returns at most limit entries with ids below before, newest first. If before is 0,
// it begins with the newest entry. The maximum of limit is 1000.
func (s *Store) Audit(ctx context.Context, before int64, limit int) ([]Entry, error) {
	return s.AuditOf(ctx, AuditFilter{}, before, limit)
}

// AuditOf returns the entries that f selects; see Audit. The error is a fault.Invalid if
// f.Act cannot be the beginning of an action.
func (s *Store) AuditOf(ctx context.Context, f AuditFilter, before int64, limit int) ([]Entry, error) {
	q := s.db.Read(ctx).Order("id DESC").Limit(min(max(limit, 1), 1000))
	if before > 0 {
		q = q.Where("id < ?", before)
	}
	if strings.ContainsFunc(f.Act, func(r rune) bool { return r != '.' && (r < 'a' || r > 'z') }) {
		return nil, fault.New(fault.Invalid, "No action begins with %q; write it like grant or user.create.", short(f.Act))
	}
	if f.Act != "" {
		q = q.Where("action LIKE ?", f.Act+"%")
	}
	if len(f.Users) > 0 {
		about := s.db.Read(ctx).Where("actor IN ? OR subject IN ? OR subject IN (SELECT id FROM auth_grants WHERE user_id IN ?)", f.Users, f.Users, f.Users)
		for _, u := range f.Users {
			about = about.Or("detail LIKE ?", `%:"`+string(u)+`"%`)
		}
		q = q.Where(about)
	}
	if f.Via != "" {
		q = q.Where("via = ?", f.Via)
	}
	if f.Client != "" {
		q = q.Where(s.db.Read(ctx).Where("subject IN (SELECT id FROM auth_clients WHERE name = ?)", f.Client).
			Or("subject IN (SELECT g.id FROM auth_grants g LEFT JOIN auth_clients c ON c.id = g.client_id WHERE g.name = ? OR c.name = ?)", f.Client, f.Client))
	}
	if !f.Since.IsZero() {
		q = q.Where("at >= ?", f.Since.UnixMilli())
	}
	if !f.Until.IsZero() {
		q = q.Where("at < ?", f.Until.UnixMilli())
	}
	var rows []auditRow
	if err := q.Find(&rows).Error; err != nil {
		return nil, fmt.Errorf("read audit log: %w", err)
	}
	out := make([]Entry, len(rows))
	for i, r := range rows {
		out[i] = Entry{ID: r.ID, At: database.Time(r.At), Actor: Actor{space.UserID(r.Actor), r.Via}, Action: r.Action, Subject: r.Subject, Detail: r.Detail}
	}
	return out, nil
}

// nameQueries returns the SQL queries that find names by ids. The name of a space is OWNER/NAME,
// or only NAME if its owner was removed. The name of a removed user looks like "gil (removed)",
// which no other user can have.
func nameQueries() []string {
	return []string{
		`SELECT id, CASE WHEN removed = 0 THEN name ELSE name || ' (removed)' END AS name FROM auth_users WHERE id IN ?`,
		`SELECT s.id, CASE WHEN o.removed = 0 THEN o.name || '/' || s.name ELSE s.name END AS name
		FROM auth_spaces s JOIN auth_users o ON o.id = s.owner_id WHERE s.id IN ?`,
		`SELECT d.id, CASE WHEN o.removed = 0 THEN o.name || '/' || d.name ELSE d.name END || ' (deleted)' AS name
		FROM auth_deleted_spaces d JOIN auth_users o ON o.id = d.owner_id WHERE d.id IN ?`,
		`SELECT id, name FROM auth_clients WHERE id IN ?`,
		`SELECT g.id, CASE WHEN g.name <> '' THEN g.name ELSE COALESCE(c.name, g.client_id) END AS name
		FROM auth_grants g LEFT JOIN auth_clients c ON c.id = g.client_id WHERE g.id IN ?`,
		`SELECT id, CASE WHEN note <> '' THEN note ELSE email END AS name FROM auth_invitations WHERE id IN ?`,
	}
}

// NamesOf returns the names of users, spaces, clients, grants and invitations by id. The caller
// passes at most 10,000 ids. NamesOf omits ids without a name. Removed users and deleted spaces
// have names such as "gil (removed)".
func (s *Store) NamesOf(ctx context.Context, ids []string) (map[string]string, error) {
	out := map[string]string{}
	if len(ids) == 0 {
		return out, nil
	}
	for _, query := range nameQueries() {
		var rows []struct{ ID, Name string }
		if err := s.db.Read(ctx).Raw(query, ids).Scan(&rows).Error; err != nil {
			return nil, fmt.Errorf("look up names: %w", err)
		}
		for _, r := range rows {
			if r.Name != "" {
				out[r.ID] = r.Name
			}
		}
	}
	return out, nil
}
