package sources

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"sync"

	"satchel/internal/fault"
	"satchel/internal/space"
)

// lib is the directory that a user's sandboxes see as /library. Each user has a directory of
// their own, because users may read different sources. The content of the directory can change
// while the sandboxes run.
type lib struct {
	user  space.UserID
	dir   string
	users int // number of sandboxes that use the directory; guarded by Manager.mu

	turn    sync.Mutex
	shown   map[string]string        // by source ID: the tree from which docs/<id> was made
	of      map[string]space.SpaceID // by source ID: the collection of docs/<id>
	retired []string                 // trees that were replaced; commands may still be in them
}

// Library returns the directory that the sandboxes of a user see as /library. The
// directory follows the user's access until release is called. Call release once. A
// source appears when its files are written.
func (m *Manager) Library(ctx context.Context, user space.UserID) (dir string, release func(), err error) {
	m.mu.Lock()
	if !m.started || m.o.Dir == "" || m.closed {
		m.mu.Unlock()
		return "", nil, fault.New(fault.Unavailable, "The library is not open.")
	}
	l := m.libs[user]
	if l == nil {
		m.made++
		l = &lib{user: user, dir: filepath.Join(m.o.Dir, usersDir, strconv.Itoa(m.made)), shown: map[string]string{}, of: map[string]space.SpaceID{}}
		m.libs[user] = l
	}
	l.users++
	m.mu.Unlock()
	release = sync.OnceFunc(func() { m.release(l) })
	if err := m.refresh(ctx, l); err != nil {
		release()
		return "", nil, fmt.Errorf("make a sandbox's library: %w", err)
	}
	return l.dir, release, nil
}

func (m *Manager) release(l *lib) {
	l.turn.Lock()
	defer l.turn.Unlock()
	m.mu.Lock()
	l.users--
	last := l.users == 0
	if last {
		delete(m.libs, l.user)
	}
	m.mu.Unlock()
	if !last {
		return
	}
	// Remove in the background, so that nobody who waits for the sandbox's slot waits for the
	// removal.
	gone := m.scratch()
	if err := os.Rename(l.dir, gone); err != nil {
		m.o.Logger.Warn("a sandbox's library was not removed", "error", err)
		return
	}
	trees := append(l.retired, gone)
	l.retired = nil
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.closed {
		return // the next start removes everything
	}
	m.work.Go(func() {
		for _, d := range trees {
			if err := removeTree(d); err != nil {
				m.o.Logger.Warn("a sandbox's library was not removed", "error", err)
			}
		}
	})
}

// Refresh updates the libraries of running sandboxes to what their users may read.
func (m *Manager) Refresh(ctx context.Context) {
	m.mu.Lock()
	all := make([]*lib, 0, len(m.libs))
	for _, l := range m.libs {
		all = append(all, l)
	}
	m.mu.Unlock()
	for _, l := range all {
		if err := m.refresh(context.WithoutCancel(ctx), l); err != nil {
			m.o.Logger.Error("a sandbox's library does not agree with what its user may read; nothing is shown", "user", l.user, "error", err)
			m.hide(l)
		}
	}
}

// clearRetired removes replaced trees, even if commands are still in them.
func (m *Manager) clearRetired() error {
	m.mu.Lock()
	all := make([]*lib, 0, len(m.libs))
	for _, l := range m.libs {
		all = append(all, l)
	}
	m.mu.Unlock()
	var errs []error
	for _, l := range all {
		l.turn.Lock()
		errs = append(errs, l.clear())
		l.turn.Unlock()
	}
	return errors.Join(errs...)
}

// shownTo is a source that a user's library must contain.
type shownTo struct {
	src  space.Source
	sn   *snapshot
	tree string
}

func (m *Manager) shownTo(ctx context.Context, user space.UserID) (map[string]shownTo, error) {
	visible, err := m.Visible(ctx, user)
	if err != nil {
		return nil, err
	}
	out := map[string]shownTo{}
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, s := range visible {
		if e := m.entries[s.ID]; e != nil && e.src.Collection == s.Collection && e.tree != "" && e.cur != nil {
			out[s.ID] = shownTo{s, e.cur, e.tree}
		}
	}
	return out, nil
}

// tries is how often refresh tries to link the trees. An attempt fails if a sync replaces a tree
// meanwhile.
const tries = 5

func (m *Manager) refresh(ctx context.Context, l *lib) error {
	l.turn.Lock()
	defer l.turn.Unlock()
	if m.abandoned(l) {
		return nil
	}
	docs := filepath.Join(l.dir, "docs")
	if _, err := os.Lstat(docs); err != nil {
		if err := errors.Join(mkdir(l.dir), mkdir(docs)); err != nil {
			return err
		}
	}
	var err error
	for range tries {
		var want map[string]shownTo
		if want, err = m.shownTo(ctx, l.user); err != nil {
			return err
		}
		for id := range l.shown {
			if w, ok := want[id]; !ok || w.src.Collection != l.of[id] {
				if err := m.take(l, id); err != nil {
					return err
				}
			}
		}
		if err = m.show(ctx, l, want); err == nil {
			return nil
		}
	}
	return err
}

func (m *Manager) abandoned(l *lib) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.libs[l.user] != l
}

// show puts the wanted trees in place.
func (m *Manager) show(ctx context.Context, l *lib, want map[string]shownTo) error {
	for id, w := range want {
		had := l.shown[id]
		if had == w.tree {
			continue
		}
		at, made := filepath.Join(l.dir, "docs", id), m.scratch()
		if err := linkTree(ctx, w.sn, w.tree, made); err != nil {
			return errors.Join(err, removeTree(made))
		}
		if had == "" {
			if err := os.Rename(made, at); err != nil {
				return errors.Join(err, removeTree(made))
			}
		} else {
			if err := swap(made, at, m.scratch); err != nil {
				return errors.Join(err, removeTree(made))
			}
			if err := l.clear(); err != nil {
				return err
			}
			l.retired = append(l.retired, made) // swap moved the old tree to made
		}
		l.shown[id], l.of[id] = w.tree, w.src.Collection
	}
	return nil
}

// take removes a source from a library, and the replaced trees of all sources.
func (m *Manager) take(l *lib, id string) error {
	gone := m.scratch()
	// Hide the source at once, because the removal of its files may take long.
	if err := os.Rename(filepath.Join(l.dir, "docs", id), gone); err != nil {
		return err
	}
	delete(l.shown, id)
	delete(l.of, id)
	return errors.Join(removeTree(gone), l.clear())
}

// hide removes everything from a library that cannot be updated.
func (m *Manager) hide(l *lib) {
	l.turn.Lock()
	defer l.turn.Unlock()
	for id := range l.shown {
		if err := m.take(l, id); err != nil {
			m.o.Logger.Error("a source could not be taken from a sandbox", "source", id, "error", err)
		}
	}
}

// clear removes replaced trees. The caller has l.turn.
func (l *lib) clear() error {
	var errs []error
	for _, d := range l.retired {
		errs = append(errs, removeTree(d))
	}
	l.retired = nil
	return errors.Join(errs...)
}

// scratch returns a new name outside of every sandbox's library.
func (m *Manager) scratch() string {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.made++
	return filepath.Join(m.o.Dir, scratchDir, strconv.Itoa(m.made))
}
