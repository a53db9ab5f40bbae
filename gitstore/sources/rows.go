package sources

import (
	"context"
	"fmt"

	"gorm.io/gorm"
	"gorm.io/gorm/clause"

	"satchel/internal/database"
	"satchel/internal/fault"
	"satchel/internal/space"
)

type sourceRow struct {
	ID string `gorm:"primaryKey"`
	space.SourceText
	Kind       string
	SpaceID    string
	Dir        string
	Everybody  bool
	ByUser     string
	Published  int64
	Changed    int64
	Collection string
}

func (sourceRow) TableName() string { return "sources" }

type userRow struct {
	SourceID string `gorm:"primaryKey"`
	UserID   string `gorm:"primaryKey"`
}

func (userRow) TableName() string { return "sources_users" }

type syncedRow struct {
	Collection string `gorm:"primaryKey"`
	CommitID   string
	Synced     int64
	Files      int
	Bytes      int64
	Error      string
}

func (syncedRow) TableName() string { return "sources_synced" }

// endedRow is an ended publication that may still have an index.
type endedRow struct {
	Collection string `gorm:"primaryKey"`
}

func (endedRow) TableName() string { return "sources_ended" }

func rowOf(s space.Source) sourceRow {
	return sourceRow{
		ID: s.ID, SourceText: s.SourceText, Kind: string(s.Kind), SpaceID: string(s.Space), Dir: string(s.Dir),
		Everybody: s.Everybody, ByUser: string(s.By), Published: database.Millis(s.Published), Changed: database.Millis(s.Changed), Collection: string(s.Collection),
	}
}

func (r sourceRow) source() space.Source {
	return space.Source{
		ID: r.ID, SourceText: r.SourceText, Kind: space.SourceKind(r.Kind), Space: space.SpaceID(r.SpaceID), Dir: space.Path(r.Dir),
		Everybody: r.Everybody, By: space.UserID(r.ByUser), Published: database.Time(r.Published), Changed: database.Time(r.Changed), Collection: space.SpaceID(r.Collection),
		State: space.SourceWaiting,
	}
}

// loadRows reads every source.
func (m *Manager) loadRows(ctx context.Context) ([]space.Source, error) {
	db := m.o.DB.Read(ctx)
	var rows []sourceRow
	var users []userRow
	var synced []syncedRow
	for _, q := range []*gorm.DB{db.Order("id").Find(&rows), db.Order("user_id").Find(&users), db.Find(&synced)} {
		if q.Error != nil {
			return nil, fmt.Errorf("load sources: %w", q.Error)
		}
	}
	audience := map[string][]space.UserID{}
	for _, u := range users {
		audience[u.SourceID] = append(audience[u.SourceID], space.UserID(u.UserID))
	}
	last := map[string]syncedRow{}
	for _, r := range synced {
		last[r.Collection] = r
	}
	out := make([]space.Source, len(rows))
	for i, r := range rows {
		s := r.source()
		s.Users = audience[r.ID]
		if l, ok := last[r.Collection]; ok {
			s.Commit, s.Synced, s.Files, s.Bytes, s.Problem = space.CommitID(l.CommitID), database.Time(l.Synced), l.Files, l.Bytes, l.Error
			if l.Error != "" {
				s.State = space.SourceFailed
			}
		}
		out[i] = s
	}
	return out, nil
}

// storeSource writes a source with its audience. If fresh is true and the ID exists, the error is
// a fault.Conflict.
func (m *Manager) storeSource(ctx context.Context, s space.Source, fresh bool) error {
	return m.o.DB.Transact(ctx, func(tx *gorm.DB) error {
		row := rowOf(s)
		q := tx
		if !fresh {
			q = tx.Clauses(clause.OnConflict{UpdateAll: true})
		}
		if err := q.Create(&row).Error; err != nil {
			if database.IsDuplicate(err) {
				return Taken(s.ID)
			}
			return fmt.Errorf("store source: %w", err)
		}
		if err := tx.Where("source_id = ?", s.ID).Delete(&userRow{}).Error; err != nil {
			return fmt.Errorf("store source: %w", err)
		}
		for _, u := range s.Users {
			if err := tx.Create(&userRow{SourceID: s.ID, UserID: string(u)}).Error; err != nil {
				return fmt.Errorf("store source: %w", err)
			}
		}
		return nil
	})
}

// Taken returns the error for a new source whose ID another source has.
func Taken(id string) error {
	return fault.New(fault.Conflict, "There is already a source %q on this server. Choose another ID.", id).In(space.SourceName)
}

// deleteSource removes a source, and records that its index must be dropped.
func (m *Manager) deleteSource(ctx context.Context, s space.Source) error {
	return m.o.DB.Transact(ctx, func(tx *gorm.DB) error {
		for _, q := range []*gorm.DB{
			tx.Where("id = ? AND collection = ?", s.ID, string(s.Collection)).Delete(&sourceRow{}),
			tx.Where("source_id = ?", s.ID).Delete(&userRow{}),
			tx.Where("collection = ?", string(s.Collection)).Delete(&syncedRow{}),
			tx.Clauses(clause.OnConflict{DoNothing: true}).Create(&endedRow{Collection: string(s.Collection)}),
		} {
			if q.Error != nil {
				return fmt.Errorf("delete source: %w", q.Error)
			}
		}
		return nil
	})
}

func (m *Manager) storeSynced(ctx context.Context, s space.Source) error {
	row := syncedRow{Collection: string(s.Collection), CommitID: string(s.Commit), Synced: database.Millis(s.Synced), Files: s.Files, Bytes: s.Bytes, Error: s.Problem}
	return m.o.DB.Transact(ctx, func(tx *gorm.DB) error {
		if err := tx.Clauses(clause.OnConflict{UpdateAll: true}).Create(&row).Error; err != nil {
			return fmt.Errorf("store the state of a source: %w", err)
		}
		return nil
	})
}

// ended returns the ended publications that may still have an index.
func (m *Manager) ended(ctx context.Context) ([]space.SpaceID, error) {
	var rows []endedRow
	if err := m.o.DB.Read(ctx).Find(&rows).Error; err != nil {
		return nil, fmt.Errorf("list ended sources: %w", err)
	}
	out := make([]space.SpaceID, len(rows))
	for i, r := range rows {
		out[i] = space.SpaceID(r.Collection)
	}
	return out, nil
}

func (m *Manager) forgetEnded(ctx context.Context, c space.SpaceID) error {
	return m.o.DB.Transact(ctx, func(tx *gorm.DB) error {
		if err := tx.Delete(&endedRow{Collection: string(c)}).Error; err != nil {
			return fmt.Errorf("forget an ended source: %w", err)
		}
		return nil
	})
}
