package store

import (
	"context"
	"fmt"

	"gorm.io/gorm"
	"gorm.io/gorm/clause"

	"satchel/internal/database"
	"satchel/internal/fault"
	"satchel/internal/space"
)

// forUpdate makes a PostgreSQL query lock its rows until its transaction ends.
var forUpdate = clause.Locking{Strength: clause.LockingStrengthUpdate}

// CreateSpace creates the row of another space of a user. NewUser.Space says which id to use, and
// when to create the space itself. The errors are those of CreateUser, and a fault.NotFound
// if there is no such owner.
func (s *Store) CreateSpace(ctx context.Context, by Actor, owner space.UserID, id space.SpaceID, name string) (Space, error) {
	if err := CheckName(name); err != nil {
		return Space{}, err
	}
	if _, err := space.ParseSpaceID(string(id)); err != nil {
		return Space{}, err
	}
	row := spaceRow{ID: string(id), Name: name, OwnerID: string(owner), Created: database.Millis(s.now())}
	err := s.db.Transact(ctx, func(tx *gorm.DB) error {
		if _, err := lockUser(tx, s.db.Kind(), owner); err != nil {
			return err
		}
		return s.createSpace(tx, by, row)
	})
	if err != nil {
		return Space{}, err
	}
	return row.space(), nil
}

func (s *Store) createSpace(tx *gorm.DB, by Actor, row spaceRow) error {
	if err := neverUsed(tx, row.ID); err != nil {
		return err
	}
	if err := tx.Create(&row).Error; err != nil {
		if database.IsDuplicate(err) {
			return fault.New(fault.Conflict, "The user already has a space %s.", row.Name)
		}
		return fmt.Errorf("create space: %w", err)
	}
	owner := memberRow{SpaceID: row.ID, UserID: row.OwnerID, Role: string(space.Owner), Added: row.Created}
	if err := tx.Create(&owner).Error; err != nil {
		return fmt.Errorf("create space: %w", err)
	}
	return s.record(tx, by, "space.create", row.ID, map[string]any{"name": row.Name, "owner": row.OwnerID})
}

// CreateSourceSpace creates the row of the space of a synced source. owner is the person who
// added the source. The space has no members, so that it is in nobody's list.
func (s *Store) CreateSourceSpace(ctx context.Context, by Actor, owner space.UserID, id space.SpaceID, source string) error {
	// The colon keeps the name apart from the names of people's spaces.
	row := spaceRow{ID: string(id), Name: "source:" + source, OwnerID: string(owner), Created: database.Millis(s.now()), Source: source}
	return s.db.Transact(ctx, func(tx *gorm.DB) error {
		if _, err := lockUser(tx, s.db.Kind(), owner); err != nil {
			return err
		}
		if err := neverUsed(tx, row.ID); err != nil {
			return err
		}
		err := tx.Create(&row).Error
		if database.IsDuplicate(err) {
			return fault.New(fault.Conflict, "There is already a source %q on this server. Choose another ID.", source).In(space.SourceName)
		}
		return wrap("create the space of a source", err)
	})
}

// SourceSpaces returns the spaces of the synced sources that a user has added.
func (s *Store) SourceSpaces(ctx context.Context, owner space.UserID) ([]space.SpaceID, error) {
	var ids []space.SpaceID
	err := s.db.Read(ctx).Model(&spaceRow{}).Where("owner_id = ? AND source <> ''", string(owner)).Order("id").Pluck("id", &ids).Error
	return ids, wrap("list the spaces of sources", err)
}

// Spaces returns the spaces of people, sorted by name.
func (s *Store) Spaces(ctx context.Context) ([]Space, error) {
	var rows []spaceRow
	if err := s.db.Read(ctx).Where("source = ''").Order("name, id").Find(&rows).Error; err != nil {
		return nil, fmt.Errorf("list spaces: %w", err)
	}
	out := make([]Space, len(rows))
	for i, r := range rows {
		out[i] = r.space()
	}
	return out, nil
}

// Space returns the space with the id. The error is a fault.NotFound if there is none.
func (s *Store) Space(ctx context.Context, id space.SpaceID) (Space, error) {
	var r spaceRow
	if err := s.db.Read(ctx).Where("id = ?", lookup(id)).Take(&r).Error; err != nil {
		return Space{}, notFound(err, "There is no such space.")
	}
	return r.space(), nil
}

// SpacesOf returns the spaces of which a user is a member. The user's own spaces come first, then
// those of others. Both groups are in the order in which the user became a member.
func (s *Store) SpacesOf(ctx context.Context, user space.UserID) ([]Membership, error) {
	var rows []struct {
		Row             spaceRow `gorm:"embedded"`
		OwnerName, Role string
		OwnerRemoved    int64
	}
	err := s.db.Read(ctx).Raw(`SELECT s.id, s.name, s.owner_id, s.created, o.name AS owner_name, o.removed AS owner_removed, m.role
		FROM auth_members m JOIN auth_spaces s ON s.id = m.space_id
		JOIN auth_users o ON o.id = s.owner_id
		JOIN auth_users u ON u.id = m.user_id
		WHERE m.user_id = ? AND u.removed = 0
		ORDER BY CASE WHEN m.role = 'owner' THEN 0 ELSE 1 END, m.added, s.created, s.name, s.id`, string(user)).Scan(&rows).Error
	if err != nil {
		return nil, fmt.Errorf("list spaces of a user: %w", err)
	}
	out := make([]Membership, len(rows))
	for i, r := range rows {
		out[i] = membership(r.Row.space(), r.OwnerName, r.OwnerRemoved, r.Role)
	}
	return out, nil
}

// Members returns the members of a space. The owner comes first, then the others by name.
func (s *Store) Members(ctx context.Context, id space.SpaceID) ([]Member, error) {
	var rows []struct {
		UserID, Name, Role string
		Added              int64
	}
	err := s.db.Read(ctx).Raw(`SELECT m.user_id, u.name, m.role, m.added FROM auth_members m
		JOIN auth_users u ON u.id = m.user_id
		WHERE m.space_id = ? AND u.removed = 0
		ORDER BY CASE WHEN m.role = 'owner' THEN 0 ELSE 1 END, u.name`, string(id)).Scan(&rows).Error
	if err != nil {
		return nil, fmt.Errorf("list members: %w", err)
	}
	out := make([]Member, len(rows))
	for i, r := range rows {
		out[i] = Member{User: space.UserID(r.UserID), Name: r.Name, Role: space.Role(r.Role), Added: database.Time(r.Added)}
	}
	return out, nil
}

// AddMember makes a user an editor or a reader of a space, or changes their role. The
// change takes effect on their next request. The error is a fault.NotFound for an unknown
// user or space, and a fault.Invalid for any other role, or if the user owns the space.
func (s *Store) AddMember(ctx context.Context, by Actor, id space.SpaceID, user space.UserID, role space.Role) error {
	if role != space.Editor && role != space.Reader {
		return fault.New(fault.Invalid, "A member can be made an editor or a reader, not %q.", short(string(role)))
	}
	return s.transact(ctx, func(tx *gorm.DB) error {
		// Lock the user's row first: GiveSpace holds it while it makes a user the owner.
		if _, err := lockUser(tx, s.db.Kind(), user); err != nil {
			return err
		}
		sp, err := takeSpace(tx, id)
		if err != nil {
			return err
		}
		if sp.OwnerID == string(user) {
			return fault.New(fault.Invalid, "The user owns the space %s, and stays its owner.", sp.Name)
		}
		detail := map[string]any{"user": user, "role": role}
		var was []string
		if err := tx.Raw("SELECT role FROM auth_members WHERE space_id = ? AND user_id = ?", sp.ID, string(user)).Scan(&was).Error; err != nil {
			return fmt.Errorf("look up member: %w", err)
		}
		if len(was) > 0 {
			detail["was"] = was[0]
		}
		row := memberRow{SpaceID: sp.ID, UserID: string(user), Role: string(role), Added: database.Millis(s.now())}
		err = tx.Clauses(clause.OnConflict{
			Columns:   []clause.Column{{Name: "space_id"}, {Name: "user_id"}},
			DoUpdates: clause.AssignmentColumns([]string{"role"}),
		}).Create(&row).Error
		if err != nil {
			return fmt.Errorf("add member: %w", err)
		}
		return s.record(tx, by, "member.set", sp.ID, detail)
	})
}

// RemoveMember ends a membership, and revokes the user's grants for the space. The error is
// a fault.NotFound for an unknown user, space or member, and a fault.Invalid for the owner.
func (s *Store) RemoveMember(ctx context.Context, by Actor, id space.SpaceID, user space.UserID) error {
	return s.db.Transact(ctx, func(tx *gorm.DB) error {
		// Lock the user's row as CreateKey does, so that no key is created meanwhile.
		// AddMember also locks this row.
		if _, err := lockUser(tx, s.db.Kind(), user); err != nil {
			return err
		}
		sp, err := takeSpace(tx, id)
		if err != nil {
			return err
		}
		if sp.OwnerID == string(user) {
			return fault.New(fault.Invalid, "The user owns the space %s, and stays its owner.", sp.Name)
		}
		gone := tx.Where("space_id = ? AND user_id = ?", sp.ID, string(user)).Delete(&memberRow{})
		if gone.Error != nil {
			return fmt.Errorf("remove member: %w", gone.Error)
		}
		if gone.RowsAffected == 0 {
			return fault.New(fault.NotFound, "The user is not a member of the space %s.", sp.Name)
		}
		if err := s.endMember(tx, sp.ID, string(user)); err != nil {
			return err
		}
		return s.record(tx, by, "member.remove", sp.ID, map[string]any{"user": user})
	})
}

// endMember revokes a member's grants for a space. It deletes grants of another issuer's
// clients, because a revoked one would keep the client out after a new membership.
func (s *Store) endMember(tx *gorm.DB, id, user string) error {
	err := tx.Exec("DELETE FROM auth_codes WHERE space_id = ? AND user_id = ? AND used = 0", id, user).Error
	if err == nil {
		err = tx.Exec("DELETE FROM auth_grants WHERE space_id = ? AND user_id = ? AND kind = 'external' AND revoked = 0", id, user).Error
	}
	if err == nil {
		_, err = s.revokeGrants(tx, "space_id = ? AND user_id = ?", id, user)
	}
	return wrap("end membership", err)
}

func takeSpace(tx *gorm.DB, id space.SpaceID) (spaceRow, error) {
	var r spaceRow
	if err := tx.Where("id = ?", lookup(id)).Take(&r).Error; err != nil {
		return r, notFound(err, "There is no such space.")
	}
	return r, nil
}

// RenameSpace changes the name of a space. The error is a fault.Invalid for an invalid name, a
// fault.Conflict if the owner has another space of that name, and a fault.NotFound if there
// is no such space.
func (s *Store) RenameSpace(ctx context.Context, by Actor, id space.SpaceID, name string) error {
	if err := CheckName(name); err != nil {
		return err
	}
	return s.db.Transact(ctx, func(tx *gorm.DB) error {
		var r spaceRow
		if err := tx.Where("id = ?", lookup(id)).Take(&r).Error; err != nil {
			return notFound(err, "There is no such space.")
		}
		if r.Name == name {
			return nil
		}
		if err := tx.Model(&spaceRow{}).Where("id = ?", r.ID).Update("name", name).Error; err != nil {
			if database.IsDuplicate(err) {
				return fault.New(fault.Conflict, "The user already has a space %s.", name)
			}
			return fmt.Errorf("rename space: %w", err)
		}
		return s.record(tx, by, "space.rename", r.ID, map[string]any{"name": name, "was": r.Name})
	})
}
