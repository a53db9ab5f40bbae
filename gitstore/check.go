package gitstore

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/go-git/go-git/v5/plumbing"

	"satchel/gitstore/commits"
	"satchel/gitstore/gitcmd"
	"satchel/gitstore/packfile"
	"satchel/internal/fault"
	"satchel/internal/space"
)

// Checkup is the result of Check.
type Checkup struct {
	Packs int   `json:"packs"`
	Bytes int64 `json:"bytes"` // the size of all packs
	// Damaged lists at most maxDamaged objects that are unreadable or missing; More
	// counts the rest.
	Damaged []Damaged `json:"damaged"`
	More    int       `json:"more,omitempty"`
	// Said is git's report of a defect that makes no object unreadable, such as a
	// wrong checksum, or why the space cannot be opened. It is empty if objects are
	// damaged.
	Said string `json:"said,omitempty"`
}

// Whole reports whether nothing is damaged.
func (c Checkup) Whole() bool { return len(c.Damaged) == 0 && c.Said == "" }

// Damaged is one object that cannot be read.
type Damaged struct {
	Object string `json:"object"`
	// Paths lists at most maxPaths places of the object in the newest commit. It is
	// empty if only older commits or damaged directories have the object. The path of
	// a directory ends in a slash.
	Paths []string `json:"paths"`
}

// Limits of a Checkup.
const (
	maxDamaged = 1000
	maxPaths   = 20
)

// Check looks for damage in a space: git reads every object and follows every ref.
// It also checks a space that cannot be opened. Commits and reads continue
// meanwhile. For a large space it takes a while, but little memory.
func (s *Store) Check(ctx context.Context, id space.SpaceID) (Checkup, error) {
	r, release, err := s.acquire(ctx, id)
	if err != nil && (!isBroken(err) || ctx.Err() != nil) {
		return Checkup{}, err
	}
	closed := err
	if closed != nil {
		r, release = s.unopened(id), func() {}
	}
	defer release()
	sv, said, err := r.examine(ctx)
	if err != nil {
		return Checkup{}, r.internalf(err, "check")
	}
	if sv != nil {
		defer sv.Close()
	}
	c, err := r.checkup(sv, said)
	if err != nil {
		return Checkup{}, r.internalf(err, "check")
	}
	c.stillClosed(closed)
	return c, nil
}

// stillClosed records why a space cannot be opened, if nothing else was found.
func (c *Checkup) stillClosed(err error) {
	if err != nil && c.Whole() {
		c.Said = commits.OneLine("the space cannot be opened: "+err.Error(), maxSaid)
	}
}

// isBroken reports whether an error of acquire means that the space's files are broken.
func isBroken(err error) bool {
	c := fault.CodeOf(err)
	return c == fault.Damaged || c == fault.Internal
}

// examine has git check the space. If git finds a defect, examine returns a survey
// of the objects and git's report.
func (r *repo) examine(ctx context.Context) (sv *survey, said string, err error) {
	if _, said, err = r.fsck(ctx); err != nil || said == "" {
		return nil, "", err
	}
	r.maintaining.Lock() // packs must not move during the check
	defer r.maintaining.Unlock()
	return r.examineAgain(ctx)
}

// examineAgain is like examine, for a caller that holds r.maintaining and expects damage.
func (r *repo) examineAgain(ctx context.Context) (*survey, string, error) {
	missing, said, err := r.fsck(ctx)
	if err == nil && said != "" {
		var sv *survey
		if sv, err = r.survey(ctx, missing); err != nil || len(sv.lost) > 0 || len(sv.bad) > 0 || len(sv.loose) > 0 {
			return sv, said, err
		}
		sv.Close()
		// Either a commit changed the space during the check, or no object is damaged. Check
		// again while commits wait.
		r.commitMu.Lock()
		defer r.commitMu.Unlock()
		if missing, said, err = r.fsck(ctx); err == nil && said != "" {
			sv, err = r.survey(ctx, missing)
			return sv, said, err
		}
	}
	return nil, "", err
}

// fsck runs git's check. said is empty if git finds no defect; missing lists the
// objects that git reports as missing.
func (r *repo) fsck(ctx context.Context) (missing []packfile.Hash, said string, err error) {
	git := r.s.git
	git.Timeout = 0 // ctx limits the time
	_, err = git.Run(ctx, gitcmd.Cmd{Dir: r.dir, GitDir: r.dir, Config: gitcmd.FsckConfig("fsck"),
		Args: []string{"fsck", "--full", "--no-dangling", "--no-progress", "--no-reflogs"}})
	var g *gitcmd.Error
	if !errors.As(err, &g) || g.ExitCode() < 0 || gitcmd.OutOfMemory(err) {
		return nil, "", err
	}
	for line := range strings.Lines(string(g.Stdout)) {
		if rest, ok := strings.CutPrefix(line, "missing "); ok {
			_, name, _ := strings.Cut(strings.TrimSpace(rest), " ")
			if h, err := packfile.HashFrom(name); err == nil {
				missing = append(missing, h)
			}
		}
	}
	said = commits.OneLine(strings.TrimSpace(g.Stderr+"\n"+string(g.Stdout[:min(len(g.Stdout), maxSaid)])), maxSaid)
	if said == "" {
		said = fmt.Sprintf("git fsck ended with status %d", g.ExitCode())
	}
	return missing, said, nil
}

// maxSaid limits git's report, in bytes.
const maxSaid = 500

// survey is the result of reading every object of a space, damaged ones included.
type survey struct {
	dir   string // the directory of the objects
	packs []*packfile.Pack
	bad   []*packfile.Pack           // the packs that are damaged
	blind []string                   // the paths of packs whose index cannot be used, without .pack
	loose map[string]packfile.Hash   // the files of damaged objects outside packs
	lost  map[packfile.Hash]struct{} // objects without a readable copy
	paths map[packfile.Hash][]string // the lost objects' paths in the newest commit
}

func (sv *survey) Close() {
	for _, p := range sv.packs {
		p.Close()
	}
}

// survey reads every object and looks for the missing ones.
func (r *repo) survey(ctx context.Context, missing []packfile.Hash) (_ *survey, err error) {
	sv := &survey{dir: filepath.Join(r.dir, "objects"), loose: map[string]packfile.Hash{}, lost: map[packfile.Hash]struct{}{}, paths: map[packfile.Hash][]string{}}
	defer func() {
		if err != nil {
			sv.Close()
		}
	}()
	names, err := filepath.Glob(filepath.Join(sv.dir, "pack", "*.pack"))
	if err != nil {
		return nil, err
	}
	for _, name := range names {
		base := strings.TrimSuffix(name, ".pack")
		p, err := packfile.Load(base)
		switch {
		case err == nil:
			sv.packs = append(sv.packs, p)
		case errors.Is(err, packfile.ErrBadIndex), errors.Is(err, fs.ErrNotExist):
			sv.blind = append(sv.blind, base)
		default:
			return nil, err
		}
	}
	suspect := slices.Clone(missing)
	for _, p := range sv.packs {
		unreadable, err := sv.unreadable(ctx, p)
		if err != nil {
			return nil, err
		}
		if len(unreadable) == 0 {
			ok, err := p.SumIsRight()
			if err != nil {
				return nil, err
			}
			if ok {
				continue
			}
		}
		sv.bad = append(sv.bad, p)
		suspect = append(suspect, unreadable...)
	}
	files, err := filepath.Glob(filepath.Join(sv.dir, "[0-9a-f][0-9a-f]", "*"))
	if err != nil {
		return nil, err
	}
	for _, f := range files {
		h, err := packfile.HashFrom(filepath.Base(filepath.Dir(f)) + filepath.Base(f))
		if err != nil {
			continue
		}
		if _, err := (&packfile.DB{Dir: sv.dir}).ReadLoose(h); err != nil {
			sv.loose[f] = h
			suspect = append(suspect, h)
		}
	}
	for _, h := range suspect {
		if _, err := sv.read(h); err != nil {
			sv.lost[h] = struct{}{}
		}
	}
	if len(sv.blind) > 0 { // git may be able to use packs that this package cannot
		if err := r.follow(ctx, sv); err != nil {
			return nil, err
		}
	}
	return sv, r.nameLost(ctx, sv)
}

// follow adds to sv.lost every object that a ref reaches and that cannot be read.
func (r *repo) follow(ctx context.Context, sv *survey) error {
	out, err := r.s.git.Run(ctx, gitcmd.Cmd{Dir: r.dir, GitDir: r.dir, Args: []string{"for-each-ref", "--format=%(objectname)"}})
	if err != nil {
		return err
	}
	var todo []packfile.Hash
	for line := range strings.Lines(string(out)) {
		h, err := packfile.HashFrom(strings.TrimSpace(line))
		if err != nil {
			return err
		}
		todo = append(todo, h)
	}
	seen := map[packfile.Hash]struct{}{}
	for len(todo) > 0 {
		h := todo[len(todo)-1]
		todo = todo[:len(todo)-1]
		if _, ok := seen[h]; ok {
			continue
		}
		seen[h] = struct{}{}
		o, err := sv.read(h)
		if err != nil {
			sv.lost[h] = struct{}{}
			continue
		}
		refs, err := refersTo(o)
		if err := errors.Join(err, ctx.Err()); err != nil {
			return err
		}
		todo = append(todo, refs...)
	}
	return nil
}

// unreadable lists the objects of a pack that cannot be read or do not match their names.
func (sv *survey) unreadable(ctx context.Context, p *packfile.Pack) (out []packfile.Hash, err error) {
	for i := range p.N {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		if _, err := sv.readIn(p, p.Name(i)); err != nil {
			out = append(out, p.Name(i))
		}
	}
	return out, nil
}

func (sv *survey) readIn(p *packfile.Pack, h packfile.Hash) (packfile.Object, error) {
	off, ok := p.Find(h)
	if !ok {
		return packfile.Object{}, packfile.ErrNotFound
	}
	o, err := p.Read(off, sv.read)
	if err == nil && packfile.NameOf(o) != h {
		err = packfile.ErrDamaged
	}
	return o, err
}

// read returns the first good copy of an object.
func (sv *survey) read(h packfile.Hash) (packfile.Object, error) {
	for _, p := range sv.packs {
		if o, err := sv.readIn(p, h); err == nil {
			return o, nil
		}
	}
	return (&packfile.DB{Dir: sv.dir}).ReadLoose(h)
}

// has reports whether there is a readable copy of an object.
func (sv *survey) has(h packfile.Hash) bool {
	if _, lost := sv.lost[h]; lost {
		return false
	}
	for _, p := range sv.packs {
		if _, ok := p.Find(h); ok {
			return true
		}
	}
	_, err := os.Stat(filepath.Join(sv.dir, h.String()[:2], h.String()[2:]))
	return err == nil
}

// refersTo lists the objects that an object refers to, except submodules.
func refersTo(o packfile.Object) (out []packfile.Hash, err error) {
	switch o.Kind {
	case plumbing.CommitObject:
		c, err := commits.Parse(o.Data)
		return append(c.Parents, c.Tree), err
	case plumbing.TreeObject:
		es, err := packfile.ParseTree(o.Data)
		for _, e := range es {
			if e.IsDir() || e.IsFile() {
				out = append(out, e.Hash)
			}
		}
		return out, err
	}
	return nil, nil
}

// checkup summarizes a survey, which is nil if git found no defect.
func (r *repo) checkup(sv *survey, said string) (c Checkup, err error) {
	names, err := filepath.Glob(filepath.Join(r.dir, "objects", "pack", "*.pack"))
	if err != nil {
		return c, err
	}
	for _, name := range names {
		if st, err := os.Stat(name); err == nil {
			c.Packs, c.Bytes = c.Packs+1, c.Bytes+st.Size()
		}
	}
	c.Damaged = []Damaged{}
	if sv == nil {
		return c, nil
	}
	for h := range sv.lost {
		c.Damaged = append(c.Damaged, Damaged{Object: h.String(), Paths: append([]string{}, sv.paths[h]...)})
	}
	if len(c.Damaged) == 0 {
		c.Said = said
	}
	// Objects of the newest commit come first.
	slices.SortFunc(c.Damaged, func(a, b Damaged) int {
		if (len(a.Paths) > 0) != (len(b.Paths) > 0) {
			return len(b.Paths) - len(a.Paths)
		}
		return strings.Compare(strings.Join(a.Paths, "\x00")+a.Object, strings.Join(b.Paths, "\x00")+b.Object)
	})
	if n := len(c.Damaged); n > maxDamaged {
		c.Damaged, c.More = c.Damaged[:maxDamaged], n-maxDamaged
	}
	return c, nil
}

// nameLost finds the paths of lost objects in the newest commit. It also adds the missing
// objects of that commit to sv.lost.
func (r *repo) nameLost(ctx context.Context, sv *survey) error {
	at := func(h packfile.Hash, path string) {
		sv.lost[h] = struct{}{}
		if len(sv.paths[h]) < maxPaths {
			sv.paths[h] = append(sv.paths[h], path)
		}
	}
	head := r.readRef()
	if head.IsZero() {
		var err error
		if head, _, err = r.lastLogged(); err != nil || head.IsZero() {
			return err
		}
	}
	o, err := sv.read(head)
	if err != nil {
		at(head, "/")
		return nil
	}
	commit, err := commits.Parse(o.Data)
	if err != nil {
		return err
	}
	// A tree at many paths is walked once for each path, so the walk has a limit.
	left := 4 * r.s.o.Limits.Files
	var walk func(tree packfile.Hash, dir string) error
	walk = func(tree packfile.Hash, dir string) error {
		o, err := sv.read(tree)
		if err != nil {
			at(tree, dir+"/")
			return ctx.Err()
		}
		es, err := packfile.ParseTree(o.Data)
		if err != nil {
			return err
		}
		for _, e := range es {
			if left--; left < 0 || ctx.Err() != nil {
				return ctx.Err()
			}
			path := strings.TrimPrefix(dir+"/"+e.Name, "/")
			switch {
			case e.IsDir():
				if err := walk(e.Hash, path); err != nil {
					return err
				}
			case e.IsFile() && !sv.has(e.Hash):
				at(e.Hash, path)
			}
		}
		return nil
	}
	return walk(commit.Tree, "")
}
