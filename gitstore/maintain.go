package gitstore

import (
	"context"
	"errors"
	"io/fs"
	"path/filepath"
	"slices"

	"satchel/gitstore/gitcmd"
	"satchel/internal/space"
)

// Stats tells how a space lies on disk.
type Stats struct {
	Packs     int   // one more with every commit, until Maintain
	PackBytes int64 // of all packs
	Files     int   // at head
	FileBytes int64 // at head
}

// Stats returns a space's figures. The caller decides by Packs when Maintain is
// worth it: a few hundred cost nothing that can be measured.
func (s *Store) Stats(ctx context.Context, id space.SpaceID) (Stats, error) {
	r, release, err := s.acquire(ctx, id)
	if err != nil {
		return Stats{}, err
	}
	defer release()
	r.commitMu.Lock()
	defer r.commitMu.Unlock()
	if r.totals == nil {
		t, err := r.countTotals(ctx, r.head.Load().tree)
		if err != nil {
			return Stats{}, r.internalf(err, "count files")
		}
		r.totals = &t
	}
	return Stats{r.db.packCount(), r.db.packBytes(), r.totals.files, r.totals.bytes}, nil
}

// Maintain consolidates a space's packs into few, with deltas, while commits
// and reads go on. Nothing is dropped: objects that no branch reaches are kept,
// since a sandbox may still look at them and a commit may use them again.
//
// git does the packing ("repack --geometric": the small packs become one, large
// ones are left until that is half as large); this package makes the result
// durable and only then deletes what it replaces.
func (s *Store) Maintain(ctx context.Context, id space.SpaceID) error {
	r, release, err := s.acquire(ctx, id)
	if err != nil {
		return err
	}
	defer release()
	if !r.maintaining.TryLock() {
		return nil // it is being done
	}
	defer r.maintaining.Unlock()
	before, err := packNames(r.db.packDir())
	if err != nil {
		return r.internalf(err, "maintain")
	}
	loose, err := hasLoose(r.db.dir)
	if err != nil {
		return r.internalf(err, "maintain")
	}
	if len(before) < 2 && !loose {
		return nil
	}
	if _, err := s.git.Run(ctx, gitcmd.Cmd{Dir: r.dir, GitDir: r.dir, Args: []string{"repack", "--geometric=2", "-q"}}); err != nil {
		return r.internalf(err, "maintain")
	}
	// From here on, for a moment, no view may be made from packs that go.
	if err := r.seeds.enter(ctx); err != nil {
		return err
	}
	defer r.seeds.leave()
	if err := s.replacePacks(r.db.packDir(), before); err != nil {
		return r.internalf(err, "maintain")
	}
	if loose { // those that are in a pack now, which is durable
		if _, err := s.git.Run(ctx, gitcmd.Cmd{Dir: r.dir, GitDir: r.dir, Args: []string{"prune-packed", "-q"}}); err != nil {
			return r.internalf(err, "maintain")
		}
	}
	if err := r.db.rescan(); err != nil {
		return r.internalf(err, "maintain")
	}
	return r.relinkView()
}

// relinkView gives the git view the packs that the repository has now. The
// caller has the seeds' turn.
func (r *repo) relinkView() error {
	d := &r.seeds
	d.mu.Lock()
	v := d.view
	d.mu.Unlock()
	if v == nil {
		return nil
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.linkPacks(r.db)
}

// replacePacks deletes those packs of before whose every object is in a pack
// that came since, after that is durable. A commit may have come too: its pack
// only adds to what is new.
func (s *Store) replacePacks(dir string, before []string) error {
	now, err := packNames(dir)
	if err != nil {
		return err
	}
	var fresh []*pack
	for _, name := range now {
		if slices.Contains(before, name) {
			continue
		}
		p, err := loadPack(filepath.Join(dir, name))
		if err != nil {
			return err
		}
		defer p.close()
		for _, ext := range []string{".pack", ".idx"} {
			if err := s.o.syncDir(p.base + ext); err != nil { // a file is synced alike
				return err
			}
		}
		fresh = append(fresh, p)
	}
	if err := s.o.syncDir(dir); err != nil {
		return err
	}
	s.o.probe("packs synced")
	for _, name := range before {
		p, err := loadPack(filepath.Join(dir, name))
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return err
		}
		replaced := true
		for i := 0; i < p.n && replaced; i++ {
			replaced = slices.ContainsFunc(fresh, func(f *pack) bool { _, ok := f.find(p.name(i)); return ok })
		}
		p.close()
		if !replaced {
			continue
		}
		if err := p.remove(); err != nil {
			return err
		}
		s.o.probe("pack replaced")
	}
	return nil
}
