package reviews

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"gorm.io/gorm"
	"gorm.io/gorm/clause"

	"satchel/internal/space"
)

// waitedRow is a version of a file that waited for review and that nobody confirmed. A
// branch with this version may arrive at any later time.
type waitedRow struct {
	SpaceID string `gorm:"primaryKey"`
	Path    string `gorm:"primaryKey"`
	Blob    string `gorm:"primaryKey"` // empty if the file was deleted
	Mode    int    `gorm:"primaryKey;autoIncrement:false"`
}

func (waitedRow) TableName() string { return "reviews_waited" }

// at is a content at a path.
type at struct {
	path space.Path
	content
}

// waited holds the contents that began to wait (true) or were confirmed (false) since the last
// save.
type waited struct {
	is    map[at]bool
	again bool // the saved rows belong to another history
}

func (w *waited) note(p space.Path, k content, waits bool) {
	if w.is == nil {
		w.is = map[at]bool{}
	}
	w.is[at{p, k}] = waits
}

func (w *waited) save(tx *gorm.DB, id space.SpaceID) error {
	if w.again {
		if err := tx.Where("space_id = ?", string(id)).Delete(&waitedRow{}).Error; err != nil {
			return fmt.Errorf("forget what waited: %w", err)
		}
	}
	var put, confirmed []waitedRow
	for k, waits := range w.is {
		x := waitedRow{string(id), string(k.path), string(k.blob), int(k.mode)}
		switch {
		case waits:
			put = append(put, x)
		case !w.again: // otherwise the table has no rows of the space
			confirmed = append(confirmed, x)
		}
	}
	for batch := range slices.Chunk(confirmed, 1000) {
		values, args := make([]string, len(batch)), []any{string(id)}
		for i, x := range batch {
			values[i] = "(?, ?, CAST(? AS INTEGER))"
			args = append(args, x.Path, x.Blob, x.Mode)
		}
		q := "DELETE FROM reviews_waited WHERE space_id = ? AND (path, blob, mode) IN (VALUES " + strings.Join(values, ", ") + ")"
		if err := tx.Exec(q, args...).Error; err != nil {
			return fmt.Errorf("forget what was confirmed: %w", err)
		}
	}
	if len(put) == 0 {
		return nil
	}
	if err := tx.Clauses(clause.OnConflict{DoNothing: true}).CreateInBatches(put, 100).Error; err != nil {
		return fmt.Errorf("keep what waits: %w", err)
	}
	return nil
}

// hasWaited reports whether a content at a path waited and nobody confirmed it.
func (w *stepper) hasWaited(ctx context.Context, p space.Path, k content) (bool, error) {
	if waits, ok := w.waited.is[at{p, k}]; ok || w.waited.again {
		return waits, nil
	}
	var n int64
	err := w.o.DB.Read(ctx).Model(&waitedRow{}).Where("space_id = ? AND path = ? AND blob = ? AND mode = ?", string(w.id), string(p), string(k.blob), int(k.mode)).Count(&n).Error
	if err != nil {
		return false, fmt.Errorf("find what waited: %w", err)
	}
	return n > 0, nil
}
