package gitstore

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/go-git/go-git/v5/plumbing"
	"golang.org/x/text/unicode/norm"

	"satchel/gitstore/commits"
	"satchel/gitstore/packfile"
	"satchel/gitstore/trees"
	"satchel/internal/bytesize"
	"satchel/internal/fault"
	"satchel/internal/space"
)

// Commit implements space.Committer. The outcome of each entry is:
//
//	head has the base                written, or deleted
//	head has the content already     dropped without a report
//	head has another file there      stale: the whole change fails (RefuseStale), or the
//	                                 entry is kept as a conflict copy (KeepBoth)
//	head has a directory there       stale, unless the change set deletes all its files
//	head has a file above it         stale, unless the change set deletes that file; the
//	                                 copy goes into a directory with a marked name
//	head has deleted it              stale; KeepBoth writes it again and reports it
//	head has a submodule there       refused
//	a delete whose base is stale     the whole change fails, or the delete is dropped
//	                                 and reported
//	two entries for one path         the last one counts
//	a path both file and directory   entries below the path are refused
//	Options.Screen refuses it        refused
//	it takes the space over a limit  the whole change is refused; KeepBoth refuses
//	                                 the largest entries until the rest fits
//
// Commit leaves out a message that Options.Screen refuses, and reports a Rejection of
// space.CommentPath.
func (s *Store) Commit(ctx context.Context, id space.SpaceID, cs space.ChangeSet, m space.Meta) (space.Commit, error) {
	r, release, err := s.acquire(ctx, id)
	if err != nil {
		return space.Commit{}, err
	}
	defer release()
	reqs, refused, err := r.validate(ctx, cs)
	if err != nil {
		return space.Commit{}, err
	}
	warning, silenced := r.screenMessage(ctx, m.Message)
	if silenced != nil && !isFault(silenced) {
		return space.Commit{}, silenced
	}
	if silenced != nil {
		m.Message = ""
	}
	r.commitMu.Lock()
	defer r.commitMu.Unlock()
	c, err := r.commit(ctx, reqs, refused, cs.Policy, m)
	if err != nil {
		return space.Commit{}, err
	}
	if c.Changed && silenced != nil {
		c.Rejected = append(c.Rejected, space.Rejection{Path: space.CommentPath, Why: "The change was saved without its comment. " + fault.PublicOf(silenced), Err: silenced})
	}
	if c.Changed && warning != "" {
		c.Warnings = append(c.Warnings, space.Warning{Path: space.CommentPath, Why: warning})
	}
	if c.Changed {
		r.committed(c)
	}
	return c, nil
}

// commit applies the requests that validate accepted, and reports those that it
// refused. The caller holds commitMu.
func (r *repo) commit(ctx context.Context, reqs []request, refused []space.Rejection, policy space.Policy, m space.Meta) (space.Commit, error) {
	p, err := r.decide(ctx, r.head.Load(), reqs, policy)
	if err != nil {
		return space.Commit{}, err
	}
	p.refused = append(p.refused, refused...)
	c, err := r.apply(ctx, p, m)
	if policy == space.KeepBoth && fault.CodeOf(err) == fault.TooLarge {
		if err := r.refuseExcess(ctx, p); err != nil {
			return space.Commit{}, err
		}
		c, err = r.apply(ctx, p, m)
	}
	return c, err
}

// apply commits a plan.
func (r *repo) apply(ctx context.Context, p *plan, m space.Meta) (space.Commit, error) {
	if err := r.usable(); err != nil {
		return space.Commit{}, err
	}
	if err := r.heal(p); err != nil {
		return space.Commit{}, err
	}
	head := p.head
	edits, files := p.edits()
	if len(edits) == 0 && !head.id.IsZero() {
		return r.unchanged(p)
	}
	next, err := r.checkTotals(ctx, p)
	if err != nil {
		return space.Commit{}, err
	}
	var objs []trees.Object
	tree, err := r.trees().Rewrite(head.tree, edits, &objs)
	if err != nil {
		return space.Commit{}, r.internalf(err, "tree")
	}
	if tree.IsZero() { // the tree of a commit must exist as an object, even if it is empty
		tree = plumbing.ComputeHash(plumbing.TreeObject, nil)
		if !r.db.Has(tree) {
			objs = append(objs, trees.Object{Kind: plumbing.TreeObject, Hash: tree})
		}
	}
	if tree == head.tree && !head.id.IsZero() {
		return r.unchanged(p)
	}
	for _, q := range p.writes {
		if !r.db.Sound(q.hash) {
			objs = append(objs, trees.Object{Kind: plumbing.BlobObject, Hash: q.hash, Data: q.data})
		}
	}
	var parents []packfile.Hash
	if !head.id.IsZero() {
		parents = []packfile.Hash{head.id}
	}
	c, err := r.record(ctx, head, parents, tree, objs, m, commits.Summarize(files))
	if err != nil {
		return space.Commit{}, err
	}
	r.totals = &next
	c.Files, c.Rejected, c.Warnings, c.Conflicts, c.Changed = files, p.refused, p.warnings(), p.conflicts, true
	c.Warnings = append(c.Warnings, r.twins(files)...)
	return c, nil
}

// heal writes damaged objects of head again. They are the same objects, so the history
// does not change.
func (r *repo) heal(p *plan) error {
	if len(p.heal) == 0 {
		return nil
	}
	pk, err := r.s.writePack(r.db.PackDir(), p.heal)
	if err != nil {
		return r.internalf(err, "write damaged objects again")
	}
	r.db.Add(pk)
	r.logger().Info("Damaged files were written again.", "files", len(p.heal))
	p.heal = nil
	r.headMoved() // git inside sandboxes needs the pack
	return nil
}

func (r *repo) unchanged(p *plan) (space.Commit, error) {
	c, err := commits.Get(r.db, p.head.id)
	if err != nil {
		return space.Commit{}, r.internalf(err, "head")
	}
	out := r.proven(c, p.head.id)
	out.Rejected, out.Conflicts = p.refused, p.conflicts
	return out, nil
}

// record writes a commit with its objects and makes it head, durably. head is the
// replaced head; it is zero in a space without a commit.
func (r *repo) record(ctx context.Context, head *headState, parents []packfile.Hash, tree packfile.Hash, objs []trees.Object, m space.Meta, summary string) (space.Commit, error) {
	if m.Time.IsZero() {
		m.Time = time.Now()
	}
	data := commits.Encode(tree, parents, m, summary, r.s.o.committer())
	id := plumbing.ComputeHash(plumbing.CommitObject, data)
	if id == head.id || r.db.Has(id) {
		// The same author made and undid the same change in the same second. Another time
		// gives the commit another id.
		m.Time = m.Time.Add(time.Second)
		return r.record(ctx, head, parents, tree, objs, m, summary)
	}
	objs = append(objs, trees.Object{Kind: plumbing.CommitObject, Hash: id, Data: data})
	if err := ctx.Err(); err != nil {
		return space.Commit{}, err // nothing has changed up to here
	}
	p, err := r.s.writePack(r.db.PackDir(), objs)
	if err != nil {
		return space.Commit{}, r.internalf(err, "write objects")
	}
	r.db.Add(p)
	stamp := fmt.Sprintf("%d %s", m.Time.Unix(), m.Time.Format("-0700"))
	if err := r.advance(head.id, id, m.Author, stamp, committing+firstLine(commits.CleanMessage(m.Message, summary))); err != nil {
		return space.Commit{}, r.internalf(err, "move the branch")
	}
	for _, o := range objs {
		if o.Kind != plumbing.BlobObject { // the caller owns the bytes of blobs
			r.db.Cache.Put(r.db, o.Hash, packfile.Object{Kind: o.Kind, Data: o.Data})
		}
	}
	r.head.Store(&headState{id: id, tree: tree})
	c, err := commits.Parse(data)
	if err != nil {
		return space.Commit{}, r.internalf(err, "own commit")
	}
	return c.Own(id), nil
}

func firstLine(s string) string {
	line, _, _ := strings.Cut(s, "\n")
	return line
}

// writePack writes objects as one durable pack.
func (s *Store) writePack(dir string, objs []trees.Object) (*packfile.Pack, error) {
	w, err := packfile.NewWriter(s.o.disk, dir)
	if err != nil {
		return nil, err
	}
	for _, o := range objs {
		if err := w.AddNamed(o.Hash, o.Kind, o.Data); err != nil {
			w.Abort()
			return nil, err
		}
	}
	return w.Finish()
}

// committed announces a new head. It updates the git view first, so that receivers of the
// event find the commit there.
func (r *repo) committed(c space.Commit) {
	r.headMoved()
	r.s.publish(r.id, c)
}

// checkTotals returns the totals of the next head, or an error if they exceed a limit.
func (r *repo) checkTotals(ctx context.Context, p *plan) (totals, error) {
	t, added, err := r.nextTotals(ctx, p)
	if err == nil {
		err = r.excess(t, added).err(t, r.s.o.Limits)
	}
	return t, err
}

// nextTotals returns the totals of the next head, and how many of its bytes are new.
func (r *repo) nextTotals(ctx context.Context, p *plan) (t totals, added int64, err error) {
	if r.totals == nil {
		t, err := r.countTotals(ctx, p.head.tree)
		if err != nil {
			return totals{}, 0, r.internalf(err, "count files")
		}
		r.totals = &t
	}
	t = *r.totals
	drop := func(h packfile.Hash) error {
		n, err := r.db.SizeOf(h)
		if err != nil {
			return r.internalf(err, "size")
		}
		t.bytes -= n
		t.files--
		return nil
	}
	for path, at := range p.deletes {
		if _, again := p.over[path]; !again {
			if err := drop(at.Hash); err != nil {
				return t, 0, err
			}
		}
	}
	for path, q := range p.writes {
		if at, ok := p.over[path]; ok {
			if err := drop(at.Hash); err != nil {
				return t, 0, err
			}
		}
		t.files++
		t.bytes += q.size
		added += q.size
	}
	return t, added, nil
}

// excess says which limits of a space a change exceeds.
type excess struct{ files, bytes, history bool }

func (r *repo) excess(t totals, added int64) excess {
	lim := r.s.o.Limits
	return excess{
		files:   t.files > lim.Files && t.files > r.totals.files,
		bytes:   t.bytes > lim.Space && t.bytes > r.totals.bytes,
		history: added > 0 && r.db.PackBytes()+added > lim.Repository,
	}
}

func (e excess) err(t totals, lim Limits) error {
	switch {
	case e.files:
		return fault.New(fault.TooLarge, "The space would have %d files, and %d are allowed. Delete some first.", t.files, lim.Files)
	case e.bytes:
		return fault.New(fault.TooLarge, "The space would have %s of files, and %s are allowed. Delete some first.", bytesize.Text(t.bytes), bytesize.Text(lim.Space))
	case e.history:
		return fault.New(fault.TooLarge, "The space's history has reached its limit of %s. Ask the server's operator for more.", bytesize.Text(lim.Repository))
	}
	return nil
}

// refuseExcess refuses the largest writes of a plan until the rest fits into the space.
// So one large file does not keep small ones out.
func (r *repo) refuseExcess(ctx context.Context, p *plan) error {
	t, added, err := r.nextTotals(ctx, p)
	if err != nil {
		return err
	}
	var gone []string
	for _, path := range slices.SortedFunc(maps.Keys(p.writes), func(a, b string) int {
		return cmp.Or(cmp.Compare(p.writes[b].size, p.writes[a].size), packfile.CompareStrings(b, a))
	}) {
		e := r.excess(t, added)
		why := e.err(t, r.s.o.Limits)
		if why == nil {
			break
		}
		q := p.writes[path]
		less, files := q.size, 1
		if at, ok := p.over[path]; ok {
			n, err := r.db.SizeOf(at.Hash)
			if err != nil {
				return r.internalf(err, "size")
			}
			less, files = q.size-n, 0
		}
		if !(e.files && files > 0 || e.bytes && less > 0 || e.history && q.size > 0) {
			continue // refusing it would not help
		}
		t.files, t.bytes, added = t.files-files, t.bytes-less, added-q.size
		p.refused = append(p.refused, rejection(q.raw, why))
		gone = append(gone, path)
	}
	p.drop(gone)
	return nil
}

func (r *repo) countTotals(ctx context.Context, tree packfile.Hash) (t totals, err error) {
	s := newScales(r, true)
	s.past = true
	l, err := s.tree(ctx, tree)
	return l.totals, err
}

// maxTwins is the maximum number of warnings that twins returns.
const maxTwins = 100

// twins returns a warning for each new file that has a neighbour whose name differs only in
// case or in Unicode form. The space keeps both files, but a Mac or a Windows machine checks
// out only one. Directories above the files are not compared.
func (r *repo) twins(files []space.FileChange) (out []space.Warning) {
	added := map[string][]string{} // names of new files by directory
	for _, f := range files {
		if f.Status == space.Added {
			dir, name := path.Split(string(f.Path))
			added[dir] = append(added[dir], name)
		}
	}
	for _, dir := range slices.Sorted(maps.Keys(added)) {
		at, err := r.trees().Lookup(r.head.Load().tree, strings.TrimSuffix(dir, "/"))
		if err != nil || !at.HasDir() {
			continue
		}
		es, err := r.db.Tree(at.Hash)
		if err != nil {
			continue
		}
		twins := map[string][]string{} // up to two names for each folded name
		for _, name := range added[dir] {
			twins[foldName(name)] = nil
		}
		for _, e := range es {
			if names, ok := twins[foldName(e.Name)]; ok && len(names) < 2 {
				twins[foldName(e.Name)] = append(names, e.Name)
			}
		}
		for _, name := range added[dir] {
			names := twins[foldName(name)]
			i := slices.IndexFunc(names, func(other string) bool { return other != name })
			if i < 0 {
				continue
			}
			if len(out) == maxTwins {
				return out
			}
			out = append(out, space.Warning{Path: dir + name, Why: fmt.Sprintf("Beside it is %q. A Mac or a Windows computer cannot tell the two names apart, and keeps only one of the files. Rename one.", names[i])})
		}
	}
	return out
}

// foldName returns the same string for names that some file systems cannot tell apart.
func foldName(name string) string { return norm.NFC.String(strings.ToLower(norm.NFD.String(name))) }
