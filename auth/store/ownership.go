package store

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"gorm.io/gorm"
	"gorm.io/gorm/clause"

	"satchel/internal/database"
	"satchel/internal/fault"
	"satchel/internal/space"
)

func membership(sp Space, owner string, removed int64, role string) Membership {
	m := Membership{Space: sp, OwnerName: owner, Role: space.Role(role)}
	if removed != 0 {
		m.OwnerName, m.OwnerWas = "", owner
	}
	return m
}

// OwnerLabel returns the text that names the owner for people: the name, or "nobody (was
// gil)" if the owner was removed.
func (m Membership) OwnerLabel() string { return OwnerLabel(m.OwnerName, m.OwnerWas) }

// OwnerLabel does the same as Membership.OwnerLabel for a Membership's OwnerName and OwnerWas.
func OwnerLabel(owner, was string) string {
	if owner == "" && was != "" {
		return "nobody (was " + was + ")"
	}
	return owner
}

// path returns a text that identifies the space: OWNER/NAME, or its id if nobody owns it.
// Another user may have taken the name of a removed owner.
func (m Membership) path() string {
	if m.OwnerName == "" {
		return string(m.ID)
	}
	return m.OwnerName + "/" + m.Name
}

// FindSpace returns the space that a user means by a reference. A reference is an id, NAME or
// OWNER/NAME. NAME is ambiguous if several spaces have it. An empty reference means the user's
// only space, or else the first that they own. FindSpace does not find the spaces of a removed
// owner by the owner's name, or spaces of which the user is not a member. The error is a
// fault.NotFound that names the user's spaces, or a fault.Invalid for an ambiguous reference.
func (s *Store) FindSpace(ctx context.Context, user space.UserID, ref string) (Membership, error) {
	all, err := s.SpacesOf(ctx, user)
	if err != nil {
		return Membership{}, err
	}
	m, err := chooseSpace(all, "The user", ref)
	if fault.CodeOf(err) != fault.NotFound {
		return m, err
	}
	if u, failed := s.User(ctx, user); failed == nil {
		_, err = chooseSpace(all, u.Name, ref)
	}
	return m, err
}

// chooseSpace chooses from all by the rules of FindSpace. user is the person's name in its errors.
func chooseSpace(all []Membership, user, ref string) (Membership, error) {
	if ref == "" && len(all) > 0 && (len(all) == 1 || all[0].Role == space.Owner) {
		return all[0], nil
	}
	var found []Membership
	for _, m := range all {
		if ref == string(m.ID) {
			return m, nil // an id takes precedence over names
		}
	}
	for _, m := range all {
		if ref == m.path() || ref == m.Name {
			found = append(found, m)
		}
	}
	switch {
	case len(found) == 1:
		return found[0], nil
	case len(found) > 1:
		names := make([]string, len(found))
		for i, m := range found {
			names[i] = m.path()
		}
		return Membership{}, fault.New(fault.Invalid, "%q could be %s; write one of these.", short(ref), strings.Join(names, " or "))
	case ref == "":
		return Membership{}, fault.New(fault.NotFound, "No space is named, and %s owns none.", lowerFirst(user))
	}
	return Membership{}, fault.New(fault.NotFound, "%s has no space %q; they have: %s", user, short(ref), listed(all))
}

// lowerFirst changes the first letter to lower case, so that "The user" fits inside a
// sentence. Names of users are in lower case.
func lowerFirst(s string) string { return strings.ToLower(s[:1]) + s[1:] }

// maxListed is the maximum number of spaces in an error.
const maxListed = 20

// listed returns the names of spaces in the form that FindSpace accepts.
func listed(all []Membership) string {
	if len(all) == 0 {
		return "none"
	}
	var names []string
	for _, m := range all[:min(len(all), maxListed)] {
		same := func(o Membership) bool { return o.ID != m.ID && o.Name == m.Name }
		if (m.Role == space.Owner || m.OwnerName == "") && !slices.ContainsFunc(all, same) {
			names = append(names, m.Name)
		} else {
			names = append(names, m.path())
		}
	}
	if more := len(all) - maxListed; more > 0 {
		names = append(names, fmt.Sprintf("and %d more", more))
	}
	return strings.Join(names, ", ")
}

// GiveSpace makes another user the owner of a space. The former owner becomes an editor,
// unless they were removed. Both changes take effect on the next request. The former owner's
// clients keep their access. The error is a fault.NotFound for an unknown user or space, a
// fault.Invalid if the user owns the space already, and a fault.Conflict if the new owner
// has a space of that name. The caller has verified that the actor is an admin.
func (s *Store) GiveSpace(ctx context.Context, by Actor, id space.SpaceID, to space.UserID) error {
	return s.give(ctx, by, id, to, func(*gorm.DB, spaceRow) error { return nil })
}

// GiveOwnSpace lets the owner of a space make another member its owner; see GiveSpace. The
// error is also a fault.NotFound if owner does not own the space or the new owner is not a
// member, and a fault.Conflict for the owner's only space.
func (s *Store) GiveOwnSpace(ctx context.Context, by Actor, owner space.UserID, id space.SpaceID, to space.UserID) error {
	return s.give(ctx, by, id, to, func(tx *gorm.DB, sp spaceRow) error {
		if sp.OwnerID != string(owner) {
			return errNoSpace()
		}
		var member int64
		if err := tx.Model(&memberRow{}).Where("space_id = ? AND user_id = ?", sp.ID, lookup(to)).Count(&member).Error; err != nil {
			return fmt.Errorf("look up member: %w", err)
		}
		if member == 0 {
			return fault.New(fault.NotFound, "That person is not a member of the space %s.", sp.Name)
		}
		return s.keepsOne(tx, sp)
	})
}

// give transfers a space as GiveSpace does. It first calls the function may, which can refuse
// the transfer.
func (s *Store) give(ctx context.Context, by Actor, id space.SpaceID, to space.UserID, may func(*gorm.DB, spaceRow) error) error {
	return s.db.Transact(ctx, func(tx *gorm.DB) error {
		// Two transfers, or a transfer and a removal of a user, must not overlap.
		if err := s.lockUsers(tx); err != nil {
			return err
		}
		u, err := s.lockActive(tx, to)
		if err != nil {
			return err
		}
		sp, err := takeSpace(tx, id)
		if err != nil {
			return err
		}
		if err := may(tx, sp); err != nil {
			return err
		}
		if sp.OwnerID == u.ID {
			return fault.New(fault.Invalid, "%s already owns the space %s.", u.Name, sp.Name)
		}
		from := sp.OwnerID
		_, err = lockUser(tx, s.db.Kind(), from)
		stays := err == nil
		if err != nil && fault.CodeOf(err) != fault.NotFound {
			return err
		}
		if err := tx.Exec("UPDATE auth_spaces SET owner_id = ? WHERE id = ?", u.ID, sp.ID).Error; err != nil {
			if database.IsDuplicate(err) {
				return fault.New(fault.Conflict, "%s already has a space %s.", u.Name, sp.Name)
			}
			return fmt.Errorf("give space: %w", err)
		}
		if stays {
			err = tx.Exec("UPDATE auth_members SET role = ? WHERE space_id = ? AND user_id = ?", string(space.Editor), sp.ID, from).Error
		} else {
			err = tx.Exec("DELETE FROM auth_members WHERE space_id = ? AND user_id = ?", sp.ID, from).Error
		}
		if err == nil {
			// The new time in added puts the space after the user's other spaces in SpacesOf.
			err = tx.Clauses(clause.OnConflict{
				Columns:   []clause.Column{{Name: "space_id"}, {Name: "user_id"}},
				DoUpdates: clause.AssignmentColumns([]string{"role", "added"}),
			}).Create(&memberRow{SpaceID: sp.ID, UserID: u.ID, Role: string(space.Owner), Added: database.Millis(s.now())}).Error
		}
		if err == nil {
			// If these invitations stayed, they would be valid again if the space is given back.
			err = tx.Exec("DELETE FROM auth_invitations WHERE space_id = ? AND by_user = ? AND used = 0", sp.ID, from).Error
		}
		if err != nil {
			return fmt.Errorf("give space: %w", err)
		}
		// The connection to the repository depends on the former owner's right to push.
		if err := s.unlink(tx, by, "space_id = ?", sp.ID); err != nil {
			return err
		}
		return s.record(tx, by, "space.give", sp.ID, map[string]any{"name": sp.Name, "from": from, "to": u.ID})
	})
}

// UserName is the present or former name of a user.
type UserName struct {
	Name    string
	Removed bool
}

// UserNames returns the names of users by id, including removed users. Without ids, it
// returns the names of all users.
func (s *Store) UserNames(ctx context.Context, only ...space.UserID) (map[space.UserID]UserName, error) {
	var rows []struct {
		ID, Name string
		Removed  int64
	}
	q := s.db.Read(ctx).Model(&userRow{}).Select("id, name, removed")
	if len(only) > 0 {
		q = q.Where("id IN ?", only)
	}
	if err := q.Scan(&rows).Error; err != nil {
		return nil, fmt.Errorf("list names of users: %w", err)
	}
	out := make(map[space.UserID]UserName, len(rows))
	for _, r := range rows {
		out[space.UserID(r.ID)] = UserName{r.Name, r.Removed != 0}
	}
	return out, nil
}
