package gitstore

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"satchel/gitstore/gitcmd"
	"satchel/gitstore/packfile"
	"satchel/gitstore/transport"
	"satchel/internal/fault"
	"satchel/internal/space"
)

// Copies names a source of good copies for Repair: a remote, a directory or, as the
// zero value, none.
type Copies struct {
	// Remote and Branch name a remote's branch.
	Remote *transport.Endpoint
	Branch string
	// Dir is a repository on this machine, such as one from a backup. Repair takes
	// only objects that the space refers to.
	Dir string
}

// Repaired is the result of Repair.
type Repaired struct {
	Restored int     `json:"restored"` // objects that can be read again
	Left     Checkup `json:"left"`     // what is still damaged
}

// Repair replaces damaged and missing objects of a space with good copies. Every
// copy is verified against its hash. Repair removes a damaged pack once all of its
// objects have good copies elsewhere. Commits and reads continue meanwhile, except
// in a space that cannot be opened.
func (s *Store) Repair(ctx context.Context, id space.SpaceID, from Copies, progress func(string)) (Repaired, error) {
	res, err := s.repair(ctx, id, from, progress)
	if err != nil || !res.Left.Whole() {
		return res, err
	}
	_, release, err := s.acquire(ctx, id)
	if err == nil {
		release()
		return res, nil
	}
	if !isBroken(err) {
		return res, err
	}
	res.Left.stillClosed(err)
	return res, nil
}

func (s *Store) repair(ctx context.Context, id space.SpaceID, from Copies, progress func(string)) (Repaired, error) {
	r, release, err := s.acquireForRepair(ctx, id)
	if err != nil {
		return Repaired{}, err
	}
	defer release()
	r.unreached.RLock()
	defer r.unreached.RUnlock()
	r.maintaining.Lock()
	defer r.maintaining.Unlock()
	progress("Looking for damage")
	sv, said, err := r.examineAgain(ctx)
	if err != nil {
		return Repaired{}, r.internalf(err, "repair")
	}
	if sv == nil {
		c, err := r.checkup(nil, "")
		return Repaired{Left: c}, err
	}
	res, err := r.repair(ctx, sv, from, progress)
	sv.Close()
	if err != nil {
		return res, r.internalf(err, "repair")
	}
	progress("Checking the result")
	if sv, said, err = r.examineAgain(ctx); err != nil {
		return res, r.internalf(err, "repair")
	}
	if sv != nil {
		defer sv.Close()
	}
	if res.Left, err = r.checkup(sv, said); err != nil {
		return res, r.internalf(err, "repair")
	}
	return res, nil
}

// acquireForRepair is like acquire, but also works for a space that cannot be opened.
// Other callers wait for such a space until release is called.
func (s *Store) acquireForRepair(ctx context.Context, id space.SpaceID) (*repo, func(), error) {
	for {
		r, release, err := s.acquire(ctx, id)
		if err == nil || !isBroken(err) || ctx.Err() != nil {
			return r, release, err
		}
		r = s.unopened(id)
		if r.db, err = readableObjects(filepath.Join(r.dir, "objects"), s.cache); err != nil {
			return nil, nil, r.internalf(err, "open")
		}
		s.mu.Lock()
		if s.open[id] != nil {
			s.mu.Unlock()
			r.db.Close()
			continue // another caller is opening the space
		}
		s.open[id] = r
		s.mu.Unlock()
		return r, func() {
			r.db.Close()
			s.mu.Lock()
			defer s.mu.Unlock()
			delete(s.open, id)
			r.openErr = fault.New(fault.Unavailable, "The space was being repaired. Try again.")
			close(r.opened)
		}, nil
	}
}

// readableObjects is like [packfile.Open], but leaves out packs whose index cannot be read.
func readableObjects(dir string, cache *packfile.Cache) (*packfile.DB, error) {
	db := &packfile.DB{Dir: dir, Cache: cache, Packs: map[string]*packfile.Pack{}, Small: map[packfile.Hash]packfile.Location{}}
	names, err := packfile.PackNames(db.PackDir())
	if err != nil {
		return nil, err
	}
	for _, name := range names {
		if p, err := packfile.Load(filepath.Join(db.PackDir(), name)); err == nil {
			db.AddLocked(name, p)
		}
	}
	return db, nil
}

// repair mends the damage that a survey found, as far as it can. The caller holds
// maintaining.
func (r *repo) repair(ctx context.Context, sv *survey, from Copies, progress func(string)) (res Repaired, err error) {
	copies, done, err := r.copies(ctx, from, progress)
	if err != nil {
		return res, err
	}
	defer done()
	if copies != nil {
		progress("Putting good copies in")
		if res.Restored, err = r.restoreObjects(ctx, sv, copies); err != nil {
			return res, err
		}
	}
	for _, p := range sv.bad {
		progress("Replacing a damaged pack")
		if err := r.replaceBad(ctx, sv, p); err != nil {
			return res, err
		}
	}
	for file, h := range sv.loose {
		if _, lost := sv.lost[h]; !lost {
			if err := os.Remove(file); err != nil {
				return res, err
			}
		}
	}
	if err := r.putAside(sv); err != nil {
		return res, err
	}
	if err := r.seeds.enter(ctx); err != nil {
		return res, err
	}
	defer r.seeds.leave()
	if len(sv.blind) == 0 {
		if err := r.db.Rescan(); err != nil {
			return res, err
		}
	}
	return res, r.relinkView()
}

// copies opens the source of good copies; db is nil if there is none. The caller
// must call done.
func (r *repo) copies(ctx context.Context, from Copies, progress func(string)) (db *packfile.DB, done func(), err error) {
	switch {
	case from.Dir != "":
		dir := from.Dir
		if _, err := os.Stat(filepath.Join(dir, ".git", "objects")); err == nil {
			dir = filepath.Join(dir, ".git")
		}
		db, err := readableObjects(filepath.Join(dir, "objects"), packfile.NewCache(0))
		if err != nil {
			return nil, nil, fault.Wrap(err, fault.Invalid, "%s is not a readable git repository.", from.Dir)
		}
		return db, db.Close, nil
	case from.Remote != nil:
		if r.s.o.Transport == nil {
			return nil, nil, errNoTransport
		}
		// The quarantine borrows no objects of the space: git would not fetch objects
		// that the space seems to have.
		q, err := r.s.newQuarantine("a repair")
		if err != nil {
			return nil, nil, err
		}
		progress("Fetching everything from the remote")
		if err := r.s.o.Transport.Fetch(ctx, *from.Remote, q.repoDir(), from.Branch, fetchedRef, r.s.o.Limits.Repository, progress); err != nil {
			q.Close()
			return nil, nil, err
		}
		if err := q.open(nil); err != nil {
			q.Close()
			return nil, nil, err
		}
		return q.r.db, q.Close, nil
	}
	return nil, func() {}, nil
}

// restoreObjects writes a pack with good copies of the lost objects, and of missing
// objects to which the restored objects refer. It returns how many objects it wrote.
func (r *repo) restoreObjects(ctx context.Context, sv *survey, copies *packfile.DB) (n int, err error) {
	w, err := packfile.NewWriter(r.s.o.disk, r.db.PackDir())
	if err != nil {
		return 0, err
	}
	var todo []packfile.Hash
	for h := range sv.lost {
		todo = append(todo, h)
	}
	for len(todo) > 0 {
		h := todo[len(todo)-1]
		todo = todo[:len(todo)-1]
		if err := ctx.Err(); err != nil {
			w.Abort()
			return 0, err
		}
		o, err := copies.Read(h)
		if err != nil {
			sv.lost[h] = struct{}{}
			continue
		}
		if err := w.AddNamed(h, o.Kind, o.Data); err != nil {
			w.Abort()
			return 0, err
		}
		delete(sv.lost, h)
		refs, err := refersTo(o)
		if err != nil {
			w.Abort()
			return 0, err
		}
		for _, ref := range refs {
			_, lost := sv.lost[ref]
			_, have := w.Have[ref]
			if !lost && !have && !sv.has(ref) {
				todo = append(todo, ref)
			}
		}
	}
	if len(w.Entries) == 0 {
		w.Abort()
		return 0, nil
	}
	n = len(w.Entries)
	p, err := w.Finish()
	if err != nil {
		return 0, err
	}
	sv.packs = append(sv.packs, p)
	if p, err = packfile.Load(p.Base); err != nil {
		return 0, err
	}
	r.db.Add(p)
	return n, nil
}

// replaceBad writes the objects of a damaged pack into a new pack and removes the
// old one, if every object has a good copy.
func (r *repo) replaceBad(ctx context.Context, sv *survey, p *packfile.Pack) error {
	var in strings.Builder
	for i := range p.N {
		if _, lost := sv.lost[p.Name(i)]; lost {
			return nil
		}
		fmt.Fprintln(&in, p.Name(i))
	}
	q, err := r.s.newQuarantine("a repair")
	if err != nil {
		return err
	}
	defer q.Close()
	dir := filepath.Join(q.repoDir(), "objects", "pack")
	out, err := r.s.git.Run(ctx, gitcmd.Cmd{Dir: r.dir, GitDir: r.dir, Stdin: strings.NewReader(in.String()),
		Args: []string{"pack-objects", "-q", "--delta-base-offset", "--no-write-bitmap-index", filepath.Join(dir, "pack")}})
	var made *packfile.Pack
	var g *gitcmd.Error
	switch {
	case err == nil:
		made, err = packfile.Load(filepath.Join(dir, "pack-"+strings.TrimSpace(string(out))))
	case errors.As(err, &g) && !isDiskFull(err): // git reads nothing from a pack with a damaged header or trailer
		made, err = r.copyPack(ctx, sv, p, dir)
	}
	if err != nil {
		return err
	}
	defer made.Close()
	for i := range p.N {
		if _, err := sv.readIn(made, p.Name(i)); err != nil {
			return fmt.Errorf("object %s of the new pack: %w", p.Name(i), err)
		}
	}
	// git may give the new pack the name of the damaged pack, which is still in use. So
	// give the new pack another name.
	sum := packfile.NewSHA1()
	fmt.Fprintf(sum, "repaired %s", filepath.Base(made.Base))
	base := filepath.Join(r.db.PackDir(), "pack-"+hex.EncodeToString(sum.Sum(nil)))
	for _, ext := range []string{".pack", ".idx"} {
		if err := os.Chmod(made.Base+ext, 0o444); err != nil {
			return err
		}
		if err := r.s.o.disk.SyncDir(made.Base + ext); err != nil { // SyncDir works for files too
			return err
		}
		if err := os.Rename(made.Base+ext, base+ext); err != nil {
			return err
		}
	}
	if err := r.s.o.disk.SyncDir(r.db.PackDir()); err != nil {
		return err
	}
	r.s.o.probe("repair: pack replaced")
	replacement, err := packfile.Load(base)
	if err != nil {
		return err
	}
	sv.packs = append(sv.packs, replacement)   // other damaged packs may need its objects
	if err := r.seeds.enter(ctx); err != nil { // no view may link to a pack that is being removed
		return err
	}
	defer r.seeds.leave()
	return p.Remove()
}

// copyPack writes the objects of a pack into a new pack, without deltas.
func (r *repo) copyPack(ctx context.Context, sv *survey, p *packfile.Pack, dir string) (*packfile.Pack, error) {
	w, err := packfile.NewWriter(r.s.o.disk, dir)
	if err != nil {
		return nil, err
	}
	for i := range p.N {
		o, err := sv.read(p.Name(i))
		if err == nil {
			err = errors.Join(w.AddNamed(p.Name(i), o.Kind, o.Data), ctx.Err())
		}
		if err != nil {
			w.Abort()
			return nil, err
		}
	}
	return w.Finish()
}

// putAside renames the packs whose index cannot be read, if no object is lost: a
// space with such a pack cannot be opened.
func (r *repo) putAside(sv *survey) error {
	if len(sv.blind) == 0 || len(sv.lost) > 0 {
		return nil
	}
	for _, base := range sv.blind {
		for _, ext := range []string{".idx", ".pack"} {
			if err := os.Rename(base+ext, base+ext+".damaged"); err != nil && !errors.Is(err, os.ErrNotExist) {
				return err
			}
		}
	}
	sv.blind = nil
	return r.s.o.disk.SyncDir(r.db.PackDir())
}
