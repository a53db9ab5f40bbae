package store

import (
	"context"
	"fmt"

	"gorm.io/gorm"
	"gorm.io/gorm/clause"

	"satchel/auth"
	"satchel/internal/database"
	"satchel/internal/fault"
	"satchel/internal/space"
)

type deletedRow struct {
	ID      string `gorm:"primaryKey"`
	Name    string
	OwnerID string
	At      int64
	Ended   int64
}

func (deletedRow) TableName() string { return "auth_deleted_spaces" }

// Deleted is a deleted space.
type Deleted struct {
	ID space.SpaceID
	// Ended reports whether SpaceEnded was called: all data of the space is gone.
	Ended bool
	// Link is the repository that was connected to the space when it was deleted. It is nil if
	// there was none, and in the results of DeletedSpaces.
	Link *auth.RepositoryLink
}

// DeleteSpace deletes the row of a space and everything that refers to it: members, grants
// with their keys and tokens, invitations and the connection to GitHub. Later requests treat
// the space as if it had never existed. Other packages remove their own data of the space.
// SpaceEnded records that this is done. The error is a fault.NotFound if there is no such space, or
// if owner is not empty and does not own it, and a fault.Conflict for a user's only space.
func (s *Store) DeleteSpace(ctx context.Context, by Actor, id space.SpaceID, owner space.UserID) (Deleted, error) {
	var out Deleted
	err := s.db.Transact(ctx, func(tx *gorm.DB) error {
		// If two deletions, or a deletion and a transfer, concern a user's last two spaces,
		// only one may succeed.
		if err := s.lockUsers(tx); err != nil {
			return err
		}
		if err := s.lockMembers(tx, id); err != nil {
			return err
		}
		sp, err := s.lockSpace(tx, id)
		if err != nil {
			return err
		}
		if owner != "" && sp.OwnerID != string(owner) {
			return errNoSpace()
		}
		if sp.Source == "" {
			if err := s.keepsOne(tx, sp); err != nil {
				return err
			}
		}
		var links []githubLinkRow
		if err := tx.Where("space_id = ?", sp.ID).Limit(1).Find(&links).Error; err != nil {
			return fmt.Errorf("delete space: %w", err)
		}
		out = Deleted{ID: space.SpaceID(sp.ID)}
		if len(links) > 0 {
			l := links[0].link()
			out.Link = &l
		}
		if err := s.unlink(tx, by, "space_id = ?", sp.ID); err != nil {
			return err
		}
		if err := s.dropSpace(tx, sp); err != nil {
			return err
		}
		return s.record(tx, by, "space.delete", sp.ID, map[string]any{"name": sp.Name, "owner": sp.OwnerID})
	})
	if err != nil {
		return Deleted{}, err
	}
	return out, nil
}

// lockMembers locks the rows of a space's members. Transactions that add a grant for the
// space also lock these rows first.
func (s *Store) lockMembers(tx *gorm.DB, id space.SpaceID) error {
	if s.db.Kind() != database.Postgres {
		return nil
	}
	var ids []string
	err := tx.Raw("SELECT id FROM auth_users WHERE id IN (SELECT user_id FROM auth_members WHERE space_id = ?) ORDER BY id FOR UPDATE", lookup(id)).Scan(&ids).Error
	return wrap("lock members", err)
}

// lockSpace calls takeSpace for a deletion. Until the transaction ends, no other transaction can
// add a row that refers to the space.
func (s *Store) lockSpace(tx *gorm.DB, id space.SpaceID) (spaceRow, error) {
	if s.db.Kind() == database.Postgres {
		tx = tx.Clauses(forUpdate)
	}
	return takeSpace(tx, id)
}

// keepsOne returns an error if the space is its owner's only one. Spaces of synced sources do not
// count. A removed owner needs no space.
func (s *Store) keepsOne(tx *gorm.DB, sp spaceRow) error {
	var u userRow
	if err := tx.Where("id = ?", sp.OwnerID).Take(&u).Error; err != nil {
		return fmt.Errorf("look up an owner: %w", err)
	}
	if u.Removed != 0 {
		return nil
	}
	var others int64
	if err := tx.Model(&spaceRow{}).Where("owner_id = ? AND id <> ? AND source = ''", u.ID, sp.ID).Count(&others).Error; err != nil {
		return fmt.Errorf("count spaces: %w", err)
	}
	if others == 0 {
		return fault.New(fault.Conflict, "%s is the only space of %s, and everybody must keep one. Create another space first.", sp.Name, u.Name)
	}
	return nil
}

// dropSpace deletes a space's row and everything that refers to it. It locks the grants in
// the same order as revokeGrants.
func (s *Store) dropSpace(tx *gorm.DB, sp spaceRow) error {
	var grants []string
	q := tx.Model(&grantRow{}).Where("space_id = ?", sp.ID).Order("id")
	if s.db.Kind() == database.Postgres {
		q = q.Clauses(clause.Locking{Strength: clause.LockingStrengthUpdate})
	}
	if err := q.Pluck("id", &grants).Error; err != nil {
		return fmt.Errorf("delete space: %w", err)
	}
	for _, stmt := range []string{
		"DELETE FROM auth_codes WHERE space_id = ?",
		"DELETE FROM auth_tokens WHERE grant_id IN (SELECT id FROM auth_grants WHERE space_id = ?)",
		"DELETE FROM auth_families WHERE grant_id IN (SELECT id FROM auth_grants WHERE space_id = ?)",
		"DELETE FROM auth_grants WHERE space_id = ?",
		"DELETE FROM auth_invitations WHERE space_id = ?",
		"DELETE FROM auth_members WHERE space_id = ?",
		"DELETE FROM auth_spaces WHERE id = ?",
	} {
		if err := tx.Exec(stmt, sp.ID).Error; err != nil {
			return fmt.Errorf("delete space: %w", err)
		}
	}
	row := deletedRow{ID: sp.ID, Name: sp.Name, OwnerID: sp.OwnerID, At: database.Millis(s.now())}
	return wrap("delete space", tx.Create(&row).Error)
}

// DeletedSpaces returns the deleted spaces, the oldest deletion first.
func (s *Store) DeletedSpaces(ctx context.Context) ([]Deleted, error) {
	var rows []deletedRow
	if err := s.db.Read(ctx).Order("at, id").Find(&rows).Error; err != nil {
		return nil, fmt.Errorf("list deleted spaces: %w", err)
	}
	out := make([]Deleted, len(rows))
	for i, r := range rows {
		out[i] = Deleted{ID: space.SpaceID(r.ID), Ended: r.Ended != 0}
	}
	return out, nil
}

// SpaceEnded records that all data of a deleted space is gone.
func (s *Store) SpaceEnded(ctx context.Context, id space.SpaceID) error {
	return s.db.Transact(ctx, func(tx *gorm.DB) error {
		return wrap("end space", tx.Exec("UPDATE auth_deleted_spaces SET ended = ? WHERE id = ? AND ended = 0", s.now().UnixMilli(), lookup(id)).Error)
	})
}

// neverUsed returns an error if the id belonged to a deleted space.
func neverUsed(tx *gorm.DB, id string) error {
	var n int64
	if err := tx.Model(&deletedRow{}).Where("id = ?", id).Count(&n).Error; err != nil {
		return fmt.Errorf("look for a deleted space: %w", err)
	}
	if n > 0 {
		return fault.New(fault.Conflict, "There was a space %s, which was deleted.", id)
	}
	return nil
}

func errNoSpace() error { return fault.New(fault.NotFound, "There is no such space.") }

// transact calls database.DB.Transact for an operation that adds rows for a space. If the
// space was deleted meanwhile, the error is a fault.NotFound.
func (s *Store) transact(ctx context.Context, fn func(tx *gorm.DB) error) error {
	err := s.db.Transact(ctx, fn)
	if database.IsOrphan(err) && fault.CodeOf(err) == fault.Internal {
		return fault.Wrap(err, fault.NotFound, "There is no such space.")
	}
	return err
}
