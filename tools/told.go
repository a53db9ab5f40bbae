package tools

import (
	"hash/maphash"
	"slices"
	"sync"
	"time"

	"satchel/internal/space"
)

// told remembers what each caller's last answer said is not committed, so that
// the next one need not say it in full. It forgets the callers that were not
// here for long, a generation at a time; whoever is forgotten is told again.
type told struct {
	seed maphash.Seed
	max  int
	keep time.Duration

	mu       sync.Mutex
	now, old map[toldTo]toldWhat
}

// toldTo is one AI client of a user, with one of the two sandboxes that it may
// have for a space.
type toldTo struct {
	user     space.UserID
	space    space.SpaceID
	client   string
	readOnly bool
}

type toldWhat struct {
	hashes []uint64 // of a path with its reason
	full   time.Time
}

func newTold(callers int, keep time.Duration) *told {
	return &told{seed: maphash.MakeSeed(), max: max(callers/2, 1), keep: keep, now: map[toldTo]toldWhat{}}
}

// tell notes that an answer names list, and returns those of it that the last
// answer to the caller did not name or gave another reason for. After keep,
// that is all of it once more: the conversation may be another.
func (m *told) tell(to toldTo, list []space.Refusal, now time.Time) (news, known []space.Refusal) {
	m.mu.Lock()
	defer m.mu.Unlock()
	last, ok := m.now[to]
	if !ok {
		last = m.old[to]
	}
	if len(list) == 0 {
		m.drop(to)
		return nil, nil
	}
	if now.Sub(last.full) >= m.keep {
		last = toldWhat{full: now}
	}
	next := toldWhat{full: last.full}
	for _, x := range list {
		h := maphash.Comparable(m.seed, [2]string{x.Path, x.Why})
		next.hashes = append(next.hashes, h)
		if slices.Contains(last.hashes, h) {
			known = append(known, x)
		} else {
			news = append(news, x)
		}
	}
	if _, ok := m.now[to]; !ok && len(m.now) >= m.max {
		m.old, m.now = m.now, map[toldTo]toldWhat{}
	}
	m.now[to] = next
	return news, known
}

// forget makes the next answer to a client name everything in full.
func (m *told) forget(c Caller) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, readOnly := range []bool{false, true} {
		m.drop(toldTo{c.User, c.Space, c.Client, readOnly})
	}
}

func (m *told) drop(to toldTo) {
	delete(m.now, to)
	delete(m.old, to)
}
