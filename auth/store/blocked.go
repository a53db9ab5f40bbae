package store

import (
	"context"
	"fmt"

	"gorm.io/gorm"
	"gorm.io/gorm/clause"
)

// blockedRow records how a removed user signed in. The allow list may still contain them,
// and must not admit them again.
type blockedRow struct {
	Issuer   string `gorm:"primaryKey"` // empty if the row blocks an address
	Subject  string `gorm:"primaryKey"`
	EmailKey string
	At       int64
}

func (blockedRow) TableName() string { return "auth_barred" }

// Blocked reports whether a removed user had this identity or this verified address;
// email may be empty. An accepted invitation ends the block.
func (s *Store) Blocked(ctx context.Context, issuer, subject, email string) (bool, error) {
	var n int64
	err := s.db.Read(ctx).Model(&blockedRow{}).
		Where("(issuer = ? AND subject = ?) OR (email_key <> '' AND email_key = ?)", lookup(issuer), lookup(subject), lookup(lowerASCII(email))).
		Limit(1).Count(&n).Error
	if err != nil {
		return false, fmt.Errorf("look up removed users: %w", err)
	}
	return n > 0, nil
}

// block records a user's identities and addresses before they are deleted.
func block(tx *gorm.DB, u userRow, now int64) error {
	var ids []identityRow
	if err := tx.Where("user_id = ?", u.ID).Find(&ids).Error; err != nil {
		return fmt.Errorf("look up sign-ins: %w", err)
	}
	var rows []blockedRow
	for _, i := range ids {
		rows = append(rows, blockedRow{Issuer: i.Issuer, Subject: i.Subject, EmailKey: lowerASCII(i.Email), At: now})
	}
	if key := lowerASCII(u.Email); key != "" {
		rows = append(rows, blockedRow{Subject: key, EmailKey: key, At: now})
	}
	if len(rows) == 0 {
		return nil
	}
	if err := tx.Clauses(clause.OnConflict{UpdateAll: true}).Create(&rows).Error; err != nil {
		return fmt.Errorf("block a removed user: %w", err)
	}
	return nil
}

// unblock ends the block of a user who accepted an invitation.
func unblock(tx *gorm.DB, u userRow) error {
	err := tx.Exec(`DELETE FROM auth_barred WHERE (email_key <> '' AND email_key = ?)
		OR EXISTS (SELECT 1 FROM auth_identities i WHERE i.user_id = ? AND i.issuer = auth_barred.issuer AND i.subject = auth_barred.subject)`, lowerASCII(u.Email), u.ID).Error
	if err != nil {
		return fmt.Errorf("unblock a user: %w", err)
	}
	return nil
}
