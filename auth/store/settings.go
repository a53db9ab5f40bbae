package store

import (
	"context"
	"fmt"

	"gorm.io/gorm"
)

// Setting returns a setting that an admin chose on the pages, or "" if the configuration decides.
func (s *Store) Setting(ctx context.Context, name string) (string, error) {
	var values []string
	if err := s.db.Read(ctx).Raw("SELECT value FROM auth_settings WHERE name = ?", name).Scan(&values).Error; err != nil {
		return "", fmt.Errorf("read the setting %s: %w", name, err)
	}
	if len(values) == 0 {
		return "", nil
	}
	return values[0], nil
}

// SetSetting stores the value of a setting. With an empty value, the configuration decides again.
func (s *Store) SetSetting(ctx context.Context, by Actor, name, value string) error {
	return s.db.Transact(ctx, func(tx *gorm.DB) error {
		if err := tx.Exec("DELETE FROM auth_settings WHERE name = ?", name).Error; err != nil {
			return fmt.Errorf("set %s: %w", name, err)
		}
		if value != "" {
			if err := tx.Exec("INSERT INTO auth_settings (name, value) VALUES (?, ?)", name, value).Error; err != nil {
				return fmt.Errorf("set %s: %w", name, err)
			}
		}
		return s.record(tx, by, "settings.set", name, map[string]any{"value": value})
	})
}
