package store

import (
	"context"
	"fmt"

	"gorm.io/gorm"
	"gorm.io/gorm/clause"

	"satchel/auth"
	"satchel/internal/fault"
	"satchel/internal/space"
)

// externalRow is a row of externalQuery: a space of a user from another issuer, with the grant of
// their client for this space. For a user without spaces, there is one row without a space.
type externalRow struct {
	User                                userRow
	SpaceID, SpaceName, OwnerName, Role string
	GrantID, GrantName, GrantScopes     string
	GrantRevoked, OwnerRemoved          int64
}

const externalQuery = `SELECT u.id, u.name, u.display, u.email, u.admin, u.removed, u.suspended,
	COALESCE(s.id, ''), COALESCE(s.name, ''), COALESCE(o.name, ''), COALESCE(m.role, ''),
	COALESCE(g.id, ''), COALESCE(g.name, ''), COALESCE(g.scopes, ''), COALESCE(g.revoked, 0), COALESCE(o.removed, 0)
FROM auth_identities i
JOIN auth_users u ON u.id = i.user_id
LEFT JOIN auth_members m ON m.user_id = u.id
LEFT JOIN auth_spaces s ON s.id = m.space_id
LEFT JOIN auth_users o ON o.id = s.owner_id
LEFT JOIN auth_grants g ON g.user_id = u.id AND g.space_id = s.id AND g.kind = 'external' AND g.issuer = i.issuer AND g.client_id = ?
WHERE i.issuer = ? AND i.subject = ?
ORDER BY CASE WHEN m.role = 'owner' THEN 0 ELSE 1 END, m.added, s.created, s.name, s.id`

// External returns the principal of a request with another issuer's token. It runs one query,
// unless it has to create or change a grant. The caller sets the principal's Expires.
//
// Each client of the issuer has one grant per user and space. The client's first request
// creates the grant, so that the person sees the client and can revoke it here. The error
// is a fault.NotFound if the subject is not a user yet, a fault.Forbidden if x.Space names none
// of their spaces, and a fault.Unauthenticated if they are suspended or the grant was revoked.
func (s *Store) External(ctx context.Context, x auth.External) (auth.Principal, error) {
	if x.Client == "" || len(x.Client) > maxClientID || !storable(x.Client) {
		return auth.Principal{}, fault.New(fault.Unauthenticated, "The token names no client.")
	}
	rows, err := s.externalRows(ctx, x)
	if err != nil {
		return auth.Principal{}, verifyError(ctx, err, nil)
	}
	if len(rows) == 0 || rows[0].User.Removed != 0 {
		return auth.Principal{}, fault.New(fault.NotFound, "The person in the token is not a user of this server.")
	}
	if rows[0].User.Suspended != 0 {
		return auth.Principal{}, fault.New(fault.Unauthenticated, "The user of this token can no longer use this server.")
	}
	r, err := chooseExternal(rows, x.Space)
	if err != nil {
		return auth.Principal{}, err
	}
	wanted := inOrderOfScopes(append(splitScopes(r.GrantScopes), x.Scopes...))
	if r.GrantID == "" || auth.ScopeList(wanted) != r.GrantScopes {
		if r, err = s.externalGrant(ctx, r, x, wanted); err != nil {
			return auth.Principal{}, err
		}
	}
	if r.GrantRevoked != 0 {
		return auth.Principal{}, fault.New(fault.Unauthenticated, "The grant of this client was revoked.")
	}
	p := auth.Principal{
		User: space.UserID(r.User.ID), UserName: r.User.Name, Display: r.User.Display, Email: r.User.Email, Admin: r.User.Admin,
		Space: space.SpaceID(r.SpaceID), SpaceName: r.SpaceName, Role: space.Role(r.Role), Grant: space.GrantID(r.GrantID), Client: r.GrantName,
		Scopes: auth.EffectiveScopes(inOrderOfScopes(x.Scopes), space.Role(r.Role)),
	}
	s.markUsed(p.Grant, s.now())
	return p, nil
}

func (s *Store) externalRows(ctx context.Context, x auth.External) ([]externalRow, error) {
	found, err := s.rows(ctx, externalQuery, x.Client, lookup(x.Issuer), lookup(x.Subject))
	if err != nil {
		return nil, err
	}
	defer found.Close()
	var out []externalRow
	for found.Next() {
		var r externalRow
		u := &r.User
		err := found.Scan(&u.ID, &u.Name, &u.Display, &u.Email, &u.Admin, &u.Removed, &u.Suspended, &r.SpaceID, &r.SpaceName, &r.OwnerName, &r.Role,
			&r.GrantID, &r.GrantName, &r.GrantScopes, &r.GrantRevoked, &r.OwnerRemoved)
		if err != nil {
			return nil, err
		}
		out = append(out, r)
	}
	return out, found.Err()
}

// chooseExternal finds the space by the rules of FindSpace.
func chooseExternal(rows []externalRow, ref string) (externalRow, error) {
	all := make([]Membership, 0, len(rows))
	for _, r := range rows {
		if r.SpaceID != "" {
			all = append(all, membership(Space{ID: space.SpaceID(r.SpaceID), Name: r.SpaceName}, r.OwnerName, r.OwnerRemoved, r.Role))
		}
	}
	m, err := chooseSpace(all, rows[0].User.Name, ref)
	if err != nil {
		return externalRow{}, fault.Wrap(err, fault.Forbidden, "%s", fault.PublicOf(err))
	}
	for _, r := range rows {
		if r.SpaceID == string(m.ID) {
			return r, nil
		}
	}
	return externalRow{}, fmt.Errorf("space %s is not in its own list", m.ID)
}

// externalGrant creates the grant of an external client, or adds scopes to it.
func (s *Store) externalGrant(ctx context.Context, r externalRow, x auth.External, scopes []space.Scope) (externalRow, error) {
	err := s.db.Transact(ctx, func(tx *gorm.DB) error {
		u, err := s.lockActive(tx, space.UserID(r.User.ID))
		if err != nil {
			return fault.Wrap(err, fault.Unauthenticated, "The user of this token can no longer use this server.")
		}
		var member int64
		if err := tx.Model(&memberRow{}).Where("space_id = ? AND user_id = ?", r.SpaceID, u.ID).Count(&member).Error; err != nil {
			return fmt.Errorf("look up member: %w", err)
		}
		if member == 0 {
			return fault.New(fault.Forbidden, "%s is no longer a member of the space.", u.Name)
		}
		g := grantRow{
			ID: string(space.NewGrantID()), UserID: u.ID, SpaceID: r.SpaceID, Scopes: auth.ScopeList(scopes), Name: clean(x.Client, 200),
			Created: s.now().UnixMilli(), Kind: "external", Issuer: x.Issuer, ClientID: x.Client,
		}
		added := tx.Clauses(clause.OnConflict{DoNothing: true}).Create(&g)
		if added.Error != nil {
			return fmt.Errorf("create grant: %w", added.Error)
		}
		if added.RowsAffected == 1 {
			r.GrantID, r.GrantName, r.GrantRevoked = g.ID, g.Name, 0
			return s.record(tx, Actor{User: space.UserID(u.ID), Via: "client"}, "grant.create", g.ID,
				map[string]any{"kind": g.Kind, "issuer": g.Issuer, "client": g.Name, "space": g.SpaceID, "scopes": g.Scopes})
		}
		var had grantRow // not g, because gorm would then also search for the id in g
		q := tx.Where("user_id = ? AND space_id = ? AND issuer = ? AND client_id = ? AND kind = 'external'", g.UserID, g.SpaceID, g.Issuer, g.ClientID)
		if err := q.Take(&had).Error; err != nil {
			return fmt.Errorf("look up grant: %w", err)
		}
		r.GrantID, r.GrantName, r.GrantRevoked = had.ID, had.Name, had.Revoked
		all := inOrderOfScopes(append(splitScopes(had.Scopes), scopes...))
		if auth.ScopeList(all) == had.Scopes {
			return nil
		}
		if err := tx.Exec("UPDATE auth_grants SET scopes = ? WHERE id = ?", auth.ScopeList(all), had.ID).Error; err != nil {
			return fmt.Errorf("widen grant: %w", err)
		}
		return s.record(tx, Actor{User: space.UserID(u.ID), Via: "client"}, "grant.widen", had.ID,
			map[string]any{"kind": had.Kind, "issuer": had.Issuer, "client": had.Name, "space": had.SpaceID, "scopes": auth.ScopeList(all)})
	})
	if err != nil && fault.CodeOf(err) == fault.Internal {
		err = fault.Wrap(err, fault.Unavailable, "The token cannot be checked now; try again.")
	}
	return r, err
}
