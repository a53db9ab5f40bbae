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

var _ auth.Verifier = (*Store)(nil)

// maxKeys is the maximum number of valid keys of one user.
const maxKeys = 1000

// NewKey is the input of CreateKey.
type NewKey struct {
	User   space.UserID
	Space  space.SpaceID
	Scopes []space.Scope
	// Name is the person's name for the client. It may be empty.
	Name    string
	Expires time.Time // zero for never
}

// CreateKey creates an API key. Only this call returns the secret, and the store does not
// keep it. The error is a fault.NotFound if the user or the space does not exist or the
// user is not a member. It is a fault.Invalid if scopes are missing, unknown or not allowed
// by the user's role, or if the expiry has passed. It is a fault.Limited if maxKeys is reached.
func (s *Store) CreateKey(ctx context.Context, by Actor, n NewKey) (space.Grant, auth.Secret, error) {
	if err := checkLabel("name of the key", n.Name); err != nil {
		return space.Grant{}, auth.Secret{}, err
	}
	if _, bad, ok := space.ParseScopes(auth.ScopeList(n.Scopes)); !ok {
		return space.Grant{}, auth.Secret{}, fault.New(fault.Invalid, "A key needs the scopes read, write or both; got %q.", short(bad))
	}
	now := s.now()
	if !n.Expires.IsZero() && !n.Expires.After(now) {
		return space.Grant{}, auth.Secret{}, fault.New(fault.Invalid, "The expiry time of the key is in the past.")
	}
	key := auth.NewKey()
	hash := key.Hash()
	row := grantRow{
		ID: string(space.NewGrantID()), UserID: string(n.User), SpaceID: string(n.Space), Scopes: auth.ScopeList(n.Scopes),
		Name: n.Name, KeyHash: hash[:], Created: database.Millis(now), Expires: database.Millis(n.Expires),
		Kind: "key",
	}
	err := s.db.Transact(ctx, func(tx *gorm.DB) error {
		u, err := s.lockActive(tx, n.User)
		if err != nil {
			return err
		}
		var m memberRow
		if err := tx.Where("space_id = ? AND user_id = ?", lookup(n.Space), u.ID).Take(&m).Error; err != nil {
			return notFound(err, "%s is not a member of that space.", u.Name)
		}
		if len(auth.EffectiveScopes(n.Scopes, space.Role(m.Role))) != len(n.Scopes) {
			return fault.New(fault.Invalid, "%s is a %s of the space, so a key can only have the scope read.", u.Name, m.Role)
		}
		var good int64
		err = tx.Model(&grantRow{}).Where("user_id = ? AND key_hash IS NOT NULL AND revoked = 0 AND (expires = 0 OR expires > ?)", u.ID, now.UnixMilli()).Count(&good).Error
		if err != nil {
			return fmt.Errorf("count keys: %w", err)
		}
		if good >= maxKeys {
			return fault.New(fault.Limited, "%s already has %d keys; revoke one first.", u.Name, good)
		}
		if err := tx.Create(&row).Error; err != nil {
			return fmt.Errorf("create key: %w", err)
		}
		return s.record(tx, by, "key.create", row.ID, map[string]any{"user": u.ID, "space": n.Space, "scopes": n.Scopes, "name": n.Name, "expires": row.Expires})
	})
	if err != nil {
		return space.Grant{}, auth.Secret{}, err
	}
	return row.grant(), key, nil
}

// ListKeys returns the API keys of a user, newest first, including revoked and expired
// ones. If user is empty, it returns everyone's.
func (s *Store) ListKeys(ctx context.Context, user space.UserID) ([]Key, error) {
	var rows []struct {
		Row                 grantRow `gorm:"embedded"`
		UserName, SpaceName string
	}
	q := s.db.Read(ctx).Table("auth_grants g").
		Select("g.*, u.name AS user_name, s.name AS space_name").
		Joins("JOIN auth_users u ON u.id = g.user_id").
		Joins("JOIN auth_spaces s ON s.id = g.space_id").
		Where("g.key_hash IS NOT NULL").Order("g.created DESC, g.id")
	if user != "" {
		q = q.Where("g.user_id = ?", string(user))
	}
	if err := q.Scan(&rows).Error; err != nil {
		return nil, fmt.Errorf("list keys: %w", err)
	}
	out := make([]Key, len(rows))
	for i, r := range rows {
		out[i] = Key{Grant: r.Row.grant(), UserName: r.UserName, SpaceName: r.SpaceName}
	}
	return out, nil
}

// RevokeKey ends a key at once. A second call changes nothing. The error is a fault.NotFound if
// there is no such key, or if user is not empty and the key is not theirs.
func (s *Store) RevokeKey(ctx context.Context, by Actor, id space.GrantID, user space.UserID) error {
	return s.db.Transact(ctx, func(tx *gorm.DB) error {
		var g grantRow
		q := tx.Where("id = ? AND key_hash IS NOT NULL", lookup(id))
		if user != "" {
			q = q.Where("user_id = ?", string(user))
		}
		if err := q.Take(&g).Error; err != nil {
			return notFound(err, "There is no such key.")
		}
		_, err := s.endGrant(tx, by, g)
		return err
	})
}

// verifyRow holds everything that the check of a key or token needs. One query reads all of it,
// so that it is consistent.
type verifyRow struct {
	GrantID, Scopes, GrantName       string
	KeyHash                          []byte
	Expires, Revoked                 int64
	UserID, UserName, Display, Email string
	Admin                            bool
	Removed, Suspended               int64
	SpaceID, SpaceName, Role         string
}

const verifyQuery = `SELECT g.id AS grant_id, g.scopes, g.name AS grant_name, g.key_hash, g.expires, g.revoked,
	u.id AS user_id, u.name AS user_name, u.display, u.email, u.admin, u.removed, u.suspended,
	s.id AS space_id, s.name AS space_name, m.role
FROM auth_grants g
JOIN auth_users u ON u.id = g.user_id
JOIN auth_spaces s ON s.id = g.space_id
LEFT JOIN auth_members m ON m.space_id = g.space_id AND m.user_id = g.user_id
WHERE g.key_hash = ?`

func (r verifyRow) principal() auth.Principal {
	return auth.Principal{
		User: space.UserID(r.UserID), UserName: r.UserName, Display: r.Display, Email: r.Email, Admin: r.Admin,
		Space: space.SpaceID(r.SpaceID), SpaceName: r.SpaceName, Role: space.Role(r.Role),
		Grant: space.GrantID(r.GrantID), Client: r.GrantName,
		Scopes:  auth.EffectiveScopes(splitScopes(r.Scopes), space.Role(r.Role)),
		Expires: database.Time(r.Expires),
	}
}

// Verify checks an API key; see auth.Verifier. For an unknown key, the error gives no
// reason. For a known one, it says why the key no longer works.
func (s *Store) Verify(ctx context.Context, bearer string) (auth.Principal, error) {
	p, err := s.CheckKey(ctx, bearer)
	if err == nil {
		s.markUsed(p.Grant, s.now())
	}
	return p, err
}

// CheckKey is like Verify, but does not record a use of the key.
func (s *Store) CheckKey(ctx context.Context, bearer string) (auth.Principal, error) {
	key, err := auth.ParseKey(bearer)
	if err != nil {
		return auth.Principal{}, err
	}
	hash := key.Hash()
	var r verifyRow
	var role *string
	err = s.row(ctx, verifyQuery, hash[:], &r.GrantID, &r.Scopes, &r.GrantName, &r.KeyHash, &r.Expires, &r.Revoked,
		&r.UserID, &r.UserName, &r.Display, &r.Email, &r.Admin, &r.Removed, &r.Suspended, &r.SpaceID, &r.SpaceName, &role)
	if err != nil {
		return auth.Principal{}, verifyError(ctx, err, errUnknown())
	}
	// The index has already compared the hashes, and its timing reveals nothing about the
	// key. This check guards against a column that ignores case.
	if subtle.ConstantTimeCompare(r.KeyHash, hash[:]) != 1 {
		return auth.Principal{}, errUnknown()
	}
	if role != nil {
		r.Role = *role
	}
	now := s.now()
	p := r.principal()
	switch {
	case r.Removed != 0:
		return auth.Principal{}, fault.New(fault.Unauthenticated, "The user of this key was removed.")
	case r.Suspended != 0:
		return auth.Principal{}, fault.New(fault.Unauthenticated, "The user of this key can no longer use this server.")
	case r.Revoked != 0:
		return auth.Principal{}, fault.New(fault.Unauthenticated, "This key was revoked; make a new one.")
	case r.Expires != 0 && now.UnixMilli() >= r.Expires:
		return auth.Principal{}, fault.New(fault.Unauthenticated, "This key has expired; make a new one.")
	case len(p.Scopes) == 0:
		return auth.Principal{}, fault.New(fault.Unauthenticated, "The user of this key is no longer a member of its space.")
	}
	return p, nil
}

func errUnknown() error {
	return fault.New(fault.Unauthenticated, "This server does not know the key; it may belong to another server.")
}

// verifyError turns the error of a query that checks a key or token into a fault. If the query
// found no row, verifyError returns unknown.
func verifyError(ctx context.Context, err, unknown error) error {
	switch {
	case errors.Is(err, sql.ErrNoRows):
		return unknown
	case ctx.Err() != nil:
		return fault.Wrap(errors.Join(ctx.Err(), err), fault.Canceled, "The request ended.")
	}
	return fault.Wrap(err, fault.Unavailable, "The token cannot be checked now; try again.")
}

// readError calls verifyError unless the error is already a fault.
func readError(ctx context.Context, err error) error {
	if fault.CodeOf(err) != fault.Internal {
		return err
	}
	return verifyError(ctx, err, err)
}
