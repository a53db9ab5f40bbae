package reviews

import (
	"context"
	"fmt"

	"gorm.io/gorm"
	"gorm.io/gorm/clause"

	"satchel/internal/database"
	"satchel/internal/space"
)

// row is what is known of a content at a path.
type row struct {
	SpaceID string `gorm:"primaryKey"`
	Path    string `gorm:"primaryKey"`
	Blob    string `gorm:"primaryKey"` // empty: the file is not there

	CommitID     string // that made it
	Base         string // that has the version before, which a person knows
	Tool, Client string
	Changed      int64 // by the commit
	Decision     string
	DecidedBy    string
	DecidedAt    int64
}

func (row) TableName() string { return "reviews_contents" }

func (r row) decision() Decision { return Decision(r.Decision) }

func (r row) review() Review {
	return Review{
		Path: space.Path(r.Path), Blob: space.BlobID(r.Blob), Commit: space.CommitID(r.CommitID), Base: space.CommitID(r.Base),
		Tool: r.Tool, Client: r.Client, When: database.Time(r.Changed),
	}
}

type key struct {
	path space.Path
	blob space.BlobID
}

// Migrations returns the steps that make this package's table, for
// database.Migrate.
func Migrations() []database.Migration {
	const table = `
CREATE TABLE reviews_contents (
	space_id TEXT NOT NULL,
	path TEXT NOT NULL,
	blob TEXT NOT NULL,
	commit_id TEXT NOT NULL,
	base TEXT NOT NULL,
	tool TEXT NOT NULL,
	client TEXT NOT NULL,
	changed BIGINT NOT NULL,
	decision TEXT NOT NULL,
	decided_by TEXT NOT NULL,
	decided_at BIGINT NOT NULL,
	PRIMARY KEY (space_id, path, blob)
);`
	return []database.Migration{{
		Package: "gitstore/reviews", Version: 1, Name: "what people confirmed", SQLite: table, Postgres: table,
	}}
}

// known returns what is remembered of a space.
func (r *Reviews) known(ctx context.Context, id space.SpaceID) (map[key]row, error) {
	var rows []row
	if err := r.o.DB.Read(ctx).Where("space_id = ?", string(id)).Find(&rows).Error; err != nil {
		return nil, fmt.Errorf("list what was confirmed: %w", err)
	}
	out := make(map[key]row, len(rows))
	for _, x := range rows {
		out[key{space.Path(x.Path), space.BlobID(x.Blob)}] = x
	}
	return out, nil
}

// store remembers what was found out. A decision that was made meanwhile stands,
// unless it was to undo: then the content has come back.
func (r *Reviews) store(ctx context.Context, id space.SpaceID, found []row) error {
	if len(found) == 0 {
		return nil
	}
	for i := range found {
		found[i].SpaceID = string(id)
	}
	return r.o.DB.Transact(ctx, func(tx *gorm.DB) error {
		err := tx.Clauses(clause.OnConflict{
			Columns:   []clause.Column{{Name: "space_id"}, {Name: "path"}, {Name: "blob"}},
			DoUpdates: clause.AssignmentColumns([]string{"commit_id", "base", "tool", "client", "changed", "decision", "decided_by", "decided_at"}),
			Where:     clause.Where{Exprs: []clause.Expression{clause.Expr{SQL: "reviews_contents.decision <> ?", Vars: []any{string(Kept)}}}},
		}).CreateInBatches(found, 100).Error
		if err != nil {
			return fmt.Errorf("remember who wrote a file: %w", err)
		}
		return nil
	})
}

// decide keeps a person's decision.
func (r *Reviews) decide(ctx context.Context, id space.SpaceID, w Review, d Decision, by space.UserID) error {
	return r.o.DB.Transact(ctx, func(tx *gorm.DB) error {
		done := tx.Model(&row{}).Where("space_id = ? AND path = ? AND blob = ?", string(id), string(w.Path), string(w.Blob)).
			Updates(map[string]any{"decision": string(d), "decided_by": string(by), "decided_at": database.Millis(r.o.Now())})
		if done.Error != nil {
			return fmt.Errorf("keep a decision: %w", done.Error)
		}
		if done.RowsAffected == 0 {
			return errNotWaiting(w.Path)
		}
		return nil
	})
}

// Decisions returns what people decided in a space, newest first.
func (r *Reviews) Decisions(ctx context.Context, id space.SpaceID, limit int) ([]Decided, error) {
	var rows []row
	err := r.o.DB.Read(ctx).Where("space_id = ? AND decision IN ?", string(id), []string{string(Kept), string(Undone)}).
		Order("decided_at DESC, path").Limit(limit).Find(&rows).Error
	if err != nil {
		return nil, fmt.Errorf("list decisions: %w", err)
	}
	out := make([]Decided, len(rows))
	for i, x := range rows {
		out[i] = Decided{
			Path: space.Path(x.Path), Blob: space.BlobID(x.Blob), Commit: space.CommitID(x.CommitID), Client: x.Client,
			Decision: x.decision(), By: space.UserID(x.DecidedBy), At: database.Time(x.DecidedAt),
		}
	}
	return out, nil
}

// Forget drops what is known of a space that is gone.
func (r *Reviews) Forget(ctx context.Context, id space.SpaceID) error {
	return r.o.DB.Transact(ctx, func(tx *gorm.DB) error {
		if err := tx.Where("space_id = ?", string(id)).Delete(&row{}).Error; err != nil {
			return fmt.Errorf("forget the reviews of a space: %w", err)
		}
		return nil
	})
}
