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

// markUsed notes a use off the path of the request: a write per request would make
// every reader wait for the disk. It is exact to the millisecond, since who connects a
// client asks what called since they began.
func (s *Store) markUsed(id space.GrantID, at time.Time) {
	s.mu.Lock()
	s.used[id] = max(s.used[id], at.UnixMilli())
	s.mu.Unlock()
}

// markSeen notes a visit likewise.
func (s *Store) markSeen(session string, at time.Time) {
	s.mu.Lock()
	s.seen[session] = max(s.seen[session], at.UnixMilli())
	s.mu.Unlock()
}

// lastSeen returns the later of what the row says and what is not yet written.
func (s *Store) lastSeen(session string, row int64) int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return max(row, s.seen[session])
}

// lastUsed is lastSeen of a grant: somebody who connected a client looks whether
// it works before the time is written.
func (s *Store) lastUsed(id space.GrantID, row int64) int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return max(row, s.used[id])
}

// Flush writes the times of last use now. What could not be written is kept
// for the next time.
func (s *Store) Flush(ctx context.Context) error {
	s.mu.Lock()
	used, seen := maps.Clone(s.used), maps.Clone(s.seen)
	s.mu.Unlock()
	if len(used)+len(seen) == 0 {
		return nil
	}
	err := s.db.Transact(ctx, func(tx *gorm.DB) error {
		// In one order everywhere, so that two processes do not wait for each other.
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

// forget deletes from m what was written and did not change since.
func forget[K comparable](m, written map[K]int64) {
	for k, v := range written {
		if m[k] == v {
			delete(m, k)
		}
	}
}
