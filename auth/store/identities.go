package store

import (
	"context"
	"fmt"
	"time"

	"gorm.io/gorm"
	"gorm.io/gorm/clause"

	"satchel/internal/database"
	"satchel/internal/fault"
	"satchel/internal/space"
)

const (
	maxIdentities     = 50
	maxSubjectBytes   = 1000
	maxIdentityIssuer = 1000
)

// Identity is an account at an issuer with which a user signs in. A subject never changes
// and is never reused. An address may be reused, so it identifies nobody.
type Identity struct {
	User            space.UserID
	Issuer, Subject string
	Label           string // shown to people, such as a GitHub login; may be empty
	Email           string // verified by the issuer; may be empty
	Created         time.Time
}

type identityRow struct {
	Issuer       string `gorm:"primaryKey"`
	Subject      string `gorm:"primaryKey"`
	UserID       string
	Label, Email string
	Created      int64
}

func (identityRow) TableName() string { return "auth_identities" }

func (i Identity) check() error {
	if i.Issuer == "" || i.Issuer == LocalIssuer || i.Subject == "" || !storable(i.Issuer+i.Subject) || len(i.Issuer) > maxIdentityIssuer || len(i.Subject) > maxSubjectBytes {
		return fault.New(fault.Invalid, "An identity needs an issuer and a subject there.")
	}
	return nil
}

func (i Identity) row(user string, now int64) identityRow {
	return identityRow{Issuer: i.Issuer, Subject: i.Subject, UserID: user, Label: clean(i.Label, 200), Email: clean(i.Email, 200), Created: now}
}

// UserByIdentity returns the user who signs in as the subject of the issuer. The user may
// be suspended. The error is a fault.NotFound if there is no such user.
func (s *Store) UserByIdentity(ctx context.Context, issuer, subject string) (User, error) {
	var u userRow
	err := s.db.Read(ctx).Where("removed = 0 AND id = (SELECT user_id FROM auth_identities WHERE issuer = ? AND subject = ?)", lookup(issuer), lookup(subject)).Take(&u).Error
	if err != nil {
		return User{}, notFound(err, "There is no user with this sign-in.")
	}
	return u.user(), nil
}

// UserByEmail returns the user with the address, who may be suspended. It ignores the case of
// ASCII letters. The error is a fault.NotFound if there is no such user, or more than one.
func (s *Store) UserByEmail(ctx context.Context, email string) (User, error) {
	var rows []userRow
	if email != "" {
		err := s.db.Read(ctx).Where("removed = 0 AND email_key <> '' AND email_key = ?", lookup(lowerASCII(email))).Limit(2).Find(&rows).Error
		if err != nil {
			return User{}, fmt.Errorf("look up address: %w", err)
		}
	}
	if len(rows) != 1 {
		return User{}, fault.New(fault.NotFound, "There is no user with this address.")
	}
	return rows[0].user(), nil
}

// LinkIdentity lets i.User also sign in with the identity i. If the user already has the identity,
// its label and address change. A user without an address gets the identity's address, which
// the issuer verified, unless another user has it. The error is a fault.Conflict if another
// user has the identity, and a fault.Limited if the user already has 50 other identities.
func (s *Store) LinkIdentity(ctx context.Context, by Actor, i Identity) error {
	if err := i.check(); err != nil {
		return err
	}
	return s.db.Transact(ctx, func(tx *gorm.DB) error {
		if err := s.lockUsers(tx); err != nil {
			return err
		}
		u, err := s.lockActive(tx, i.User)
		if err != nil {
			return err
		}
		var n int64
		err = tx.Model(&identityRow{}).Where("user_id = ? AND NOT (issuer = ? AND subject = ?)", string(i.User), i.Issuer, i.Subject).Count(&n).Error
		if err != nil {
			return fmt.Errorf("count identities: %w", err)
		}
		if n >= maxIdentities {
			return fault.New(fault.Limited, "There are already %d sign-ins; remove one first.", n)
		}
		added, err := linkIdentity(tx, i.row(string(i.User), s.now().UnixMilli()))
		if err != nil {
			return err
		}
		if err := s.fillEmail(tx, by, &u, i.Email); err != nil || !added {
			return err
		}
		return s.record(tx, by, "identity.link", string(i.User), map[string]any{"issuer": i.Issuer, "subject": i.Subject})
	})
}

// linkIdentity adds an identity, and reports whether it is new for the user.
func linkIdentity(tx *gorm.DB, row identityRow) (bool, error) {
	added := tx.Clauses(clause.OnConflict{DoNothing: true}).Create(&row)
	if added.Error != nil {
		return false, fmt.Errorf("link identity: %w", added.Error)
	}
	if added.RowsAffected == 0 {
		same := tx.Model(&identityRow{}).Where("issuer = ? AND subject = ? AND user_id = ?", row.Issuer, row.Subject, row.UserID).
			Updates(map[string]any{"label": row.Label, "email": row.Email})
		if same.Error == nil && same.RowsAffected == 0 {
			return false, fault.New(fault.Conflict, "Somebody else already signs in with this.")
		}
		return false, wrap("link identity", same.Error)
	}
	return true, nil
}

// Identities returns the identities of a user, sorted by issuer.
func (s *Store) Identities(ctx context.Context, user space.UserID) ([]Identity, error) {
	var rows []identityRow
	if err := s.db.Read(ctx).Where("user_id = ?", string(user)).Order("issuer, created, subject").Find(&rows).Error; err != nil {
		return nil, fmt.Errorf("list identities: %w", err)
	}
	out := make([]Identity, len(rows))
	for i, r := range rows {
		out[i] = Identity{User: space.UserID(r.UserID), Issuer: r.Issuer, Subject: r.Subject, Label: r.Label, Email: r.Email, Created: database.Time(r.Created)}
	}
	return out, nil
}

// UnlinkIdentity removes an identity of a user. If it is their last way to sign in, only
// sign-in links remain. The error is a fault.NotFound if the user does not have the identity.
func (s *Store) UnlinkIdentity(ctx context.Context, by Actor, user space.UserID, issuer, subject string) error {
	issuer, subject = lookup(issuer), lookup(subject)
	return s.db.Transact(ctx, func(tx *gorm.DB) error {
		if err := s.lockUsers(tx); err != nil {
			return err
		}
		done := tx.Exec("DELETE FROM auth_identities WHERE user_id = ? AND issuer = ? AND subject = ?", string(user), issuer, subject)
		if done.Error != nil {
			return fmt.Errorf("unlink identity: %w", done.Error)
		}
		if done.RowsAffected == 0 {
			return fault.New(fault.NotFound, "There is no such sign-in.")
		}
		// Without this update, the user's own row would reserve the identity for ever.
		err := tx.Exec("UPDATE auth_users SET issuer = ?, subject = id WHERE id = ? AND issuer = ? AND subject = ?", LocalIssuer, string(user), issuer, subject).Error
		if err != nil {
			return fmt.Errorf("unlink identity: %w", err)
		}
		return s.record(tx, by, "identity.unlink", string(user), map[string]any{"issuer": issuer, "subject": subject})
	})
}
