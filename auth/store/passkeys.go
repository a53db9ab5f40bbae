package store

import (
	"context"
	"fmt"
	"time"

	"gorm.io/gorm"

	"satchel/internal/database"
	"satchel/internal/fault"
	"satchel/internal/space"
)

// Limits of passkeys. WebAuthn level 3 section 4 limits credential ids to 1023 bytes.
const (
	maxPasskeys        = 50
	maxPasskeyID       = 1023
	maxCredentialBytes = 64 << 10
)

// Passkey is a WebAuthn credential of a user. Credential holds no secret: the private key
// never leaves the authenticator.
type Passkey struct {
	ID         []byte // the id of the credential
	User       space.UserID
	Name       string // the person's name for the passkey; may be empty
	Credential []byte // encoded by auth/passkey
	Created    time.Time
	Used       time.Time // zero if never
}

type passkeyRow struct {
	ID            []byte `gorm:"primaryKey"`
	UserID, Name  string
	Credential    []byte
	Created, Used int64
}

func (passkeyRow) TableName() string { return "auth_passkeys" }

func (r passkeyRow) passkey() Passkey {
	return Passkey{
		ID: r.ID, User: space.UserID(r.UserID), Name: r.Name, Credential: r.Credential,
		Created: database.Time(r.Created), Used: database.Time(r.Used),
	}
}

func errNoPasskey() error { return fault.New(fault.NotFound, "There is no such passkey.") }

// AddPasskey adds a passkey to p.User, and sets Created and Used. The error is a
// fault.Conflict if any user has the credential already, a fault.Limited if p.User already has
// 50 passkeys, and a fault.Invalid for a malformed passkey.
func (s *Store) AddPasskey(ctx context.Context, by Actor, p Passkey) error {
	if err := checkLabel("name of the passkey", p.Name); err != nil {
		return err
	}
	if n := len(p.ID); n == 0 || n > maxPasskeyID || len(p.Credential) == 0 || len(p.Credential) > maxCredentialBytes {
		return fault.New(fault.Invalid, "The passkey is malformed.")
	}
	row := passkeyRow{ID: p.ID, UserID: string(p.User), Name: p.Name, Credential: p.Credential, Created: database.Millis(s.now())}
	return s.db.Transact(ctx, func(tx *gorm.DB) error {
		if _, err := s.lockActive(tx, p.User); err != nil {
			return err
		}
		var n int64
		if err := tx.Model(&passkeyRow{}).Where("user_id = ?", row.UserID).Count(&n).Error; err != nil {
			return fmt.Errorf("count passkeys: %w", err)
		}
		if n >= maxPasskeys {
			return fault.New(fault.Limited, "There are already %d passkeys; remove one first.", n)
		}
		if err := tx.Create(&row).Error; err != nil {
			if database.IsDuplicate(err) {
				return fault.New(fault.Conflict, "This passkey is already in use.")
			}
			return fmt.Errorf("add passkey: %w", err)
		}
		return s.record(tx, by, "passkey.add", row.UserID, map[string]any{"name": p.Name})
	})
}

// Passkeys returns the passkeys of a user, newest first.
func (s *Store) Passkeys(ctx context.Context, user space.UserID) ([]Passkey, error) {
	var rows []passkeyRow
	if err := s.db.Read(ctx).Where("user_id = ?", string(user)).Order("created DESC, id").Find(&rows).Error; err != nil {
		return nil, fmt.Errorf("list passkeys: %w", err)
	}
	out := make([]Passkey, len(rows))
	for i, r := range rows {
		out[i] = r.passkey()
	}
	return out, nil
}

// HasPasskeys reports whether anybody has a passkey.
func (s *Store) HasPasskeys(ctx context.Context) (bool, error) {
	var rows []passkeyRow
	if err := s.db.Read(ctx).Select("id").Limit(1).Find(&rows).Error; err != nil {
		return false, fmt.Errorf("look for a passkey: %w", err)
	}
	return len(rows) > 0, nil
}

// PasskeyByID returns the passkey with the credential id, and its user. The user may be
// suspended. The error is a fault.NotFound if there is no such passkey.
func (s *Store) PasskeyByID(ctx context.Context, id []byte) (User, Passkey, error) {
	var r passkeyRow
	if err := s.db.Read(ctx).Where("id = ?", id).Take(&r).Error; err != nil {
		return User{}, Passkey{}, notFound(err, "This passkey is not known here; it may have been removed.")
	}
	u, err := s.User(ctx, space.UserID(r.UserID))
	if err != nil {
		return User{}, Passkey{}, err
	}
	return u, r.passkey(), nil
}

// UsePasskey records a sign-in with a passkey. It also stores the credential, because its
// counter of uses has changed. The error is a fault.NotFound if there is no such passkey.
func (s *Store) UsePasskey(ctx context.Context, id, credential []byte) error {
	if len(credential) == 0 || len(credential) > maxCredentialBytes {
		return fault.New(fault.Invalid, "The passkey is malformed.")
	}
	return s.db.Transact(ctx, func(tx *gorm.DB) error {
		done := tx.Exec("UPDATE auth_passkeys SET credential = ?, used = ? WHERE id = ?", credential, s.now().UnixMilli(), id)
		if done.Error == nil && done.RowsAffected == 0 {
			return errNoPasskey()
		}
		return wrap("use passkey", done.Error)
	})
}

// RemovePasskey removes a passkey of a user. The error is a fault.NotFound if the user does
// not have the passkey.
func (s *Store) RemovePasskey(ctx context.Context, by Actor, user space.UserID, id []byte) error {
	return s.db.Transact(ctx, func(tx *gorm.DB) error {
		done := tx.Exec("DELETE FROM auth_passkeys WHERE id = ? AND user_id = ?", id, string(user))
		if done.Error != nil {
			return fmt.Errorf("remove passkey: %w", done.Error)
		}
		if done.RowsAffected == 0 {
			return errNoPasskey()
		}
		return s.record(tx, by, "passkey.remove", string(user), nil)
	})
}
