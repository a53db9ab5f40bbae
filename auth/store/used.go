package store

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"gorm.io/gorm"

	"satchel/internal/space"
)

// markUsed notes a use, to the minute, off the path of the request: a write per
// request would make every reader wait for the disk.
func (s *Store) markUsed(id space.GrantID, at time.Time) {
	minute := at.Truncate(time.Minute).UnixMilli()
	s.mu.Lock()
	s.used[id] = max(s.used[id], minute)
	s.mu.Unlock()
}

func (s *Store) flushEvery(ctx context.Context, every time.Duration) {
	defer close(s.done)
	tick := time.NewTicker(every)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			if err := s.Flush(ctx); err != nil && ctx.Err() == nil {
				s.log.WarnContext(ctx, "times of last use were not stored; they are kept for the next try", "error", err)
			}
		}
	}
}

// Flush writes the times of last use now. What could not be written is kept
// for the next time.
func (s *Store) Flush(ctx context.Context) error {
	s.mu.Lock()
	used := s.used
	s.used = make(map[space.GrantID]int64, len(used))
	s.mu.Unlock()
	if len(used) == 0 {
		return nil
	}
	err := s.db.Transact(ctx, func(tx *gorm.DB) error {
		// In one order everywhere, so that two processes do not wait for each other.
		for _, id := range slices.Sorted(maps.Keys(used)) {
			minute := used[id]
			err := tx.Exec("UPDATE auth_grants SET last_used = ? WHERE id = ? AND last_used < ?", minute, string(id), minute).Error
			if err != nil {
				return fmt.Errorf("store time of last use: %w", err)
			}
		}
		return nil
	})
	if err == nil {
		return nil
	}
	s.mu.Lock()
	for id, minute := range s.used {
		used[id] = max(used[id], minute)
	}
	maps.Copy(s.used, used)
	s.mu.Unlock()
	return err
}
