package gitstore

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"

	"satchel/internal/fault"
	"satchel/internal/space"
)

func errNoSpace() error { return fault.New(fault.NotFound, "There is no such space.") }

// removed returns the path to which a deleted space's repository moves until its last
// file is gone. Open removes every such directory.
func (s *Store) removed(id space.SpaceID) string {
	return filepath.Join(s.o.Dir, ".new-removed-"+string(id))
}

// free wakes a caller that waits until nobody uses the space.
func (r *repo) free() {
	select {
	case r.freed <- struct{}{}:
	default:
	}
}

// MarkDeleted hides a space from every later call until this process ends. A commit that is
// still being prepared fails. MarkDeleted removes no files; Delete does. MarkDeleted never
// blocks.
func (s *Store) MarkDeleted(id space.SpaceID) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.gone[id] = true
	if r := s.open[id]; r != nil {
		r.gone.Store(true)
	}
}

// Delete deletes a space for good: its repository, its checkouts and its state in memory.
// It first marks the space deleted and ends its bundles, then waits for its readers and
// sandboxes. If ctx ends first, the error is a fault.Unavailable, and Delete must be
// called again, in another process if necessary. Deleting a space that does not exist is
// not an error.
func (s *Store) Delete(ctx context.Context, id space.SpaceID) error {
	if _, err := space.ParseSpaceID(string(id)); err != nil {
		return err
	}
	s.MarkDeleted(id)
	s.mu.Lock()
	r := s.open[id]
	s.mu.Unlock()
	if r != nil {
		if err := r.left(ctx); err != nil {
			return err
		}
	}
	return explainDisk(s.remove(id))
}

// left waits until nobody uses the space. The space is marked deleted, so there are no
// new users.
func (r *repo) left(ctx context.Context) error {
	busy := func() error {
		return fault.Wrap(ctx.Err(), fault.Unavailable, "The space was deleted, but something is still reading it. Its files will be removed after that.")
	}
	select {
	case <-r.opened: // before r is opened, its first user is not counted
	case <-ctx.Done():
		return busy()
	}
	if _, err := r.bundles.stop(ctx, errNoSpace()); err != nil {
		return busy()
	}
	for {
		r.s.mu.Lock()
		used := r.users > 0 || r.seeds.inUse()
		r.s.mu.Unlock()
		if !used {
			return nil
		}
		select {
		case <-r.freed:
		case <-ctx.Done():
			return busy()
		}
	}
}

// remove removes the files of a space that nobody uses, and forgets the space. Once the
// rename is durable, the space does not exist, even after a crash.
func (s *Store) remove(id space.SpaceID) error {
	s.o.probe("free")
	s.mu.Lock()
	r := s.open[id]
	err := os.Rename(s.repoDir(id), s.removed(id))
	if err == nil || errors.Is(err, fs.ErrNotExist) {
		delete(s.open, id)
	}
	s.mu.Unlock()
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if r != nil && r.openErr == nil {
		r.forgetSeeds()
		r.db.Close()
	}
	s.o.probe("renamed")
	if err := s.o.disk.SyncDir(s.o.Dir); err != nil {
		return err
	}
	s.o.probe("rename synced")
	return errors.Join(removeTree(s.removed(id)), removeTree(filepath.Join(s.o.Dir, cacheDir, string(id))))
}

// Remove undoes a Create before anybody knows of the space. A space in use is a
// fault.Conflict; a space that does not exist is a fault.NotFound.
func (s *Store) Remove(ctx context.Context, id space.SpaceID) error {
	r, release, err := s.acquire(ctx, id)
	if err != nil {
		return err
	}
	release()
	s.mu.Lock()
	if r.users > 0 || r.seeds.inUse() {
		s.mu.Unlock()
		return fault.New(fault.Conflict, "The space is in use.")
	}
	s.gone[id] = true
	s.mu.Unlock()
	return s.remove(id)
}
