package syncs

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"gorm.io/gorm"
	"gorm.io/gorm/clause"

	"satchel/gitstore/sources"
	"satchel/gitstore/sources/upstream"
	"satchel/internal/database"
	"satchel/internal/fault"
	"satchel/internal/space"
)

type syncRow struct {
	SourceID string `gorm:"primaryKey"`
	SpaceID  string
	Kind     string
	Settings string // JSON
	Trusted  bool   // the operator added the source
	Origin   string // a space.SyncOrigin
	Every    int64  // milliseconds
	Paused   bool   // a person stopped the schedule
	State    string
	Problem  string
	Version  string // the version of upstream that the source shows
	CommitID string // the commit that the source shows
	Checked  int64
	Next     int64
	Failures int    // how many syncs failed in a row
	Package  string // JSON of what upstream says about its package

	by space.UserID // the person who asked for a preview; see tokenFor
}

func (syncRow) TableName() string { return "syncs" }

func (r syncRow) sync() space.Sync {
	return space.Sync{
		Source: r.SourceID, Space: space.SpaceID(r.SpaceID), Kind: space.SourceKind(r.Kind), Settings: json.RawMessage(r.Settings),
		Upstream: withoutPassword(addressOf(r)), Origin: space.SyncOrigin(r.Origin), Every: r.Every / 1000, Paused: r.Paused,
		State: space.SyncState(r.State), Problem: r.Problem, Version: r.Version,
		Checked: database.Time(r.Checked), Next: database.Time(r.Next), Runs: []space.SyncRun{},
	}
}

// every returns the interval of the schedule; 0 if the source has none.
func (r syncRow) every() time.Duration {
	if r.Paused || r.Origin == string(space.OriginLeft) || r.State == string(space.SyncEnded) {
		return 0
	}
	return time.Duration(r.Every) * time.Millisecond
}

// fileRow is a file of the manifest, which lists the files of the last complete sync.
type fileRow struct {
	SourceID string `gorm:"primaryKey"`
	Path     string `gorm:"primaryKey"`
	Title    string
	URL      string
	Tag      string
	Changed  int64
	BlobID   string
	Size     int64
}

func (fileRow) TableName() string { return "syncs_files" }

func (r fileRow) file() stagedFile {
	return stagedFile{
		File: upstream.File{Path: space.Path(r.Path), Title: r.Title, URL: r.URL, Tag: r.Tag, Changed: database.Time(r.Changed)},
		Blob: space.BlobID(r.BlobID), Size: r.Size,
	}
}

type runRow struct {
	ID        string `gorm:"primaryKey"`
	SourceID  string
	ResetAll  bool
	Confirmed bool
	Started   int64
	Ended     int64
	State     string
	Problem   string
	Version   string
	CommitID  string
	Counts    string // JSON
}

func (runRow) TableName() string { return "syncs_runs" }

func (r runRow) run() space.SyncRun {
	out := space.SyncRun{
		ID: r.ID, Source: r.SourceID, State: space.SyncState(r.State), Problem: r.Problem, Version: r.Version, Commit: space.CommitID(r.CommitID),
		Started: database.Time(r.Started), Ended: database.Time(r.Ended),
	}
	_ = json.Unmarshal([]byte(r.Counts), &out.SyncCounts) // counts of a run that has not ended are empty
	return out
}

// manifest returns the files of the last complete sync.
func (m *Manager) manifest(ctx context.Context, id string) ([]stagedFile, error) {
	var rows []fileRow
	if err := m.o.DB.Read(ctx).Where("source_id = ?", id).Order("path").Find(&rows).Error; err != nil {
		return nil, fmt.Errorf("read a manifest: %w", err)
	}
	out := make([]stagedFile, len(rows))
	for i, r := range rows {
		out[i] = r.file()
	}
	return out, nil
}

// rowsAtOnce limits the rows of one INSERT, since databases limit the parameters.
const rowsAtOnce = 500

// storeManifest replaces the manifest.
func (m *Manager) storeManifest(ctx context.Context, id string, files []stagedFile) error {
	rows := make([]fileRow, len(files))
	for i, f := range files {
		rows[i] = fileRow{
			SourceID: id, Path: string(f.Path), Title: f.Title, URL: f.URL, Tag: f.Tag, Changed: database.Millis(f.Changed),
			BlobID: string(f.Blob), Size: f.Size,
		}
	}
	return m.o.DB.Transact(ctx, func(tx *gorm.DB) error {
		err := tx.Where("source_id = ?", id).Delete(&fileRow{}).Error
		if err == nil && len(rows) > 0 {
			err = tx.CreateInBatches(rows, rowsAtOnce).Error
		}
		if err != nil {
			return fmt.Errorf("store a manifest: %w", err)
		}
		return nil
	})
}

// store writes the row of a sync.
func (m *Manager) store(ctx context.Context, row syncRow) error {
	return m.o.DB.Transact(ctx, func(tx *gorm.DB) error {
		if err := tx.Clauses(clause.OnConflict{UpdateAll: true}).Create(&row).Error; err != nil {
			return fmt.Errorf("store a sync: %w", err)
		}
		return nil
	})
}

// storeNew writes the row of a new sync. The error is a fault.Conflict if the source already
// has a row.
func (m *Manager) storeNew(ctx context.Context, row syncRow) error {
	return m.o.DB.Transact(ctx, func(tx *gorm.DB) error {
		err := tx.Create(&row).Error
		if database.IsDuplicate(err) {
			return sources.Taken(row.SourceID)
		}
		if err != nil {
			return fmt.Errorf("store a sync: %w", err)
		}
		return nil
	})
}

func (m *Manager) deleteRows(ctx context.Context, id string) error {
	return m.o.DB.Transact(ctx, func(tx *gorm.DB) error {
		for _, row := range []any{&syncRow{}, &fileRow{}, &runRow{}} {
			if err := tx.Where("source_id = ?", id).Delete(row).Error; err != nil {
				return fmt.Errorf("delete a sync: %w", err)
			}
		}
		return nil
	})
}

// maxRuns is how many runs of a source are kept.
const maxRuns = 50

// beginRun stores a run that has begun.
func (m *Manager) beginRun(ctx context.Context, r *run) error {
	row := runRow{ID: r.Run, SourceID: r.Source, ResetAll: r.Reset, Confirmed: r.Confirm, Started: database.Millis(r.started), State: string(space.SyncRunning), Counts: "{}"}
	return m.o.DB.Transact(ctx, func(tx *gorm.DB) error {
		if err := tx.Create(&row).Error; err != nil {
			return fmt.Errorf("store a run: %w", err)
		}
		return nil
	})
}

// endRun stores how a run ended, together with the new row of its sync. A run that found no
// changes is deleted.
func (m *Manager) endRun(ctx context.Context, row syncRow, r space.SyncRun) error {
	counts, err := json.Marshal(r.SyncCounts)
	if err != nil {
		return err
	}
	return m.o.DB.Transact(ctx, func(tx *gorm.DB) error {
		of := tx.Model(&runRow{}).Where("id = ?", r.ID)
		if r.State == space.SyncUnchanged {
			err = tx.Where("id = ?", r.ID).Delete(&runRow{}).Error
		} else {
			err = of.Updates(map[string]any{
				"ended": database.Millis(r.Ended), "state": string(r.State), "problem": r.Problem, "version": r.Version,
				"commit_id": string(r.Commit), "counts": string(counts),
			}).Error
		}
		if err == nil {
			// One run of a source runs at a time, so any other run without an end was interrupted.
			err = tx.Model(&runRow{}).Where("source_id = ? AND ended = 0 AND id <> ?", r.Source, r.ID).Updates(map[string]any{
				"ended": database.Millis(r.Ended), "state": string(space.SyncFailed), "problem": fault.PublicOf(errInterrupted),
			}).Error
		}
		if err == nil {
			err = tx.Exec(`DELETE FROM syncs_runs WHERE source_id = ? AND ended <> 0 AND id NOT IN
				(SELECT id FROM syncs_runs WHERE source_id = ? ORDER BY started DESC, id DESC LIMIT ?)`, r.Source, r.Source, maxRuns).Error
		}
		if err == nil {
			// Insert no row, because the source may have been removed meanwhile.
			err = tx.Model(&syncRow{}).Where("source_id = ?", row.SourceID).Updates(map[string]any{
				"state": row.State, "problem": row.Problem, "version": row.Version, "commit_id": row.CommitID,
				"checked": row.Checked, "next": row.Next, "failures": row.Failures, "package": row.Package,
			}).Error
		}
		if err != nil {
			return fmt.Errorf("store the end of a run: %w", err)
		}
		return nil
	})
}

// runs returns the last runs of a source, newest first.
func (m *Manager) runs(ctx context.Context, id string) ([]space.SyncRun, error) {
	var rows []runRow
	if err := m.o.DB.Read(ctx).Where("source_id = ?", id).Order("started DESC, id DESC").Limit(maxRuns).Find(&rows).Error; err != nil {
		return nil, fmt.Errorf("list the runs of a sync: %w", err)
	}
	out := make([]space.SyncRun, len(rows))
	for i, r := range rows {
		out[i] = r.run()
	}
	return out, nil
}
