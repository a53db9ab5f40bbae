package store

import (
	"context"
	"fmt"
	"net/mail"
	"strings"

	"gorm.io/gorm"

	"satchel/internal/fault"
	"satchel/internal/space"
)

// maxEmail is the maximum length of an address in bytes. checkLabel has the same limit.
const maxEmail = 200

// CheckEmail returns a fault.Invalid unless s is one address of ASCII characters and
// nothing else, such as ada@example.com. mail.ParseAddress also accepts names and comments.
func CheckEmail(s string) error {
	a, err := mail.ParseAddress(s)
	outside := func(r rune) bool { return r <= ' ' || r >= 0x7f }
	if err != nil || a.Address != s || len(s) > maxEmail || strings.ContainsFunc(s, outside) {
		return fault.New(fault.Invalid, "%q is not an email address; write it like ada@example.com.", short(s))
	}
	return nil
}

// SetEmail changes the address to which a user's sign-in links are sent. An empty address
// removes it. The error is a fault.Invalid (see CheckEmail), a fault.NotFound, or a
// fault.Conflict if another user has the address: then neither of them could sign in with
// it. The caller has verified that the address belongs to the user.
func (s *Store) SetEmail(ctx context.Context, by Actor, user space.UserID, email string) error {
	if email != "" {
		if err := CheckEmail(email); err != nil {
			return err
		}
	}
	return s.db.Transact(ctx, func(tx *gorm.DB) error {
		if err := s.lockUsers(tx); err != nil {
			return err
		}
		u, err := lockUser(tx, s.db.Kind(), user)
		if err != nil || u.Email == email {
			return err
		}
		taken, err := addressTaken(tx, u.ID, email)
		if err != nil {
			return err
		}
		if taken {
			return fault.New(fault.Conflict, "Somebody else has the address %s.", email)
		}
		return s.setEmail(tx, by, u, email)
	})
}

// fillEmail sets the address of a user who has none. The caller has called lockUsers. If email
// is invalid or another user has it, fillEmail does nothing, so that the caller's operation
// succeeds.
func (s *Store) fillEmail(tx *gorm.DB, by Actor, u *userRow, email string) error {
	if u.Email != "" || email == "" || CheckEmail(email) != nil {
		return nil
	}
	taken, err := addressTaken(tx, u.ID, email)
	if err != nil || taken {
		return err
	}
	if err := s.setEmail(tx, by, *u, email); err != nil {
		return err
	}
	u.Email, u.EmailKey = email, lowerASCII(email)
	return nil
}

func addressTaken(tx *gorm.DB, user, email string) (bool, error) {
	if email == "" {
		return false, nil
	}
	var n int64
	err := tx.Model(&userRow{}).Where("removed = 0 AND id <> ? AND email_key = ?", user, lowerASCII(email)).Count(&n).Error
	return n > 0, wrap("look up address", err)
}

func (s *Store) setEmail(tx *gorm.DB, by Actor, u userRow, email string) error {
	if err := tx.Exec("UPDATE auth_users SET email = ?, email_key = ? WHERE id = ?", email, lowerASCII(email), u.ID).Error; err != nil {
		return fmt.Errorf("change address: %w", err)
	}
	if err := tx.Exec("DELETE FROM auth_links WHERE user_id = ? AND method = 'mail' AND used = 0", u.ID).Error; err != nil {
		return fmt.Errorf("end links to the address before: %w", err)
	}
	return s.record(tx, by, "user.email", u.ID, map[string]any{"name": u.Name, "email": email})
}
