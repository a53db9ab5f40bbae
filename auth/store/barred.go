package store

import (
	"context"
	"fmt"

	"gorm.io/gorm"
	"gorm.io/gorm/clause"
)

// barredRow keeps how a removed user signed in, so that the allow list, which may
// name them still, does not let them in again by itself.
type barredRow struct {
	Issuer   string `gorm:"primaryKey"` // empty: of an address alone
	Subject  string `gorm:"primaryKey"`
	EmailKey string
	At       int64
}

func (barredRow) TableName() string { return "auth_barred" }

// Barred reports whether somebody was a user and was removed, by the identity or by
// the verified address that they sign in with; email may be empty. It is over once
// they accept an invitation.
func (s *Store) Barred(ctx context.Context, issuer, subject, email string) (bool, error) {
	var n int64
	err := s.db.Read(ctx).Model(&barredRow{}).
		Where("(issuer = ? AND subject = ?) OR (email_key <> '' AND email_key = ?)", lookup(issuer), lookup(subject), lookup(lowerASCII(email))).
		Limit(1).Count(&n).Error
	if err != nil {
		return false, fmt.Errorf("look up who was removed: %w", err)
	}
	return n > 0, nil
}

// bar remembers a user's identities and addresses, before they are deleted.
func bar(tx *gorm.DB, u userRow, now int64) error {
	var ids []identityRow
	if err := tx.Where("user_id = ?", u.ID).Find(&ids).Error; err != nil {
		return fmt.Errorf("look up sign-ins: %w", err)
	}
	var rows []barredRow
	for _, i := range ids {
		rows = append(rows, barredRow{Issuer: i.Issuer, Subject: i.Subject, EmailKey: lowerASCII(i.Email), At: now})
	}
	if key := lowerASCII(u.Email); key != "" {
		rows = append(rows, barredRow{Subject: key, EmailKey: key, At: now})
	}
	if len(rows) == 0 {
		return nil
	}
	if err := tx.Clauses(clause.OnConflict{UpdateAll: true}).Create(&rows).Error; err != nil {
		return fmt.Errorf("remember who was removed: %w", err)
	}
	return nil
}

// unbar forgets it of a user whom an invitation let in again.
func unbar(tx *gorm.DB, u userRow) error {
	err := tx.Exec(`DELETE FROM auth_barred WHERE (email_key <> '' AND email_key = ?)
		OR EXISTS (SELECT 1 FROM auth_identities i WHERE i.user_id = ? AND i.issuer = auth_barred.issuer AND i.subject = auth_barred.subject)`, lowerASCII(u.Email), u.ID).Error
	if err != nil {
		return fmt.Errorf("forget who was removed: %w", err)
	}
	return nil
}
