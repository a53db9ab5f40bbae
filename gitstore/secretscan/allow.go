package secretscan

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

type allowedRow struct {
	SpaceID     string `gorm:"primaryKey"`
	Fingerprint string `gorm:"primaryKey"`
	Rule        string
	Path        string
	AllowedBy   string
	At          int64
}

func (allowedRow) TableName() string { return "secretscan_allowed" }

// Migrations returns the steps that make this package's table, for
// database.Migrate.
func Migrations() []database.Migration {
	const table = `
CREATE TABLE secretscan_allowed (
	space_id TEXT NOT NULL,
	fingerprint TEXT NOT NULL,
	rule TEXT NOT NULL,
	path TEXT NOT NULL,
	allowed_by TEXT NOT NULL,
	at BIGINT NOT NULL,
	PRIMARY KEY (space_id, fingerprint)
);`
	return []database.Migration{{
		Package: "gitstore/secretscan", Version: 1, Name: "allowed secrets", SQLite: table, Postgres: table,
	}}
}

// Allow lets a secret be committed to a space. Allowing it again replaces the allowance.
// The caller checks permissions. The error is a fault.Invalid for an invalid fingerprint.
func (s *Scanner) Allow(ctx context.Context, a space.SecretAllowance) error {
	if err := checkFingerprint(a.Fingerprint); err != nil {
		return err
	}
	if a.At.IsZero() {
		a.At = time.Now()
	}
	if at, ok := s.whereRefused(a.Space, a.Fingerprint); ok && a.Rule == "" && a.Path == "" {
		a.Rule, a.Path = at.rule, at.path
	}
	row := allowedRow{SpaceID: string(a.Space), Fingerprint: a.Fingerprint, Rule: a.Rule, Path: string(a.Path), AllowedBy: a.By, At: database.Millis(a.At)}
	return s.db.Transact(ctx, func(tx *gorm.DB) error {
		if err := tx.Clauses(clause.OnConflict{UpdateAll: true}).Create(&row).Error; err != nil {
			return fmt.Errorf("allow a secret: %w", err)
		}
		return nil
	})
}

// Disallow removes an allowance. Files that were committed under it stay. The error is a
// fault.NotFound if there is none.
func (s *Scanner) Disallow(ctx context.Context, id space.SpaceID, fingerprint string) error {
	if err := checkFingerprint(fingerprint); err != nil {
		return err
	}
	return s.db.Transact(ctx, func(tx *gorm.DB) error {
		done := tx.Where("space_id = ? AND fingerprint = ?", string(id), fingerprint).Delete(&allowedRow{})
		if done.Error != nil {
			return fmt.Errorf("disallow a secret: %w", done.Error)
		}
		if done.RowsAffected == 0 {
			return fault.New(fault.NotFound, "No secret with the fingerprint %s is allowed in this space.", fingerprint)
		}
		return nil
	})
}

// Forget removes the allowances of a deleted space.
func (s *Scanner) Forget(ctx context.Context, id space.SpaceID) error {
	return s.db.Transact(ctx, func(tx *gorm.DB) error {
		if err := tx.Where("space_id = ?", string(id)).Delete(&allowedRow{}).Error; err != nil {
			return fmt.Errorf("forget allowed secrets: %w", err)
		}
		return nil
	})
}

// List returns a space's allowances, newest first.
func (s *Scanner) List(ctx context.Context, id space.SpaceID) ([]space.SecretAllowance, error) {
	var rows []allowedRow
	if err := s.db.Read(ctx).Where("space_id = ?", string(id)).Order("at DESC, fingerprint").Find(&rows).Error; err != nil {
		return nil, fmt.Errorf("list allowed secrets: %w", err)
	}
	out := make([]space.SecretAllowance, len(rows))
	for i, r := range rows {
		out[i] = space.SecretAllowance{Space: space.SpaceID(r.SpaceID), Fingerprint: r.Fingerprint, Rule: r.Rule, Path: space.Path(r.Path), By: r.AllowedBy, At: database.Time(r.At)}
	}
	return out, nil
}

// allowed returns which of the fingerprints a space allows. It asks the database each time:
// findings are rare, and another process may have just allowed one.
func (s *Scanner) allowed(ctx context.Context, id space.SpaceID, fingerprints []string) (map[string]bool, error) {
	out := map[string]bool{}
	if s.db == nil || len(fingerprints) == 0 {
		return out, nil
	}
	var found []string
	err := s.db.Read(ctx).Model(&allowedRow{}).Where("space_id = ? AND fingerprint IN ?", string(id), fingerprints).Pluck("fingerprint", &found).Error
	if err != nil {
		return nil, fault.Wrap(err, fault.Unavailable, "The list of allowed secrets cannot be read now; try again.")
	}
	for _, f := range found {
		out[f] = true
	}
	return out, nil
}

func checkFingerprint(s string) error {
	if len(s) == 20 {
		ok := true
		for _, c := range s {
			ok = ok && (c >= '0' && c <= '9' || c >= 'a' && c <= 'f')
		}
		if ok {
			return nil
		}
	}
	return fault.New(fault.Invalid, "A fingerprint has 20 hexadecimal digits; the error about the file shows it.")
}
