package store

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"gorm.io/gorm"

	"satchel/internal/space"
)

// markUsed records a use in memory. A write per request would make every reader wait for
// the disk. The time is exact to the millisecond, because the connect pages ask which
// client has called since a time.
func (s *Store) markUsed(id space.GrantID, at time.Time) {
	s.mu.Lock()
	s.used[id] = max(s.used[id], at.UnixMilli())
	s.mu.Unlock()
}

// markSeen records a visit in memory; see markUsed.
func (s *Store) markSeen(session string, at time.Time) {
	s.mu.Lock()
	s.seen[session] = max(s.seen[session], at.UnixMilli())
	s.mu.Unlock()
}

// lastSeen returns the later of the stored time and the time that is not written yet.
func (s *Store) lastSeen(session string, row int64) int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return max(row, s.seen[session])
}

// lastUsed does for a grant what lastSeen does for a session. So people see at once that a new
// client works, although the time is not written yet.
func (s *Store) lastUsed(id space.GrantID, row int64) int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return max(row, s.used[id])
}

// Flush writes the pending times of last uses and visits. If it fails, the next Flush writes
// them.
func (s *Store) Flush(ctx context.Context) error {
	s.mu.Lock()
	used, seen := maps.Clone(s.used), maps.Clone(s.seen)
	s.mu.Unlock()
	if len(used)+len(seen) == 0 {
		return nil
	}
	err := s.db.Transact(ctx, func(tx *gorm.DB) error {
		// The order is always the same, to avoid a deadlock between processes.
		err := inOrder(used, func(id space.GrantID, at int64) error {
			return tx.Exec("UPDATE auth_grants SET last_used = ? WHERE id = ? AND last_used < ?", at, string(id), at).Error
		})
		if err != nil {
			return fmt.Errorf("store time of last use: %w", err)
		}
		err = inOrder(seen, func(id string, at int64) error {
			return tx.Exec("UPDATE auth_sessions SET seen = ? WHERE id = ? AND seen < ?", at, id, at).Error
		})
		if err != nil {
			return fmt.Errorf("store time of last visit: %w", err)
		}
		return nil
	})
	if err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	forget(s.used, used)
	forget(s.seen, seen)
	return nil
}

func inOrder[K cmp.Ordered](m map[K]int64, do func(K, int64) error) error {
	for _, k := range slices.Sorted(maps.Keys(m)) {
		if err := do(k, m[k]); err != nil {
			return err
		}
	}
	return nil
}

// forget deletes from m the entries that were written and have not changed since.
func forget[K comparable](m, written map[K]int64) {
	for k, v := range written {
		if m[k] == v {
			delete(m, k)
		}
	}
}
