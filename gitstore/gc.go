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
	Purged    bool // a purge that was cut off is finished
	Leftovers int  // files and directories of programs that died
	LogBytes  int64
	Packed    bool // packs were consolidated
	Collected bool // objects that nothing reaches were dropped
}

// GC does what is worth doing while nobody changes a space: it finishes a
// purge that could not remove everything, removes what programs that died left
// behind, drops the oldest lines of a reflog that grew over Limits.Reflog, and
// consolidates Options.IdlePacks packs or more. Where packs have come to half of
// Limits.Repository and a quarter of that is reached by no ref and no line of
// the reflog, as after force-pushes of the remote, that part is dropped: commits
// wait then, and a space with a live sandbox is left alone. Else commits and
// reads go on meanwhile. It costs little where there is nothing to do.
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

// collect drops what nothing reaches, where that is much.
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
		r.collected.Store(size) // not worth another look until something is added
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

// withLogged adds the commits that the branch's reflog names and the space has.
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

// alone calls f while nobody commits to the space, imports into it or sends it,
// and no sandbox looks at its packs; it tells false if that cannot be now.
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

// retryPurge finishes a purge whose journal is left, where nothing is in its
// way.
func (r *repo) retryPurge(ctx context.Context) (bool, error) {
	if _, err := os.Stat(filepath.Join(r.dir, journalFile)); errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	return r.alone(ctx, func() error { return r.recoverPurge(ctx) })
}

// trimLog drops the oldest lines of the branch's reflog where it is over its
// limit, down to half of that, and returns how many bytes they had. The last
// line, which makes head durable, stays in any case.
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
		return 0, nil // a line that somebody else wrote: it is looked at when the space is opened
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

// sweepRepo removes what git or a crash left half-made in a repository, Options.LeftoverAge
// ago or more: whatever is written to still is younger.
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

// Sweep removes what belongs to no space and was left behind by a transfer or
// an import that died, Options.LeftoverAge ago or more, and tells how many there
// were. Opening the store removes all of it.
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

// removeOld removes those of the files and directories in which nothing was
// written for Options.LeftoverAge.
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

// hasLoose reports whether git, an operator's for one, wrote objects as files of
// their own.
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
