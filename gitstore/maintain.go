package gitstore

import (
	"context"
	"path/filepath"
	"slices"

	"satchel/gitstore/gitcmd"
	"satchel/gitstore/packfile"
	"satchel/internal/space"
)

// Stats reports how a space lies on disk.
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
	return Stats{r.db.PackCount(), r.db.PackBytes(), r.totals.files, r.totals.bytes}, nil
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
	before, err := packfile.PackNames(r.db.PackDir())
	if err != nil {
		return r.internalf(err, "maintain")
	}
	loose, err := hasLoose(r.db.Dir)
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
	if err := s.replacePacks(r.db.PackDir(), before); err != nil {
		return r.internalf(err, "maintain")
	}
	if loose { // those that are in a pack now, which is durable
		if _, err := s.git.Run(ctx, gitcmd.Cmd{Dir: r.dir, GitDir: r.dir, Args: []string{"prune-packed", "-q"}}); err != nil {
			return r.internalf(err, "maintain")
		}
	}
	if err := r.db.Rescan(); err != nil {
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

// replacePacks deletes those packs of before whose every object is in another
// that stays, after that one is durable. Mostly that is a pack that came since;
// git packs no object again that a large pack has, so it may be an older one too:
// of a commit that came while git was at work, or of an earlier turn that was cut
// off. A commit may have come meanwhile: its pack only adds to what stays.
func (s *Store) replacePacks(dir string, before []string) error {
	names, err := packfile.PackNames(dir)
	if err != nil {
		return err
	}
	var old, staying []*packfile.Pack
	for _, name := range names {
		p, err := packfile.Load(filepath.Join(dir, name))
		if err != nil {
			return err
		}
		defer p.Close()
		if slices.Contains(before, name) {
			old = append(old, p)
		} else {
			staying = append(staying, p)
		}
	}
	fresh := slices.Clone(staying)
	durable := map[*packfile.Pack]bool{}
	for _, p := range staying {
		if err := s.syncPack(p, durable); err != nil {
			return err
		}
	}
	if err := s.o.disk.SyncDir(dir); err != nil {
		return err
	}
	s.o.probe("packs synced")
	// The small ones first, which the large ones may have.
	slices.SortStableFunc(old, func(a, b *packfile.Pack) int { return a.N - b.N })
	for i, p := range old {
		in := coveredBy(p, slices.Concat(staying, old[i+1:]), fresh)
		if in == nil {
			staying = append(staying, p)
			continue
		}
		for _, o := range in {
			if err := s.syncPack(o, durable); err != nil {
				return err
			}
		}
		if err := p.Remove(); err != nil {
			return err
		}
		s.o.probe("pack replaced")
	}
	return nil
}

// coveredBy returns those of others that have all objects of a pack between them,
// or nil. It reads the objects of packs that are not fresh: such a pack may be
// damaged, and p may have the good copies.
func coveredBy(p *packfile.Pack, others, fresh []*packfile.Pack) []*packfile.Pack {
	var in []*packfile.Pack
	for i := range p.N {
		has := func(o *packfile.Pack) bool {
			off, ok := o.Find(p.Name(i))
			if !ok || slices.Contains(fresh, o) {
				return ok
			}
			got, err := o.Read(off, func(packfile.Hash) (packfile.Object, error) { return packfile.Object{}, packfile.ErrNotFound })
			return err == nil && packfile.NameOf(got) == p.Name(i)
		}
		if slices.ContainsFunc(in, has) {
			continue
		}
		at := slices.IndexFunc(others, has)
		if at < 0 {
			return nil
		}
		in = append(in, others[at])
	}
	return in
}

// syncPack makes a pack durable, once.
func (s *Store) syncPack(p *packfile.Pack, durable map[*packfile.Pack]bool) error {
	if durable[p] {
		return nil
	}
	for _, ext := range []string{".pack", ".idx"} {
		if err := s.o.disk.SyncDir(p.Base + ext); err != nil { // a file is synced alike
			return err
		}
	}
	durable[p] = true
	return nil
}
