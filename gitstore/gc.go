package gitstore

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"satchel/gitstore/gitcmd"
	"satchel/gitstore/packfile"
	"satchel/internal/space"
)

// GCResult reports what GC did.
type GCResult struct {
	Purged    bool // an interrupted purge was finished
	Leftovers int  // files and directories that dead processes left
	LogBytes  int64
	Packed    bool // packs were consolidated
	Collected bool // unreachable objects were dropped
}

// GC does what is worth doing while nobody changes a space. It finishes a purge that
// could not remove everything, removes leftovers of dead processes, and drops the oldest
// lines of a reflog larger than Limits.Reflog. It consolidates the packs if there are at
// least Options.IdlePacks, or if there are objects outside packs.
//
// GC drops unreachable objects, such as those that a force-push at the remote leaves,
// once the packs have grown to half of Limits.Repository and a quarter of their bytes is
// unreachable. Commits in the reflog count as reachable. Commits wait while GC drops objects,
// and it drops none from a space with a live sandbox. Otherwise, commits and reads
// continue. GC costs little if there is nothing to do.
func (s *Store) GC(ctx context.Context, id space.SpaceID) (done GCResult, err error) {
	r, release, err := s.acquire(ctx, id)
	if err != nil {
		return done, err
	}
	defer release()
	if done.Purged, err = r.retryPurge(ctx); err != nil {
		return done, r.internalf(err, "finish a purge")
	}
	if done.Leftovers, err = s.sweepRepo(r.dir); err != nil {
		return done, r.internalf(err, "remove leftovers")
	}
	if done.LogBytes, err = r.trimLog(); err != nil {
		return done, r.internalf(err, "shorten the log")
	}
	loose, err := hasLoose(r.db.Dir)
	if err != nil {
		return done, r.internalf(err, "look for objects")
	}
	if n := r.db.PackCount(); n >= s.o.IdlePacks || loose {
		done.Packed = true
		if err := s.Maintain(ctx, id); err != nil {
			return done, err
		}
	}
	if done.Collected, err = r.collect(ctx); err != nil {
		return done, r.internalf(err, "drop unreachable objects")
	}
	return done, nil
}

// collect drops unreachable objects if they take much room.
func (r *repo) collect(ctx context.Context) (bool, error) {
	size := r.db.PackBytes()
	if size < r.s.o.Limits.Repository/2 || size == r.collected.Load() || r.seeds.seeded() {
		return false, nil
	}
	tips, err := r.tips(ctx)
	if err != nil {
		return false, err
	}
	if tips, err = r.withLogged(tips); err != nil {
		return false, err
	}
	var in strings.Builder
	for _, h := range tips {
		fmt.Fprintln(&in, h)
	}
	out, err := r.s.git.Run(ctx, gitcmd.Cmd{Dir: r.dir, GitDir: r.dir, Stdin: strings.NewReader(in.String()),
		Args: []string{"rev-list", "--objects", "--disk-usage", "--stdin"}})
	if err != nil {
		return false, err
	}
	used, err := strconv.ParseInt(strings.TrimSpace(string(out)), 10, 64)
	if err != nil {
		return false, err
	}
	if size-used < size/4 {
		r.collected.Store(size) // not worth checking again until the packs grow
		return false, nil
	}
	return r.alone(ctx, func() error {
		tips, err := r.tips(ctx)
		if err != nil {
			return err
		}
		if tips, err = r.withLogged(tips); err != nil {
			return err
		}
		if err := r.dropUnreachable(ctx, tips); err != nil {
			return err
		}
		return r.relinkView()
	})
}

// withLogged adds the commits of the branch's reflog that the space has.
func (r *repo) withLogged(tips []packfile.Hash) ([]packfile.Hash, error) {
	b, err := os.ReadFile(r.logFile())
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	lines, _ := parseLog(b)
	for _, l := range lines {
		for _, h := range []packfile.Hash{l.old, l.now} {
			if !h.IsZero() && !slices.Contains(tips[max(0, len(tips)-2):], h) && r.isCommit(h) {
				tips = append(tips, h)
			}
		}
	}
	return tips, nil
}

// alone calls f while no commit, import or transfer of the space runs and no sandbox
// uses the space's packs. It returns false if that is not possible now.
func (r *repo) alone(ctx context.Context, f func() error) (bool, error) {
	if !r.unreached.TryLock() {
		return false, nil
	}
	defer r.unreached.Unlock()
	r.maintaining.Lock()
	defer r.maintaining.Unlock()
	if err := r.seeds.enter(ctx); err != nil {
		return false, err
	}
	defer r.seeds.leave()
	if r.seeds.seeded() {
		return false, nil
	}
	r.commitMu.Lock()
	defer r.commitMu.Unlock()
	err := f()
	return err == nil, err
}

// retryPurge finishes a purge that left its journal, if nothing is in the way.
func (r *repo) retryPurge(ctx context.Context) (bool, error) {
	if _, err := os.Stat(filepath.Join(r.dir, journalFile)); errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	return r.alone(ctx, func() error { return r.recoverPurge(ctx) })
}

// trimLog shortens a branch's reflog that exceeds its limit to half the limit. It drops
// the oldest lines and returns their size in bytes. It keeps the last line, which makes
// head durable.
func (r *repo) trimLog() (int64, error) {
	st, err := os.Stat(r.logFile())
	if errors.Is(err, fs.ErrNotExist) || err == nil && st.Size() <= r.s.o.Limits.Reflog {
		return 0, nil
	}
	if err != nil {
		return 0, err
	}
	r.commitMu.Lock()
	defer r.commitMu.Unlock()
	if err := r.usable(); err != nil {
		return 0, err
	}
	b, err := os.ReadFile(r.logFile())
	if err != nil {
		return 0, err
	}
	lines, size := parseLog(b)
	if size != int64(len(b)) || len(lines) == 0 {
		return 0, nil // another program wrote a line; opening the space handles it
	}
	from := 0
	for int64(len(b)-from) > r.s.o.Limits.Reflog/2 {
		next := strings.IndexByte(string(b[from:]), '\n') + 1
		if from+next == len(b) {
			break
		}
		from += next
	}
	defer r.provenance.forget()
	return int64(from), r.s.o.disk.ReplaceDurable(r.logFile(), b[from:], 0o600)
}

// sweepRepo removes unfinished files that git or a crash left in a repository at least
// Options.LeftoverAge ago. A file that is still being written is younger.
func (s *Store) sweepRepo(dir string) (n int, err error) {
	for _, glob := range []string{
		"*.lock", "*.tmp", "refs/.tmp-*", "refs/*.lock", "refs/*/*.lock", "refs/*/*/*.lock",
		"objects/tmp_objdir*", "objects/??/tmp_obj_*", "objects/pack/tmp_*", "objects/pack/.tmp-*", "logs/refs/heads/*.tmp",
	} {
		names, err := filepath.Glob(filepath.Join(dir, filepath.FromSlash(glob)))
		if err != nil {
			return n, err
		}
		m, err := s.removeOld(names)
		n += m
		if err != nil {
			return n, err
		}
	}
	return n, nil
}

// Sweep removes leftovers that belong to no space, from transfers and imports that died
// at least Options.LeftoverAge ago, and returns their count. Open removes all leftovers.
func (s *Store) Sweep(ctx context.Context) (int, error) {
	names, err := filepath.Glob(filepath.Join(s.o.Dir, quarantineDir, "*"))
	if err != nil {
		return 0, err
	}
	more, err := filepath.Glob(filepath.Join(s.o.Dir, ".new-*"))
	if err != nil {
		return 0, err
	}
	if err := ctx.Err(); err != nil {
		return 0, err
	}
	return s.removeOld(append(names, more...))
}

// removeOld removes the files and directories in which nothing was written for
// Options.LeftoverAge.
func (s *Store) removeOld(names []string) (n int, err error) {
	limit := time.Now().Add(-s.o.LeftoverAge)
	for _, name := range names {
		fresh := false
		err := filepath.WalkDir(name, func(_ string, d fs.DirEntry, err error) error {
			if err != nil {
				return err
			}
			st, err := d.Info()
			if err == nil && st.ModTime().After(limit) {
				fresh = true
				return fs.SkipAll
			}
			return err
		})
		if errors.Is(err, fs.ErrNotExist) || fresh {
			continue
		}
		if err = errors.Join(err, removeTree(name)); err != nil {
			return n, err
		}
		n++
	}
	return n, nil
}

// hasLoose reports whether there are loose objects. An operator's git may write them.
func hasLoose(objects string) (bool, error) {
	dirs, err := filepath.Glob(filepath.Join(objects, "[0-9a-f][0-9a-f]"))
	if err != nil {
		return false, err
	}
	for _, d := range dirs {
		es, err := os.ReadDir(d)
		if err != nil {
			return false, err
		}
		for _, e := range es {
			if len(e.Name()) == 38 {
				return true, nil
			}
		}
	}
	return false, nil
}

// Stats describes a space on disk.
type Stats struct {
	Packs     int   // grows by one with every commit, until Maintain consolidates the packs
	PackBytes int64 // the size of all packs
	Files     int   // number of files at head
	FileBytes int64 // the size of these files
}

// Stats returns the figures of a space. Packs shows when Maintain is worth a call: a
// few hundred packs have no measurable cost.
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

// Maintain consolidates a space's packs into a few packs with deltas, while commits and
// reads continue. It keeps unreachable objects, because a sandbox may still read them and
// a commit may use them again.
//
// git does the packing ("repack --geometric": the small packs become one, and a large
// pack is left alone until the new one is half as large). This package makes the result
// durable, and only then deletes the replaced packs.
func (s *Store) Maintain(ctx context.Context, id space.SpaceID) error {
	r, release, err := s.acquire(ctx, id)
	if err != nil {
		return err
	}
	defer release()
	if !r.maintaining.TryLock() {
		return nil // another call is consolidating the packs
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
	// No view may be made from packs that are about to be removed.
	if err := r.seeds.enter(ctx); err != nil {
		return err
	}
	defer r.seeds.leave()
	if err := s.replacePacks(r.db.PackDir(), before); err != nil {
		return r.internalf(err, "maintain")
	}
	if loose { // a durable pack now has the loose objects
		if _, err := s.git.Run(ctx, gitcmd.Cmd{Dir: r.dir, GitDir: r.dir, Args: []string{"prune-packed", "-q"}}); err != nil {
			return r.internalf(err, "maintain")
		}
	}
	if err := r.db.Rescan(); err != nil {
		return r.internalf(err, "maintain")
	}
	return r.relinkView()
}

// relinkView makes the git view's packs match the repository's. The caller holds
// seeds.turn.
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

// replacePacks deletes each pack named in before if packs that stay have all its objects.
// It makes those packs durable first. Most of them are new. Some may be older, because git
// does not repack objects that a large pack already has. An object can be in two packs
// after an interrupted run, or if a commit adds its pack while git is at work. A pack that
// a commit adds meanwhile stays.
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
	// Small packs first: a large pack may have their objects.
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

// coveredBy returns the packs of others that together have all objects of p, or nil if
// some object is in none. fresh lists the new packs. coveredBy reads the objects of a pack
// that is not in fresh, because that pack may be damaged while p has the good copies.
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
		if err := s.o.disk.SyncDir(p.Base + ext); err != nil { // SyncDir works for files too
			return err
		}
	}
	durable[p] = true
	return nil
}
