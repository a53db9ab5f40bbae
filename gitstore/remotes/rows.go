package remotes

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"gorm.io/gorm"
	"gorm.io/gorm/clause"

	"satchel/internal/database"
	"satchel/internal/space"
)

// storeTimeout limits a write that must happen even if its sync is cancelled.
const storeTimeout = 10 * time.Second

type remoteRow struct {
	SpaceID  string `gorm:"primaryKey"`
	URL      string
	Branch   string
	Chosen   bool
	Trusted  bool
	Kind     string
	Username string
	Secret   []byte
	Created  int64
	Changed  int64
}

func (remoteRow) TableName() string { return "remotes" }

func (r remoteRow) remote() space.Remote {
	return space.Remote{
		Space: space.SpaceID(r.SpaceID), URL: r.URL, Branch: r.Branch, Chosen: r.Chosen, Trusted: r.Trusted, Kind: space.RemoteKind(r.Kind),
		Username: r.Username, Created: database.Time(r.Created), Changed: database.Time(r.Changed),
	}
}

func rowOf(r space.Remote, sealed []byte) remoteRow {
	return remoteRow{
		SpaceID: string(r.Space), URL: r.URL, Branch: r.Branch, Chosen: r.Chosen, Trusted: r.Trusted, Kind: string(r.Kind),
		Username: r.Username, Secret: sealed, Created: database.Millis(r.Created), Changed: database.Millis(r.Changed),
	}
}

type syncedRow struct {
	SpaceID      string `gorm:"primaryKey"`
	LastCheck    int64
	LastSync     int64
	FailingSince int64
	WaitUntil    int64
	Attempts     int
	Problem      string
	Detail       string
	Remedy       string
	Locations    string // JSON
}

func (syncedRow) TableName() string { return "remotes_synced" }

type noticeRow struct {
	ID      int64 `gorm:"primaryKey"`
	SpaceID string
	At      int64
	Text    string
}

func (noticeRow) TableName() string { return "remotes_notices" }

type seenRow struct {
	SpaceID  string `gorm:"primaryKey"`
	UserID   string `gorm:"primaryKey"`
	NoticeID int64
}

func (seenRow) TableName() string { return "remotes_seen" }

// outcome is the outcome of the last sync of a space.
type outcome struct {
	lastCheck, lastSync, failingSince time.Time
	// waitUntil is the time until which the remote asked us to wait.
	waitUntil time.Time

	attempts       int
	problem        Problem
	detail, remedy string
	locations      []space.RemoteLocation
}

func (o outcome) row(id space.SpaceID) (syncedRow, error) {
	at := ""
	if len(o.locations) > 0 {
		b, err := json.Marshal(o.locations)
		if err != nil {
			return syncedRow{}, err
		}
		at = string(b)
	}
	return syncedRow{
		SpaceID: string(id), LastCheck: database.Millis(o.lastCheck), LastSync: database.Millis(o.lastSync), FailingSince: database.Millis(o.failingSince), WaitUntil: database.Millis(o.waitUntil),
		Attempts: o.attempts, Problem: string(o.problem), Detail: o.detail, Remedy: o.remedy, Locations: at,
	}, nil
}

func (r syncedRow) outcome() outcome {
	o := outcome{
		lastCheck: database.Time(r.LastCheck), lastSync: database.Time(r.LastSync), failingSince: database.Time(r.FailingSince), waitUntil: database.Time(r.WaitUntil),
		attempts: r.Attempts, problem: Problem(r.Problem), detail: r.Detail, remedy: r.Remedy,
	}
	if r.Locations != "" && json.Unmarshal([]byte(r.Locations), &o.locations) != nil {
		o.locations = nil // the next attempt finds them again
	}
	return o
}

// loadRows reads everything that Load needs.
func (m *Manager) loadRows(ctx context.Context) ([]*entry, map[space.SpaceID]*notices, error) {
	db := m.o.DB.Read(ctx)
	var rows []remoteRow
	var synced []syncedRow
	var noted []noticeRow
	var seen []seenRow
	for _, q := range []*gorm.DB{db.Find(&rows), db.Find(&synced), db.Order("id").Find(&noted), db.Find(&seen)} {
		if q.Error != nil {
			return nil, nil, fmt.Errorf("load remotes: %w", q.Error)
		}
	}
	entries := make(map[string]*entry, len(rows))
	out := make([]*entry, 0, len(rows))
	for _, r := range rows {
		e := newEntry(r.remote(), r.Secret)
		entries[r.SpaceID] = e
		out = append(out, e)
	}
	for _, r := range synced {
		if e := entries[r.SpaceID]; e != nil {
			e.outcome = r.outcome()
			if time.Until(e.waitUntil) > 0 {
				e.nextTry, e.waitAsked = e.waitUntil, true
			}
		}
	}
	noticesOf := map[space.SpaceID]*notices{}
	for _, r := range noted {
		id := space.SpaceID(r.SpaceID)
		if noticesOf[id] == nil {
			noticesOf[id] = newNotices()
		}
		noticesOf[id].all = append(noticesOf[id].all, notice{id: r.ID, at: database.Time(r.At), text: r.Text})
	}
	for _, r := range seen {
		if n := noticesOf[space.SpaceID(r.SpaceID)]; n != nil {
			n.seen[space.UserID(r.UserID)] = r.NoticeID
		}
	}
	return out, noticesOf, nil
}

// storeRemote writes a remote. If another is true, the remote replaces a different one, whose
// outcome is deleted.
func (m *Manager) storeRemote(ctx context.Context, r space.Remote, sealed []byte, another bool) error {
	return m.o.DB.Transact(ctx, func(tx *gorm.DB) error {
		row := rowOf(r, sealed)
		if err := tx.Clauses(clause.OnConflict{UpdateAll: true}).Create(&row).Error; err != nil {
			return fmt.Errorf("store remote: %w", err)
		}
		if !another {
			return nil
		}
		return dropState(tx, r.Space)
	})
}

func (m *Manager) deleteRemote(ctx context.Context, id space.SpaceID) error {
	return m.o.DB.Transact(ctx, func(tx *gorm.DB) error {
		if err := tx.Delete(&remoteRow{SpaceID: string(id)}).Error; err != nil {
			return fmt.Errorf("delete remote: %w", err)
		}
		return dropState(tx, id)
	})
}

// dropState removes the outcome of the last sync. The notices stay, because they are about
// the space.
func dropState(tx *gorm.DB, id space.SpaceID) error {
	if err := tx.Delete(&syncedRow{SpaceID: string(id)}).Error; err != nil {
		return fmt.Errorf("forget a remote's state: %w", err)
	}
	return nil
}

func (m *Manager) storeBranch(ctx context.Context, id space.SpaceID, branch string) error {
	return m.o.DB.Transact(ctx, func(tx *gorm.DB) error {
		if err := tx.Model(&remoteRow{}).Where("space_id = ?", string(id)).Update("branch", branch).Error; err != nil {
			return fmt.Errorf("store branch: %w", err)
		}
		return nil
	})
}

func (m *Manager) storeOutcome(ctx context.Context, id space.SpaceID, o outcome) error {
	row, err := o.row(id)
	if err != nil {
		return fmt.Errorf("store sync: %w", err)
	}
	return m.o.DB.Transact(ctx, func(tx *gorm.DB) error {
		if err := tx.Clauses(clause.OnConflict{UpdateAll: true}).Create(&row).Error; err != nil {
			return fmt.Errorf("store sync: %w", err)
		}
		return nil
	})
}
