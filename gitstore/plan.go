package gitstore

import (
	"context"
	"errors"
	"slices"
	"strings"

	"github.com/go-git/go-git/v5/plumbing"

	"satchel/gitstore/merge"
	"satchel/gitstore/packfile"
	"satchel/gitstore/trees"
	"satchel/internal/bytesize"
	"satchel/internal/fault"
	"satchel/internal/space"
)

// request is one validated entry of a change set. Its content is data, or a blob that
// the repository already has.
type request struct {
	path     space.Path
	raw      string // the path as the writer sent it
	delete   bool
	mode     space.Mode
	hash     packfile.Hash
	size     int64
	data     []byte
	base     space.BlobID
	baseMode space.Mode
	warning  string // from Options.Screen
}

// plan is the outcome of a change set for one head.
type plan struct {
	r      *repo
	head   *headState
	policy space.Policy

	deletes   map[string]trees.Place // the accepted deletions, with head's entries
	writes    map[string]request     // the accepted writes, by the path that they go to
	over      map[string]trees.Place // head's files that the writes replace
	refused   []space.Rejection
	conflicts []space.Conflict
	wanted    map[string]bool    // every path of a write or of a conflict copy
	dirs      map[string]bool    // the ancestors of the paths in wanted
	heal      []trees.Object     // damaged objects of head that the change set writes again
	names     packfile.NameIndex // an index of directories; nil for a small change set
}

// manyRequests is the number of requests above which directories are indexed.
const manyRequests = 32

// lookup finds a path in head's tree.
func (p *plan) lookup(path string) (trees.Place, error) {
	if p.names == nil {
		return p.r.trees().Lookup(p.head.tree, path)
	}
	return p.r.trees().LookupIn(p.names, p.head.tree, path)
}

// validate turns a change set into requests. It refuses what no head can accept.
func (r *repo) validate(ctx context.Context, cs space.ChangeSet) ([]request, []space.Rejection, error) {
	lim := r.s.o.Limits
	if len(cs.Changes) > lim.Entries {
		return nil, nil, fault.New(fault.TooLarge, "The change has %d entries, and %d are allowed. Commit it in parts.", len(cs.Changes), lim.Entries)
	}
	var total int64
	var refused []space.Rejection
	last := map[string]int{}
	reqs := make([]request, 0, len(cs.Changes))
	for _, c := range cs.Changes {
		q, err := r.check(c)
		if err != nil {
			refused = append(refused, rejection(c.Path, err))
			continue
		}
		total += int64(len(c.Content))
		if i, dup := last[c.Path]; dup {
			total -= int64(len(reqs[i].data))
			reqs[i] = q // the last entry for a path counts
			continue
		}
		last[c.Path] = len(reqs)
		reqs = append(reqs, q)
	}
	if total > lim.Change {
		return nil, nil, fault.New(fault.TooLarge, "The change has %s of content, and %s are allowed in one change. Commit it in parts.", bytesize.Text(total), bytesize.Text(lim.Change))
	}
	var err error
	passed := reqs[:0]
	for _, q := range reqs {
		if q.warning, err = r.screen(ctx, q, q.data); isFault(err) {
			refused = append(refused, rejection(q.raw, err))
		} else if err != nil {
			return nil, nil, err
		} else {
			passed = append(passed, q)
		}
	}
	return passed, refused, nil
}

func rejection(path string, err error) space.Rejection {
	return space.Rejection{Path: path, Why: fault.PublicOf(err), Err: err}
}

// check validates one entry.
func (r *repo) check(c space.Change) (request, error) {
	p, err := space.ParsePath(c.Path)
	if err != nil {
		return request{}, err
	}
	if err := r.checkWorkflow(p); err != nil {
		return request{}, err
	}
	q := request{path: p, raw: c.Path, mode: c.Mode, base: c.Base, baseMode: c.BaseMode}
	if c.Base != "" && !c.Base.Valid() {
		return q, fault.New(fault.Invalid, "The base of %q is not a blob id.", c.Path)
	}
	switch c.Op {
	case space.Delete:
		q.delete = true
		return q, nil
	case space.Write:
	default:
		return q, fault.New(fault.Invalid, "The change to %q has an unknown operation.", c.Path)
	}
	switch c.Mode {
	case space.Regular, space.Executable:
	case space.Symlink:
		if err := space.CheckSymlink(p, string(c.Content)); err != nil {
			return q, err
		}
	default:
		return q, fault.New(fault.Invalid, "The change to %q has an unknown mode.", c.Path)
	}
	if n := int64(len(c.Content)); n > r.s.o.Limits.File {
		return q, fault.New(fault.TooLarge, "The file %q has %s, and %s are allowed in one file.", c.Path, bytesize.Text(n), bytesize.Text(r.s.o.Limits.File))
	}
	if err := checkGitFile(p, c.Mode, c.Content); err != nil {
		return q, err
	}
	q.data, q.size = c.Content, int64(len(c.Content))
	q.hash = plumbing.ComputeHash(plumbing.BlobObject, c.Content)
	return q, nil
}

func (r *repo) checkWorkflow(p space.Path) error {
	rest, ok := cutPrefixFold(string(p), ".github/workflows")
	if !ok || rest != "" && rest[0] != '/' || r.s.o.AllowWorkflows != nil && r.s.o.AllowWorkflows(r.id) {
		return nil
	}
	return fault.New(fault.Forbidden, "The path %q is a GitHub workflow, which this space is not allowed to change: GitHub would refuse the push.", string(p))
}

func cutPrefixFold(s, prefix string) (string, bool) {
	if len(s) < len(prefix) || !strings.EqualFold(s[:len(prefix)], prefix) {
		return s, false
	}
	return s[len(prefix):], true
}

// decide compares every request with head. Under RefuseStale, the first stale entry is
// an error.
func (r *repo) decide(ctx context.Context, head *headState, reqs []request, policy space.Policy) (*plan, error) {
	p := &plan{r: r, head: head, policy: policy,
		deletes: map[string]trees.Place{}, writes: map[string]request{}, over: map[string]trees.Place{}, wanted: map[string]bool{}, dirs: map[string]bool{}}
	for _, q := range reqs {
		if !q.delete { // a conflict copy may take a deleted path, unless head has it
			p.want(string(q.path))
		}
	}
	if len(reqs) > manyRequests {
		p.names = packfile.NameIndex{}
	}
	slices.SortFunc(reqs, func(a, b request) int { return packfile.CompareStrings(string(a.path), string(b.path)) })
	for _, deletes := range []bool{true, false} { // a delete makes way for a write
		for _, q := range reqs {
			if q.delete != deletes {
				continue
			}
			if err := ctx.Err(); err != nil {
				return nil, err
			}
			at, err := p.lookup(string(q.path))
			switch {
			case err != nil:
			case q.delete:
				err = p.delete(q, at)
			default:
				err = p.write(ctx, q, at)
			}
			var f *fault.Error
			if errors.As(err, &f) && (f.Code == fault.Invalid || f.Code == fault.Damaged) {
				p.refused = append(p.refused, rejection(q.raw, err))
			} else if err != nil {
				return nil, err
			}
		}
	}
	p.refuseBelowFiles()
	return p, nil
}

// delete decides on a deletion.
func (p *plan) delete(q request, at trees.Place) error {
	switch {
	case at.HasFile() && packfile.BlobID(at.Hash) == q.base:
		p.deletes[string(q.path)] = at
	case at.HasFile():
		if p.policy == space.RefuseStale {
			return p.stale(q.path)
		}
		p.conflicts = append(p.conflicts, space.Conflict{Path: q.path})
	case at.HasDir() && q.base != "" && p.policy != space.RefuseStale:
		// The file has become a directory, which stays.
		p.conflicts = append(p.conflicts, space.Conflict{Path: q.path})
	case at.HasDir():
		return fault.New(fault.Invalid, "The path %q is a directory. Delete the files in it.", q.raw)
	case at.Found && at.Blocked == "":
		return errSubmodule(q.raw)
	}
	return nil // the file is already gone
}

func errSubmodule(path string) error {
	return fault.New(fault.Invalid, "The path %q is a submodule of the repository, which cannot be changed here.", path)
}

func (p *plan) stale(at space.Path) error {
	return fault.New(fault.Conflict, "The file %q was changed since you read it. Read it again and repeat the change.", string(at))
}

// write decides on a file's new content.
func (p *plan) write(ctx context.Context, q request, at trees.Place) error {
	path := string(q.path)
	switch {
	case at.HasFile():
		return p.overwrite(q, at)
	case at.Blocked != "":
		if _, gone := p.deletes[at.Blocked]; gone {
			p.writes[path] = q
			return nil
		}
		if !at.TreeEntry.IsFile() {
			return errSubmodule(at.Blocked)
		}
		return p.keepBoth(q, at.Blocked, strings.TrimPrefix(path, at.Blocked))
	case at.HasDir():
		empty, err := p.emptied(ctx, path, at.Hash)
		if err != nil {
			return err
		}
		if empty {
			p.writes[path] = q
			return nil
		}
		return p.keepBoth(q, path, "")
	case at.Found:
		return errSubmodule(q.raw)
	case q.base != "":
		// The file was deleted since. The history has the deletion, but nothing has the
		// new content.
		if p.policy == space.RefuseStale {
			return p.stale(q.path)
		}
		p.conflicts = append(p.conflicts, space.Conflict{Path: q.path, Kept: q.path})
	}
	p.writes[path] = q
	return nil
}

// overwrite decides on a write to a path that is a file in head.
func (p *plan) overwrite(q request, at trees.Place) error {
	mode := at.FileMode()
	fresh := packfile.BlobID(at.Hash) == q.base && (mode == space.Symlink) == (q.baseMode == space.Symlink)
	switch {
	case at.Hash == q.hash && mode == q.mode: // head has it already
		if (q.data != nil || q.size == 0) && !p.r.db.Sound(q.hash) {
			p.heal = append(p.heal, trees.Object{Kind: plumbing.BlobObject, Hash: q.hash, Data: q.data})
		}
		return nil
	case fresh:
		if q.mode == q.baseMode {
			q.mode = mode // only the content changed; head's mode stays
		}
		if at.Hash != q.hash || mode != q.mode {
			p.writes[string(q.path)], p.over[string(q.path)] = q, at
		}
		return nil
	case at.Hash == q.hash && mode != space.Symlink && q.mode != space.Symlink:
		return nil // equal contents; head's mode stays
	}
	return p.keepBoth(q, string(q.path), "")
}

// emptied reports whether the accepted deletes remove everything in a directory.
func (p *plan) emptied(ctx context.Context, dir string, tree packfile.Hash) (bool, error) {
	errLeft := errors.New("something is left")
	err := p.r.trees().Walk(ctx, tree, dir+"/", func(path string, _ packfile.TreeEntry) error {
		if _, gone := p.deletes[path]; !gone {
			return errLeft
		}
		return nil
	})
	if errors.Is(err, errLeft) {
		return false, nil
	}
	return err == nil, err
}

// keepBoth puts a write beside the entry of head that is in its way. component is the path of
// that entry: the path of the write, or an ancestor of it. rest is the part below component.
func (p *plan) keepBoth(q request, component, rest string) error {
	if p.policy == space.RefuseStale {
		return p.stale(q.path)
	}
	for n := 1; n <= 1000; n++ {
		name, ok := merge.ConflictName(component, rest, packfile.CommitID(p.head.id), n)
		if !ok {
			break
		}
		at, err := p.lookup(string(name))
		if err != nil {
			return err
		}
		mine, taken := p.writes[string(name)]
		switch {
		case at.HasFile() && at.Hash == q.hash && at.FileMode() == q.mode, taken && mine.hash == q.hash && mine.mode == q.mode:
			// An earlier attempt has already kept this file.
		case at.Found || at.Blocked != "" || taken || p.isWanted(string(name)):
			continue
		default:
			q.base = ""
			p.writes[string(name)] = q
			p.want(string(name))
		}
		p.conflicts = append(p.conflicts, space.Conflict{Path: q.path, Kept: name})
		return nil
	}
	return fault.New(fault.Invalid, "There is a newer version of %q, and no free name for a copy of your change.", q.raw)
}

// want records a path of the change set, so that no copy goes there, above it or below
// it.
func (p *plan) want(path string) {
	p.wanted[path] = true
	for i := strings.LastIndexByte(path, '/'); i > 0; i = strings.LastIndexByte(path[:i], '/') {
		if p.dirs[path[:i]] {
			return
		}
		p.dirs[path[:i]] = true
	}
}

// isWanted reports whether a copy at path would be in the way of the change set.
func (p *plan) isWanted(path string) bool {
	if p.wanted[path] || p.dirs[path] {
		return true
	}
	for i := strings.LastIndexByte(path, '/'); i > 0; i = strings.LastIndexByte(path[:i], '/') {
		if p.wanted[path[:i]] {
			return true
		}
	}
	return false
}

// underWrite reports whether the plan writes an ancestor of path as a file.
func (p *plan) underWrite(path string) bool {
	for i := strings.LastIndexByte(path, '/'); i > 0; i = strings.LastIndexByte(path[:i], '/') {
		if _, ok := p.writes[path[:i]]; ok {
			return true
		}
	}
	return false
}

// refuseBelowFiles refuses writes below a path that the same change set makes a file.
func (p *plan) refuseBelowFiles() {
	var below []string
	for path, q := range p.writes {
		if p.underWrite(path) {
			below = append(below, path)
			p.refused = append(p.refused, rejection(q.raw, fault.New(fault.Invalid,
				"The change makes %q both a file and a directory.", q.raw)))
		}
	}
	p.drop(below)
}

// drop removes refused writes from the plan.
func (p *plan) drop(paths []string) {
	slices.Sort(paths)
	for _, path := range paths {
		delete(p.writes, path)
		delete(p.over, path)
	}
	p.conflicts = slices.DeleteFunc(p.conflicts, func(c space.Conflict) bool {
		_, gone := slices.BinarySearch(paths, string(c.Kept))
		return gone
	})
}

// warnings returns the warnings of the writes, sorted by path.
func (p *plan) warnings() (out []space.Warning) {
	for path, q := range p.writes {
		if q.warning != "" {
			out = append(out, space.Warning{Path: path, Why: q.warning})
		}
	}
	slices.SortFunc(out, func(a, b space.Warning) int { return packfile.CompareStrings(a.Path, b.Path) })
	return out
}

// edits returns the plan as edits of a tree and as file changes.
func (p *plan) edits() (es []trees.Edit, files []space.FileChange) {
	for path, at := range p.deletes {
		if _, again := p.writes[path]; again {
			continue
		}
		es = append(es, trees.Edit{Path: path})
		files = append(files, space.FileChange{Path: space.Path(path), Status: space.Deleted, Old: packfile.BlobID(at.Hash), OldMode: at.FileMode()})
	}
	for path, q := range p.writes {
		es = append(es, trees.Edit{Path: path, Mode: packfile.TreeMode(q.mode), Hash: q.hash})
		f := space.FileChange{Path: space.Path(path), Status: space.Added, New: packfile.BlobID(q.hash), NewMode: q.mode, Size: q.size}
		if at, ok := p.over[path]; ok {
			f.Status, f.Old, f.OldMode = space.Modified, packfile.BlobID(at.Hash), at.FileMode()
		}
		files = append(files, f)
	}
	slices.SortFunc(files, func(a, b space.FileChange) int { return packfile.CompareStrings(string(a.Path), string(b.Path)) })
	slices.SortFunc(p.refused, func(a, b space.Rejection) int { return packfile.CompareStrings(a.Path, b.Path) })
	slices.SortFunc(p.conflicts, func(a, b space.Conflict) int { return packfile.CompareStrings(string(a.Path), string(b.Path)) })
	return es, files
}
