package reviews

import (
	"context"
	"fmt"

	"gorm.io/gorm"
	"gorm.io/gorm/clause"

	"satchel/internal/space"
)

// makerRow is who made first, at a path, a content that nobody knew then; an empty blob
// is that it was deleted. A person's act may bring it back long after.
type makerRow struct {
	SpaceID  string `gorm:"primaryKey"`
	Path     string `gorm:"primaryKey"`
	Blob     string `gorm:"primaryKey"`
	Mode     int    `gorm:"primaryKey;autoIncrement:false"`
	CommitID string
	Tool     string
	Client   string
	Changed  int64
}

func (makerRow) TableName() string { return "reviews_makers" }

// makers are who made what waited, of what was not saved yet.
type makers struct {
	of    map[space.Path]map[content]maker
	again bool // what was saved is of another history
}

// note remembers who made what waits.
func (m *makers) note(x *row) {
	if x.baseline() == x.now {
		return
	}
	p := space.Path(x.Path)
	if m.of == nil {
		m.of = map[space.Path]map[content]maker{}
	}
	if m.of[p] == nil {
		m.of[p] = map[content]maker{}
	}
	if _, ok := m.of[p][x.now]; !ok {
		m.of[p][x.now] = x.maker()
	}
}

func (m *makers) save(tx *gorm.DB, id space.SpaceID) error {
	if m.again {
		if err := tx.Where("space_id = ?", string(id)).Delete(&makerRow{}).Error; err != nil {
			return fmt.Errorf("forget who made what waited: %w", err)
		}
	}
	var put []makerRow
	for p, of := range m.of {
		for k, by := range of {
			put = append(put, makerRow{string(id), string(p), string(k.blob), int(k.mode), by.commit, by.tool, by.client, by.at})
		}
	}
	if len(put) == 0 {
		return nil
	}
	if err := tx.Clauses(clause.OnConflict{DoNothing: true}).CreateInBatches(put, 100).Error; err != nil {
		return fmt.Errorf("keep who made what waits: %w", err)
	}
	return nil
}

// broughtBack names, of a content that a person's act brought back, who had made it,
// where that is known.
func (w *stepper) broughtBack(ctx context.Context, x *row) error {
	var saved []makerRow
	if !w.makers.again {
		err := w.o.DB.Read(ctx).Where("space_id = ? AND path = ? AND blob = ? AND mode = ?", string(w.id), x.Path, string(x.now.blob), int(x.now.mode)).Limit(1).Find(&saved).Error
		if err != nil {
			return fmt.Errorf("find who made what is back: %w", err)
		}
	}
	for _, s := range saved {
		x.madeBy(maker{s.CommitID, s.Tool, s.Client, s.Changed})
		return nil
	}
	if by, ok := w.makers.of[space.Path(x.Path)][x.now]; ok {
		x.madeBy(by)
	}
	return nil
}
