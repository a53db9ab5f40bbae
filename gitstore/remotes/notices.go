package remotes

import (
	"context"
	"fmt"
	"slices"
	"time"

	"gorm.io/gorm"
	"gorm.io/gorm/clause"

	"satchel/internal/database"
	"satchel/internal/space"
)

// notice is a message that every user of the space gets once.
type notice struct {
	id   int64
	at   time.Time
	text string
}

// notices are a space's notices, oldest first, and the last one that each person got.
type notices struct {
	all  []notice
	seen map[space.UserID]int64
}

func newNotices() *notices { return &notices{seen: map[space.UserID]int64{}} }

// fresh returns a space's notices that are not too old; nil if there are
// none. The caller holds m.mu.
func (m *Manager) fresh(id space.SpaceID) *notices {
	list := m.notices[id]
	if list == nil {
		return nil
	}
	list.all = slices.DeleteFunc(list.all, func(n notice) bool { return time.Since(n.at) >= m.o.NoticeAge })
	if len(list.all) == 0 {
		delete(m.notices, id)
		return nil
	}
	return list
}

// Notices returns what the next answer to a user must say about the space's remote:
// conflicts that a merge kept, a history that was rewritten, and the like. Each notice is
// returned once to each user, even after the remote was changed or removed. Notices only reads
// memory. A background write records the notices that were returned, so after a crash a user
// may get a notice twice, but misses none that was stored.
func (m *Manager) Notices(id space.SpaceID, user space.UserID) []string {
	m.mu.Lock()
	defer m.mu.Unlock()
	list := m.fresh(id)
	if list == nil {
		return nil
	}
	last := list.all[len(list.all)-1].id
	if list.seen[user] >= last {
		return nil
	}
	var out []string
	for _, n := range list.all {
		if n.id > list.seen[user] {
			out = append(out, n.text)
		}
	}
	list.seen[user] = last
	if !m.closed {
		m.work.Go(func() { m.storeSeen(id, user, last) })
	}
	return out
}

func (m *Manager) storeSeen(id space.SpaceID, user space.UserID, last int64) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(m.ctx), storeTimeout)
	defer cancel()
	err := m.o.DB.Transact(ctx, func(tx *gorm.DB) error {
		row := seenRow{SpaceID: string(id), UserID: string(user), NoticeID: last}
		return tx.Clauses(clause.OnConflict{
			Columns:   []clause.Column{{Name: "space_id"}, {Name: "user_id"}},
			DoUpdates: clause.AssignmentColumns([]string{"notice_id"}),
			Where:     clause.Where{Exprs: []clause.Expression{clause.Lt{Column: clause.Column{Table: "remotes_seen", Name: "notice_id"}, Value: last}}},
		}).Create(&row).Error
	})
	if err != nil {
		m.o.Logger.WarnContext(ctx, "a notice that was told is not marked as told", "space", id, "error", err)
	}
}

// dropNotices forgets the notices of a space that was deleted.
func (m *Manager) dropNotices(ctx context.Context, id space.SpaceID) error {
	m.mu.Lock()
	delete(m.notices, id)
	m.mu.Unlock()
	return m.o.DB.Transact(ctx, func(tx *gorm.DB) error {
		for _, row := range []any{&noticeRow{}, &seenRow{}} {
			if err := tx.Where("space_id = ?", string(id)).Delete(row).Error; err != nil {
				return fmt.Errorf("drop notices: %w", err)
			}
		}
		return nil
	})
}

// dropOldNotices removes expired notices from the table. Otherwise only new notices of a space
// remove its expired ones, and a space without a remote gets no new notices.
func (m *Manager) dropOldNotices(ctx context.Context) error {
	return m.o.DB.Transact(ctx, func(tx *gorm.DB) error {
		if err := tx.Where("at < ?", database.Millis(time.Now().Add(-m.o.NoticeAge))).Delete(&noticeRow{}).Error; err != nil {
			return fmt.Errorf("drop old notices: %w", err)
		}
		// Rows of spaces without notices are not needed: later notices get higher ids.
		if err := tx.Where("space_id NOT IN (SELECT space_id FROM remotes_notices)").Delete(&seenRow{}).Error; err != nil {
			return fmt.Errorf("drop who was told of old notices: %w", err)
		}
		return nil
	})
}

// note stores a notice for everyone who uses the space.
func (s *syncing) note(ctx context.Context, text string) {
	m, id := s.m, s.remote.Space
	m.o.Logger.InfoContext(ctx, "remote", "space", id, "notice", text)
	n := notice{at: time.Now(), text: text}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), storeTimeout)
	defer cancel()
	err := m.o.DB.Transact(ctx, func(tx *gorm.DB) error {
		row := noticeRow{SpaceID: string(id), At: database.Millis(n.at), Text: text}
		if err := tx.Create(&row).Error; err != nil {
			return fmt.Errorf("store notice: %w", err)
		}
		n.id = row.ID
		// Drop the oldest, if there are too many.
		var kept []int64
		err := tx.Model(&noticeRow{}).Where("space_id = ?", string(id)).Order("id DESC").Limit(m.o.Notices).Pluck("id", &kept).Error
		if err != nil {
			return fmt.Errorf("count notices: %w", err)
		}
		return tx.Where("space_id = ? AND (id < ? OR at < ?)", string(id), slices.Min(kept), database.Millis(n.at.Add(-m.o.NoticeAge))).Delete(&noticeRow{}).Error
	})
	m.mu.Lock()
	defer m.mu.Unlock()
	if err != nil {
		m.o.Logger.WarnContext(ctx, "a notice is kept in memory alone", "space", id, "error", err)
	}
	list := m.notices[id]
	if list == nil {
		list = newNotices()
		m.notices[id] = list
	}
	if k := len(list.all); k > 0 {
		n.id = max(n.id, list.all[k-1].id+1) // ids grow, even if the stored ones differ
	}
	n.id = max(n.id, 1)
	list.all = append(list.all, n)
	if extra := len(list.all) - m.o.Notices; extra > 0 {
		list.all = slices.Delete(list.all, 0, extra)
	}
}
