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

// removed is where the repository of a deleted space is until its last file is gone.
// What has such a name when a store is opened is removed.
func (s *Store) removed(id space.SpaceID) string {
	return filepath.Join(s.o.Dir, ".new-removed-"+string(id))
}

// free tells who waits for the space that somebody let go of it.
func (r *repo) free() {
	select {
	case r.freed <- struct{}{}:
	default:
	}
}

// MarkDeleted makes a space one that does not exist, for every call that begins after
// it and for every commit that is not made yet, until this process ends. Delete does
// the rest. It never blocks.
func (s *Store) MarkDeleted(id space.SpaceID) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.gone[id] = true
	if r := s.open[id]; r != nil {
		r.gone.Store(true)
	}
}

// Delete deletes a space for good: its repository, the checkouts of it and what the
// store holds of it in memory. It withholds the space first, ends bundles that are
// being written, and waits for who still reads it and for its seeds. Where ctx ends
// before, the error is a fault.Unavailable, and Delete must be called again, in
// another process if need be: a space of which nothing is left, or that never was, is
// no error.
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

// left returns when nobody uses the space any more, which nobody can begin to.
func (r *repo) left(ctx context.Context) error {
	busy := func() error {
		return fault.Wrap(ctx.Err(), fault.Unavailable, "The space is deleted, and something still reads it. Its files are removed after that.")
	}
	select {
	case <-r.opened: // until then its first user is not counted
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

// Remove removes what is on disk of a space that nobody uses, and forgets it. From
// the rename on there is no such space, after a crash either.
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

// Remove takes back a Create of which nobody was told: a space in use is a
// fault.Conflict, and one that is not there a fault.NotFound.
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
