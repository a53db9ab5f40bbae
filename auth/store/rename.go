package store

import (
	"context"
	"fmt"

	"gorm.io/gorm"

	"satchel/internal/database"
	"satchel/internal/fault"
	"satchel/internal/space"
)

// RenameSpace gives a space another name. The error is a fault.Invalid for the
// name, a fault.Conflict if the owner has another space of that name, and a
// fault.NotFound if there is no such space.
func (s *Store) RenameSpace(ctx context.Context, by Actor, id space.SpaceID, name string) error {
	if err := CheckName(name); err != nil {
		return err
	}
	return s.db.Transact(ctx, func(tx *gorm.DB) error {
		var r spaceRow
		if err := tx.Where("id = ?", lookup(id)).Take(&r).Error; err != nil {
			return notFound(err, "There is no such space.")
		}
		if r.Name == name {
			return nil
		}
		if err := tx.Model(&spaceRow{}).Where("id = ?", r.ID).Update("name", name).Error; err != nil {
			if database.IsDuplicate(err) {
				return fault.New(fault.Conflict, "The user has a space %s already.", name)
			}
			return fmt.Errorf("rename space: %w", err)
		}
		return s.record(tx, by, "space.rename", r.ID, map[string]any{"name": name, "was": r.Name})
	})
}
