package store

import (
	"context"
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"

	"gorm.io/gorm"

	"satchel/internal/database"
	"satchel/internal/fault"
	"satchel/internal/space"
)

// NewUser is the input of CreateUser.
type NewUser struct {
	Name    string // see CheckName
	Display string
	Email   string
	Admin   bool
	// Issuer and Subject are the user's identity. Both are empty for LocalIssuer. If Identity is
	// set, it replaces them.
	Issuer, Subject string
	Identity        *Identity
	// Admitted is the reason that admits the user; see User.Admitted. Empty means
	// "command", or "first run" if First is set.
	Admitted string
	// Invitation is the secret of an invitation. The user accepts it in the same
	// transaction, so that one invitation creates only one user; see AcceptInvitation. If
	// Email is empty, the user gets the invitation's address; see NewInvitation.Email.
	Invitation string
	// Space and SpaceName are the id and name of the user's first space. By default they
	// are a fresh id and the user's name. The git store creates the space itself,
	// preferably before its row, with an id from space.NewSpaceID. A crash in between then
	// leaves an unused repository, but not a row without a repository.
	Space     space.SpaceID
	SpaceName string
	// First requires that the server has never had a user. The transaction checks this. If
	// two servers start at the same time on one database, only one creates the first admin.
	First bool
}

// CreateUser creates a user and the row of their first space. The error is a fault.Invalid
// for a bad name. It is a fault.Conflict if the name, the address, the identity or the space
// exists already, or if First is set and there was a user. With an Identity, an address that
// another user has is no error: CreateUser leaves the address out.
func (s *Store) CreateUser(ctx context.Context, by Actor, n NewUser) (User, Space, error) {
	id := space.NewUserID()
	if n.SpaceName == "" {
		n.SpaceName = n.Name
	}
	if n.Space == "" {
		n.Space = space.NewSpaceID()
	}
	if n.Admitted == "" {
		n.Admitted = "command"
		if n.First {
			n.Admitted = "first run"
		}
	}
	if n.Identity == nil && n.Issuer != "" && n.Issuer != LocalIssuer {
		n.Identity = &Identity{Issuer: n.Issuer, Subject: n.Subject, Label: n.Display}
	}
	n.Issuer, n.Subject = LocalIssuer, string(id)
	if n.Identity != nil {
		if err := n.Identity.check(); err != nil {
			return User{}, Space{}, err
		}
		n.Issuer, n.Subject = n.Identity.Issuer, n.Identity.Subject
	}
	for _, err := range []error{CheckName(n.Name), CheckName(n.SpaceName), checkLabel("display name", n.Display), checkLabel("email address", n.Email)} {
		if err != nil {
			return User{}, Space{}, err
		}
	}
	if _, err := space.ParseSpaceID(string(n.Space)); err != nil {
		return User{}, Space{}, err
	}
	now := database.Millis(s.now())
	u := userRow{ID: string(id), Issuer: n.Issuer, Subject: n.Subject, Name: n.Name, Display: n.Display, Email: n.Email, Admin: n.Admin, Created: now,
		EmailKey: lowerASCII(n.Email), Admitted: clean(n.Admitted, 300)}
	sp := spaceRow{ID: string(n.Space), Name: n.SpaceName, OwnerID: u.ID, Created: now}
	err := s.transact(ctx, func(tx *gorm.DB) error {
		if n.First {
			if err := s.onlyIfEmpty(tx); err != nil {
				return err
			}
		}
		if n.Invitation != "" || n.Email != "" {
			if err := s.lockUsers(tx); err != nil {
				return err
			}
		}
		// If two users had one address, neither could sign in with it.
		if taken, err := addressTaken(tx, u.ID, n.Email); err != nil {
			return err
		} else if taken && n.Identity == nil {
			return fault.New(fault.Conflict, "Somebody else has the address %s.", n.Email)
		} else if taken {
			u.Email, u.EmailKey = "", ""
		}
		if err := tx.Create(&u).Error; err != nil {
			if database.IsDuplicate(err) {
				return fault.New(fault.Conflict, "A user with the name %s or the same sign-in already exists.", n.Name)
			}
			return fmt.Errorf("create user: %w", err)
		}
		if err := s.record(tx, by, "user.create", u.ID, map[string]any{"name": u.Name, "admin": u.Admin, "issuer": u.Issuer, "admitted": u.Admitted}); err != nil {
			return err
		}
		if n.Identity != nil {
			if _, err := linkIdentity(tx, n.Identity.row(u.ID, now)); err != nil {
				return err
			}
		}
		if err := s.createSpace(tx, by, sp); err != nil || n.Invitation == "" {
			return err
		}
		i, err := s.accept(tx, by, n.Invitation, u)
		if err != nil {
			return err
		}
		u.Admin = u.Admin || i.Admin
		if !i.vouched {
			return nil
		}
		if err := s.fillEmail(tx, by, &u, i.Email); err != nil {
			return err
		}
		return unblock(tx, u) // again, because accept unblocked the user before they had this address
	})
	if err != nil {
		return User{}, Space{}, err
	}
	return u.user(), sp.space(), nil
}

func (s *Store) onlyIfEmpty(tx *gorm.DB) error {
	if err := s.lockUsers(tx); err != nil {
		return err
	}
	var n int64
	if err := tx.Model(&userRow{}).Count(&n).Error; err != nil {
		return fmt.Errorf("count users: %w", err)
	}
	if n > 0 {
		return fault.New(fault.Conflict, "This server already has users.")
	}
	return nil
}

// UndoCreateUser undoes a CreateUser whose space could not be created. It deletes the user
// and their spaces. The error is a fault.Conflict if the user has a grant or is a member of
// another space, or if one of their spaces has another member.
func (s *Store) UndoCreateUser(ctx context.Context, by Actor, id space.UserID) error {
	return s.db.Transact(ctx, func(tx *gorm.DB) error {
		u, err := lockUser(tx, s.db.Kind(), id)
		if err != nil {
			return err
		}
		if err := undoInvitation(tx, u.ID); err != nil {
			return err
		}
		if err := s.endUser(tx, u.ID); err != nil {
			return err
		}
		var n int64
		err = tx.Raw(`SELECT (SELECT COUNT(*) FROM auth_grants WHERE user_id = ?) + (SELECT COUNT(*) FROM auth_members m
			JOIN auth_spaces s ON s.id = m.space_id WHERE (m.user_id = ?) <> (s.owner_id = ?))`, u.ID, u.ID, u.ID).Scan(&n).Error
		if err != nil {
			return fmt.Errorf("look for what hangs on a user: %w", err)
		}
		if n > 0 {
			return fault.New(fault.Conflict, "%s is in use; remove the user instead.", u.Name)
		}
		for _, stmt := range []string{
			"DELETE FROM auth_members WHERE user_id = ?",
			"DELETE FROM auth_spaces WHERE owner_id = ?",
			"DELETE FROM auth_users WHERE id = ?",
		} {
			if err := tx.Exec(stmt, u.ID).Error; err != nil {
				return fmt.Errorf("undo user: %w", err)
			}
		}
		return s.record(tx, by, "user.undo", u.ID, map[string]any{"name": u.Name})
	})
}

// undoInvitation reopens a user's invitation, and removes the membership that it gave.
func undoInvitation(tx *gorm.DB, user string) error {
	err := tx.Exec(`DELETE FROM auth_members WHERE user_id = ? AND role <> ? AND space_id IN
		(SELECT space_id FROM auth_invitations WHERE used_by = ?)`, user, string(space.Owner), user).Error
	if err == nil {
		err = tx.Exec("UPDATE auth_invitations SET used = 0, used_by = '' WHERE used_by = ?", user).Error
	}
	return wrap("undo invitation", err)
}

// RemoveUser removes a user. At once, it revokes their grants, deletes their sessions,
// links, passkeys, identities and open invitations, and ends their memberships in other
// people's spaces and their connections to GitHub. Their own spaces stay. The error is a
// fault.NotFound, or a fault.Conflict for the only admin.
func (s *Store) RemoveUser(ctx context.Context, by Actor, id space.UserID) error {
	return s.db.Transact(ctx, func(tx *gorm.DB) error {
		// If two admins remove each other, the two transactions must not overlap.
		if err := s.lockUsers(tx); err != nil {
			return err
		}
		u, err := lockUser(tx, s.db.Kind(), id)
		if err != nil {
			return err
		}
		if u.Admin {
			if err := s.checkOtherAdmin(tx, u); err != nil {
				return err
			}
		}
		now := database.Millis(s.now())
		if err := tx.Model(&userRow{}).Where("id = ?", u.ID).Update("removed", now).Error; err != nil {
			return fmt.Errorf("remove user: %w", err)
		}
		revoked, err := s.revokeGrants(tx, "user_id = ?", u.ID)
		if err != nil {
			return err
		}
		if err := block(tx, u, now); err != nil {
			return err
		}
		if err := s.endUser(tx, u.ID); err != nil {
			return err
		}
		if err := s.endLinksOf(tx, u.ID); err != nil {
			return err
		}
		if err := tx.Where("user_id = ? AND role <> ?", u.ID, string(space.Owner)).Delete(&memberRow{}).Error; err != nil {
			return fmt.Errorf("end memberships: %w", err)
		}
		if err := s.unlink(tx, by, "user_id = ?", u.ID); err != nil {
			return err
		}
		return s.record(tx, by, "user.remove", u.ID, map[string]any{"name": u.Name, "grants_revoked": revoked})
	})
}

// lockUser reads a user who is not removed. Until the transaction ends, no other transaction can
// remove the user or give them a grant.
func lockUser[ID ~string](tx *gorm.DB, kind database.Kind, id ID) (userRow, error) {
	var u userRow
	q := tx.Where("removed = 0 AND id = ?", lookup(id))
	if kind == database.Postgres {
		q = q.Clauses(forUpdate)
	}
	if err := q.Take(&u).Error; err != nil {
		return u, notFound(err, "There is no such user.")
	}
	return u, nil
}

// ListUsers returns all users, without removed ones, sorted by name.
func (s *Store) ListUsers(ctx context.Context) ([]User, error) {
	var rows []userRow
	if err := s.db.Read(ctx).Where("removed = 0").Order("name").Find(&rows).Error; err != nil {
		return nil, fmt.Errorf("list users: %w", err)
	}
	out := make([]User, len(rows))
	for i, r := range rows {
		out[i] = r.user()
	}
	return out, nil
}

// FindUser returns the user with the name. The error is a fault.NotFound if there is none,
// or if they were removed.
func (s *Store) FindUser(ctx context.Context, name string) (User, error) {
	var r userRow
	if err := s.db.Read(ctx).Where("removed = 0 AND name = ?", lookup(name)).Take(&r).Error; err != nil {
		return User{}, notFound(err, "There is no user %q.", short(name))
	}
	return r.user(), nil
}

// User returns the user with the id. The errors are those of FindUser.
func (s *Store) User(ctx context.Context, id space.UserID) (User, error) {
	var r userRow
	if err := s.db.Read(ctx).Where("removed = 0 AND id = ?", lookup(id)).Take(&r).Error; err != nil {
		return User{}, notFound(err, "There is no such user.")
	}
	return r.user(), nil
}

func short(s string) string {
	if len(s) > MaxNameBytes {
		s = strings.ToValidUTF8(s[:MaxNameBytes], "") + "…"
	}
	return s
}

func printable(s string) bool {
	return utf8.ValidString(s) && !strings.ContainsFunc(s, func(r rune) bool { return !unicode.IsPrint(r) })
}
