package gitstore

import (
	"bytes"
	"container/heap"
	"context"
	"slices"
	"strings"

	fdiff "github.com/go-git/go-git/v5/plumbing/format/diff"

	"satchel/gitstore/commits"
	"satchel/gitstore/packfile"
	"satchel/gitstore/trees"
	"satchel/internal/fault"
	"satchel/internal/space"
)

// staleClock is the number of consecutive commits older than LogQuery.Since after which
// Log stops.
const staleClock = 20

// Log lists commits without their files, newest first. A commit comes before its parents,
// unless the dates contradict this. If the query has a Path, Log leaves out a merge in which
// the path is the same as in one of its parents, as git does.
func (s *Store) Log(ctx context.Context, id space.SpaceID, o space.LogQuery) ([]space.Commit, error) {
	r, st, release, err := s.at(ctx, id, o.From)
	if err != nil {
		return nil, err
	}
	defer release()
	if o.Limit <= 0 {
		o.Limit = 50
	}
	o.Limit = min(o.Limit, 1000)
	if o.After != "" {
		if _, err := r.resolve(string(o.After)); err != nil {
			return nil, err
		}
	}
	var out []space.Commit
	passed := o.After == ""
	older := 0 // consecutive commits older than Since
	err = r.history(ctx, st.id, string(o.Path), func(h packfile.Hash, c commits.Raw, touches bool) (bool, error) {
		if c.Time.Before(o.Since) {
			// Clocks differ, so look at a few more commits, as git does.
			older++
			return older < staleClock || !passed, nil
		}
		older = 0
		if !passed {
			passed = packfile.CommitID(h) == o.After
			return true, nil
		}
		if !touches || !o.Until.IsZero() && !c.Time.Before(o.Until) {
			return true, nil
		}
		x := r.proven(c, h)
		if o.Author != "" && x.Author.Name != o.Author {
			return true, nil
		}
		if len(o.Tools) > 0 && !slices.Contains(o.Tools, x.Tool) {
			return true, nil
		}
		if o.Tool != "" && x.Tool != o.Tool || o.Client != "" && x.Client != o.Client && !strings.HasPrefix(x.Client, o.Client+"/") {
			return true, nil
		}
		x.Changed = true
		out = append(out, x)
		return len(out) < o.Limit, nil
	})
	if err != nil {
		return nil, err
	}
	if !passed {
		return nil, fault.New(fault.NotFound, "The commit %s is not in this history.", o.After.Short())
	}
	return out, nil
}

// history visits the commits of a history, newest first, until visit returns false. With
// a path, it follows only the parents that touching returns, and tells visit whether the
// commit changed the path.
func (r *repo) history(ctx context.Context, h packfile.Hash, path string, visit func(packfile.Hash, commits.Raw, bool) (bool, error)) error {
	q := &byTime{}
	push := r.pusher(q)
	if err := push(h); err != nil {
		return err
	}
	for q.Len() > 0 {
		if err := ctx.Err(); err != nil {
			return err
		}
		d := heap.Pop(q).(datedCommit)
		follow, touches := d.c.Parents, true
		if path != "" {
			var err error
			if follow, touches, err = r.touching(d.c, path); err != nil {
				return r.internalf(err, "log")
			}
		}
		more, err := visit(d.h, d.c, touches)
		if err != nil || !more {
			return err
		}
		for _, p := range follow {
			if err := push(p); err != nil {
				return err
			}
		}
	}
	return nil
}

// pusher returns a function that adds a commit to q, unless it has added the commit
// before.
func (r *repo) pusher(q *byTime) func(packfile.Hash) error {
	seen := map[packfile.Hash]bool{}
	return func(h packfile.Hash) error {
		if seen[h] {
			return nil
		}
		seen[h] = true
		c, err := commits.Get(r.db, h)
		if err != nil {
			return r.internalf(err, "log")
		}
		heap.Push(q, datedCommit{h, c, len(seen)})
		return nil
	}
}

// touching reports whether a commit changed a path against all its parents, and which
// parents to follow: a parent with the path unchanged, if any, or else all parents.
func (r *repo) touching(c commits.Raw, path string) (follow []packfile.Hash, touches bool, err error) {
	mine, err := r.trees().Lookup(c.Tree, path)
	if err != nil {
		return nil, false, err
	}
	if len(c.Parents) == 0 {
		return nil, mine.Found, nil
	}
	for _, p := range c.Parents {
		pc, err := commits.Get(r.db, p)
		if err != nil {
			return nil, false, err
		}
		theirs, err := r.trees().Lookup(pc.Tree, path)
		if err != nil {
			return nil, false, err
		}
		if theirs.Found == mine.Found && (!mine.Found || theirs.Hash == mine.Hash && theirs.Mode == mine.Mode) {
			return []packfile.Hash{p}, false, nil
		}
	}
	return c.Parents, true, nil
}

type datedCommit struct {
	h     packfile.Hash
	c     commits.Raw
	order int
}

// byTime is a heap of commits, newest first, then in order of discovery.
type byTime []datedCommit

func (q byTime) Len() int      { return len(q) }
func (q byTime) Swap(i, j int) { q[i], q[j] = q[j], q[i] }
func (q byTime) Less(i, j int) bool {
	if !q[i].c.Time.Equal(q[j].c.Time) {
		return q[i].c.Time.After(q[j].c.Time)
	}
	return q[i].order < q[j].order
}
func (q *byTime) Push(x any) { *q = append(*q, x.(datedCommit)) }
func (q *byTime) Pop() any {
	old := *q
	x := old[len(old)-1]
	*q = old[:len(old)-1]
	return x
}

// Show returns a commit with the files that it changed against its first parent.
func (s *Store) Show(ctx context.Context, id space.SpaceID, at space.CommitID) (space.Commit, error) {
	r, st, release, err := s.at(ctx, id, at)
	if err != nil {
		return space.Commit{}, err
	}
	defer release()
	raw, err := commits.Get(r.db, st.id)
	if err != nil {
		return space.Commit{}, r.internalf(err, "show")
	}
	var parent packfile.Hash
	if len(raw.Parents) > 0 {
		p, err := r.state(raw.Parents[0])
		if err != nil {
			return space.Commit{}, r.internalf(err, "show")
		}
		parent = p.tree
	}
	c := r.proven(raw, st.id)
	c.Changed = true
	c.Files, err = r.diff(ctx, parent, st.tree)
	return c, err
}

// under reports whether path is p or below it. Every path is under "".
func under(path, p string) bool {
	return p == "" || path == p || strings.HasPrefix(path, p+"/")
}

// maxFrontier is the maximum number of commits in a cursor. A cursor names the next commit of
// each branch that continues after the page. If there are more branches, the page gets longer.
const maxFrontier = 64

// LogPage is like Log, but in pages, and at a cost that does not grow with the history.
// It looks at no more than walk commits, or a few more if many branches run side by side.
// It starts at a commit ("" for head), or at the cursor of the previous page. next is the
// cursor of the next page, or "" at the end of the history. The list has fewer than limit
// commits, or none, if the walk ends first.
func (s *Store) LogPage(ctx context.Context, id space.SpaceID, at space.CommitID, path space.Path, cursor string, limit, walk int) (list []space.Commit, next string, err error) {
	r, st, release, err := s.at(ctx, id, at)
	if err != nil {
		return nil, "", err
	}
	defer release()
	start := []packfile.Hash{st.id}
	if cursor != "" {
		if start, err = r.readCursor(cursor); err != nil {
			return nil, "", err
		}
	}
	limit, walk = max(1, limit), max(1, walk)
	q, err := r.historyFrom(ctx, start, string(path), func(h packfile.Hash, c commits.Raw, touches bool) bool {
		walk--
		if touches {
			x := r.proven(c, h)
			x.Changed = true
			list = append(list, x)
		}
		return len(list) < limit && walk > 0
	})
	if err != nil {
		return nil, "", err
	}
	var ids []string
	for q.Len() > 0 {
		ids = append(ids, heap.Pop(q).(datedCommit).h.String())
	}
	return list, strings.Join(ids, "."), nil
}

// readCursor returns the commits that a cursor names.
func (r *repo) readCursor(cursor string) ([]packfile.Hash, error) {
	bad := fault.New(fault.NotFound, "The position to continue from is not in the history.")
	if len(cursor) > maxFrontier*41 {
		return nil, bad
	}
	var out []packfile.Hash
	for s := range strings.SplitSeq(cursor, ".") {
		if !space.CommitID(s).Valid() {
			return nil, bad
		}
		st, err := r.resolve(s)
		if err != nil {
			return nil, bad
		}
		out = append(out, st.id)
	}
	return out, nil
}

// historyFrom visits commits as history does, from several start commits, until visit
// returns false. It returns the commits that it would visit next.
func (r *repo) historyFrom(ctx context.Context, start []packfile.Hash, path string, visit func(packfile.Hash, commits.Raw, bool) bool) (*byTime, error) {
	q := &byTime{}
	push := r.pusher(q)
	for _, h := range start {
		if err := push(h); err != nil {
			return nil, err
		}
	}
	for more := true; q.Len() > 0 && (more || q.Len() > maxFrontier); {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		d := heap.Pop(q).(datedCommit)
		follow, touches := d.c.Parents, true
		if path != "" {
			var err error
			if follow, touches, err = r.touching(d.c, path); err != nil {
				return nil, r.internalf(err, "log")
			}
		}
		more = visit(d.h, d.c, touches) && more
		for _, p := range follow {
			if err := push(p); err != nil {
				return nil, err
			}
		}
	}
	return q, nil
}

// LastChanges returns, for each name in a directory at a commit, the commit that last changed
// the name. An empty at is head, an empty dir is the root. LastChanges follows first parents,
// so a merge counts as the last change of the files that it brought in. It looks at no more
// than walk commits. A name that changed only before these commits is not in the result.
func (s *Store) LastChanges(ctx context.Context, id space.SpaceID, at space.CommitID, dir space.Path, walk int) (map[string]space.Commit, error) {
	r, st, release, err := s.at(ctx, id, at)
	if err != nil {
		return nil, err
	}
	defer release()
	changed, err := r.lastChanges(ctx, st.id, string(dir), walk)
	if err != nil {
		return nil, r.internalf(err, "last changes")
	}
	return changed, nil
}

func (r *repo) lastChanges(ctx context.Context, from packfile.Hash, dir string, walk int) (map[string]space.Commit, error) {
	out := map[string]space.Commit{}
	entries := func(c commits.Raw) (packfile.Hash, error) {
		l, err := r.trees().Lookup(c.Tree, dir)
		if err != nil || !l.HasDir() {
			return packfile.Hash{}, err
		}
		return l.Hash, nil
	}
	c, err := commits.Get(r.db, from)
	if err != nil {
		return nil, err
	}
	mine, err := entries(c)
	if err != nil {
		return nil, err
	}
	list, err := r.db.Tree(mine)
	if err != nil {
		return nil, err
	}
	left := make(map[string]packfile.TreeEntry, len(list)) // entries without a commit so far
	for _, e := range list {
		left[e.Name] = e
	}
	for h := from; walk > 0 && len(left) > 0; walk-- {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		var parent commits.Raw
		var theirs packfile.Hash
		if len(c.Parents) > 0 {
			if parent, err = commits.Get(r.db, c.Parents[0]); err != nil {
				return nil, err
			}
			if theirs, err = entries(parent); err != nil {
				return nil, err
			}
		}
		if theirs != mine {
			var old []packfile.TreeEntry
			if !theirs.IsZero() {
				if old, err = r.db.Tree(theirs); err != nil {
					return nil, err
				}
			}
			same := make(map[string]bool, len(left))
			for _, e := range old {
				if now, ok := left[e.Name]; ok && now == e {
					same[e.Name] = true
				}
			}
			for name := range left {
				if !same[name] {
					out[name] = r.proven(c, h)
					delete(left, name)
				}
			}
		}
		if len(c.Parents) == 0 {
			break
		}
		h, c, mine = c.Parents[0], parent, theirs
	}
	return out, nil
}

// Changes lists the files at or under a path that differ between two commits, sorted by
// path. It returns at most limit files, and the number of all such files. An empty from is
// the empty tree, an empty to is head.
func (s *Store) Changes(ctx context.Context, id space.SpaceID, from, to space.CommitID, path space.Path, limit int) (files []space.FileChange, total int, err error) {
	r, st, release, err := s.at(ctx, id, to)
	if err != nil {
		return nil, 0, err
	}
	defer release()
	var tree packfile.Hash
	if from != "" {
		f, err := r.resolve(string(from))
		if err != nil {
			return nil, 0, err
		}
		tree = f.tree
	}
	var all []trees.Change
	if err := r.trees().Diff(ctx, tree, st.tree, &all); err != nil {
		return nil, 0, r.internalf(err, "changes")
	}
	all = slices.DeleteFunc(all, func(c trees.Change) bool {
		return !under(c.Path, string(path)) || !c.Old.IsFile() && !c.New.IsFile()
	})
	slices.SortFunc(all, func(a, b trees.Change) int { return packfile.CompareStrings(a.Path, b.Path) })
	total = len(all)
	// A size costs a lookup, so look up only the sizes of the listed files.
	for _, c := range all[:min(total, max(0, limit))] {
		f := space.FileChange{Path: space.Path(c.Path), Status: space.Added}
		if c.Old.IsFile() {
			f.Status, f.Old, f.OldMode = space.Deleted, packfile.BlobID(c.Old.Hash), c.Old.FileMode()
		}
		if c.New.IsFile() {
			if f.Old != "" {
				f.Status = space.Modified
			}
			f.New, f.NewMode = packfile.BlobID(c.New.Hash), c.New.FileMode()
			if f.Size, err = r.db.SizeOf(c.New.Hash); err != nil {
				return nil, 0, r.internalf(err, "changes")
			}
		}
		files = append(files, f)
	}
	return files, total, nil
}

// FilePatch returns the unified diff of a file that Show or Diff lists. For binary files
// and files above 2 MiB, it contains only the names.
func (s *Store) FilePatch(ctx context.Context, id space.SpaceID, f space.FileChange) (string, error) {
	r, release, err := s.acquire(ctx, id)
	if err != nil {
		return "", err
	}
	defer release()
	p, err := r.filePatch(f)
	if err != nil {
		return "", r.internalf(err, "patch")
	}
	var out bytes.Buffer
	if err := fdiff.NewUnifiedEncoder(&out, fdiff.DefaultContextLines).Encode(onePatch{p}); err != nil {
		return "", r.internalf(err, "patch")
	}
	return out.String(), nil
}
