package store

import (
	"context"
	"fmt"
	"strings"

	"gorm.io/gorm"

	"satchel/internal/fault"
	"satchel/internal/space"
)

// SetAdmin makes a user an admin, or makes an admin an ordinary user. The error is a
// fault.NotFound, or a fault.Conflict if the only admin would become an ordinary user.
func (s *Store) SetAdmin(ctx context.Context, by Actor, user space.UserID, admin bool) error {
	return s.db.Transact(ctx, func(tx *gorm.DB) error {
		if err := s.lockUsers(tx); err != nil {
			return err
		}
		u, err := lockUser(tx, s.db.Kind(), user)
		if err != nil || u.Admin == admin {
			return err
		}
		if !admin {
			if err := s.checkOtherAdmin(tx, u); err != nil {
				return err
			}
		}
		return s.setAdmin(tx, by, u, admin)
	})
}

func (s *Store) setAdmin(tx *gorm.DB, by Actor, u userRow, admin bool) error {
	if err := tx.Exec("UPDATE auth_users SET admin = ? WHERE id = ?", admin, u.ID).Error; err != nil {
		return fmt.Errorf("change admin: %w", err)
	}
	if !admin {
		if err := s.endLinksOf(tx, u.ID); err != nil {
			return err
		}
	}
	return s.record(tx, by, "user.admin", u.ID, map[string]any{"name": u.Name, "admin": admin})
}

// checkOtherAdmin returns an error if the user is the only admin.
func (s *Store) checkOtherAdmin(tx *gorm.DB, u userRow) error {
	var others int64
	if err := tx.Model(&userRow{}).Where("removed = 0 AND suspended = 0 AND admin AND id <> ?", u.ID).Count(&others).Error; err != nil {
		return fmt.Errorf("count admins: %w", err)
	}
	if others == 0 {
		return fault.New(fault.Conflict, "%s is the only admin; promote somebody else first.", u.Name)
	}
	return nil
}

// SuspendUnlisted suspends the users whose entry was removed from the allow list, and
// restores those whose entry is back. listed reports whether the list has an entry; it must
// not use the store. The sessions, tokens and keys of a suspended user do not work. The
// only admin is never suspended. SuspendUnlisted returns the users that it changed.
func (s *Store) SuspendUnlisted(ctx context.Context, by Actor, listed func(entry string) bool) (suspended, restored []space.UserID, err error) {
	err = s.db.Transact(ctx, func(tx *gorm.DB) error {
		suspended, restored = nil, nil
		if err := s.lockUsers(tx); err != nil {
			return err
		}
		var users []userRow
		// Restore users before suspending others, so that a restored admin counts. Then
		// begin with the newest user, so that the oldest admin stays if no admin is listed.
		err := tx.Where("removed = 0 AND admitted LIKE ?", "%:%").Order("created DESC, id DESC").Find(&users).Error
		if err != nil {
			return fmt.Errorf("list users: %w", err)
		}
		for _, u := range users {
			if u.Suspended != 0 && listed(u.Admitted) {
				restored = append(restored, space.UserID(u.ID))
				if err := s.setSuspended(tx, by, u, 0); err != nil {
					return err
				}
			}
		}
		for _, u := range users {
			if u.Suspended != 0 || listed(u.Admitted) {
				continue
			}
			if u.Admin && fault.CodeOf(s.checkOtherAdmin(tx, u)) == fault.Conflict {
				s.log.WarnContext(ctx, "the only admin is no longer on the allow list, but is not suspended", "user", u.Name, "entry", u.Admitted)
				continue
			}
			suspended = append(suspended, space.UserID(u.ID))
			if err := s.setSuspended(tx, by, u, s.now().UnixMilli()); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return nil, nil, err
	}
	return suspended, restored, nil
}

// Readmit replaces the reason that admits a user, such as an entry of the allow list, and
// restores the user. The error is a fault.NotFound if there is no such user.
func (s *Store) Readmit(ctx context.Context, by Actor, user space.UserID, admitted string) error {
	return s.db.Transact(ctx, func(tx *gorm.DB) error {
		if err := s.lockUsers(tx); err != nil {
			return err
		}
		u, err := lockUser(tx, s.db.Kind(), user)
		if err != nil {
			return err
		}
		u.Admitted = admitted
		if err := tx.Exec("UPDATE auth_users SET admitted = ? WHERE id = ?", clean(admitted, 300), u.ID).Error; err != nil {
			return fmt.Errorf("readmit user: %w", err)
		}
		if u.Suspended == 0 {
			return nil
		}
		return s.setSuspended(tx, by, u, 0)
	})
}

func (s *Store) setSuspended(tx *gorm.DB, by Actor, u userRow, at int64) error {
	if err := tx.Exec("UPDATE auth_users SET suspended = ? WHERE id = ?", at, u.ID).Error; err != nil {
		return fmt.Errorf("suspend user: %w", err)
	}
	if at != 0 {
		if err := s.endLinksOf(tx, u.ID); err != nil {
			return err
		}
	}
	action := "user.suspend"
	if at == 0 {
		action = "user.restore"
	}
	return s.record(tx, by, action, u.ID, map[string]any{"name": u.Name, "admitted": u.Admitted})
}

// endUser deletes everything with which a removed user could sign in, in the transaction of
// the removal. A new user can then have the same identity.
func (s *Store) endUser(tx *gorm.DB, id string) error {
	if err := s.lockSessions(tx, "user_id = ?", id); err != nil {
		return err
	}
	for _, stmt := range strings.Split(endUserStatements, ";") {
		if err := tx.Exec(stmt, id).Error; err != nil {
			return fmt.Errorf("end a user's sign-ins: %w", err)
		}
	}
	return nil
}

const endUserStatements = `DELETE FROM auth_sessions WHERE user_id = ?;
DELETE FROM auth_links WHERE user_id = ?;
DELETE FROM auth_link_notices WHERE user_id = ?;
DELETE FROM auth_passkeys WHERE user_id = ?;
DELETE FROM auth_identities WHERE user_id = ?;
DELETE FROM auth_codes WHERE user_id = ? AND used = 0;
DELETE FROM auth_invitations WHERE by_user = ? AND used = 0`
