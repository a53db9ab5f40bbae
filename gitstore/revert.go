package gitstore

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"iter"
	"maps"
	"slices"
	"strings"

	"github.com/go-git/go-git/v5/plumbing"

	"satchel/gitstore/commits"
	"satchel/gitstore/packfile"
	"satchel/gitstore/trees"
	"satchel/internal/fault"
	"satchel/internal/space"
)

// Restore brings a path ("" for everything) back to its state at a commit, in a new commit on
// head. It deletes files that were added after that commit, and removes nothing from the history.
// Changed is false if head already has this state. A path that neither the commit nor
// head has is a fault.NotFound. Rejected lists paths and links that break today's rules,
// as paths and links of imported histories may.
func (s *Store) Restore(ctx context.Context, id space.SpaceID, path space.Path, at space.CommitID, m space.Meta) (space.Commit, error) {
	r, then, release, err := s.at(ctx, id, at)
	if err != nil {
		return space.Commit{}, err
	}
	defer release()
	r.commitMu.Lock()
	defer r.commitMu.Unlock()
	head := r.head.Load()
	if path != "" {
		old, err := r.trees().Lookup(then.tree, string(path))
		if err != nil {
			return space.Commit{}, r.internalf(err, "restore")
		}
		cur, err := r.trees().Lookup(head.tree, string(path))
		if err != nil {
			return space.Commit{}, r.internalf(err, "restore")
		}
		if !(old.Found && old.Blocked == "") && !(cur.Found && cur.Blocked == "") {
			return space.Commit{}, notFoundPath(path, packfile.CommitID(then.id))
		}
	}
	files, err := r.diff(ctx, head.tree, then.tree)
	if err != nil {
		return space.Commit{}, err
	}
	var reqs []request
	var refused []space.Rejection
	for _, f := range files {
		// A file in the way of a restored path is deleted too.
		if !under(string(f.Path), string(path)) && !(f.Status == space.Deleted && path != "" && under(string(path), string(f.Path))) {
			continue
		}
		q, err := r.restoring(f)
		if err != nil {
			if fault.CodeOf(err) == fault.Internal {
				return space.Commit{}, r.internalf(err, "restore")
			}
			refused = append(refused, rejection(string(f.Path), err))
			continue
		}
		reqs = append(reqs, q)
	}
	p, err := r.decide(ctx, head, reqs, space.RefuseStale)
	if err != nil {
		return space.Commit{}, err
	}
	p.refused = append(p.refused, refused...)
	if m.Message == "" {
		what := string(path)
		if what == "" {
			what = "all files"
		}
		raw, err := commits.Get(r.db, then.id)
		if err != nil {
			return space.Commit{}, r.internalf(err, "restore")
		}
		m.Message = fmt.Sprintf("Restore %s as of %s\n\nThe version is that of commit %s.", what, raw.Time.UTC().Format("2006-01-02 15:04 UTC"), packfile.CommitID(then.id))
	}
	c, err := r.apply(ctx, p, m)
	if err == nil && c.Changed {
		r.committed(c)
	}
	return c, err
}

// restoring turns a difference from head into a request. The repository has the
// content.
func (r *repo) restoring(f space.FileChange) (request, error) {
	p, err := space.ParsePath(string(f.Path))
	if err != nil {
		return request{}, err
	}
	if err := r.checkWorkflow(p); err != nil {
		return request{}, err
	}
	q := request{path: p, raw: string(f.Path), base: f.Old, baseMode: f.OldMode, mode: f.NewMode, size: f.Size}
	if f.Status == space.Deleted {
		q.delete = true
		return q, nil
	}
	if q.hash, err = packfile.HashFrom(string(f.New)); err != nil {
		return q, err
	}
	if f.NewMode == space.Symlink {
		return q, r.checkLink(p, q.hash)
	}
	return q, nil
}

// maxReverted limits the commits that one revert may name.
const maxReverted = 1000

// revertTries is the maximum number of times that a revert is computed. It is computed again
// if its paths change meanwhile.
const revertTries = 4

// Revert undoes what commits of head's history changed against their first parents, in
// one new commit on head. It removes nothing from the history. It merges each file
// three ways, newest commit first: the commit's version is the base, and head's and the
// parent's versions are the sides. A file with a conflict by lines stays as head has
// it, and Conflicts names it with an empty Kept. Rejected names paths that break today's
// rules. Changed is false if there is nothing to undo, or nothing that can be undone.
//
// A commit that is not in head's history is a fault.NotFound. A revert that takes
// longer than Options.RevertTime, or exceeds the limits of one change, is a
// fault.TooLarge. Commits wait only while the result is committed. Revert computes the
// result before that, one revert of a space at a time, and computes it again if a path
// has changed meanwhile.
func (s *Store) Revert(ctx context.Context, id space.SpaceID, commits []space.CommitID, m space.Meta) (space.Commit, error) {
	if len(commits) == 0 || len(commits) > maxReverted {
		return space.Commit{}, fault.New(fault.Invalid, "Choose between 1 and %d commits to undo.", maxReverted)
	}
	r, release, err := s.acquire(ctx, id)
	if err != nil {
		return space.Commit{}, err
	}
	defer release()
	ctx, stop := context.WithTimeoutCause(ctx, s.o.RevertTime, errRevertTime)
	defer stop()
	c, err := r.revert(ctx, commits, m)
	if err != nil && errors.Is(context.Cause(ctx), errRevertTime) {
		return space.Commit{}, fault.Wrap(err, fault.TooLarge, "Nothing was undone: computing the result takes longer than %s. Undo fewer changes at once.", s.o.RevertTime)
	}
	return c, err
}

var errRevertTime = errors.New("a revert took too long")

func (r *repo) revert(ctx context.Context, commits []space.CommitID, m space.Meta) (space.Commit, error) {
	select {
	case r.reverts <- struct{}{}:
		defer func() { <-r.reverts }()
	case <-ctx.Done():
		return space.Commit{}, context.Cause(ctx)
	}
	for range revertTries {
		purges := r.purges.Load()
		v := &reverting{r: r, head: r.head.Load(), now: map[string]undone{}, kept: map[string]bool{}}
		reqs, refused, err := v.work(ctx, commits)
		if err != nil && r.purges.Load() == purges {
			return space.Commit{}, err
		}
		r.s.o.probe("revert: decided")
		if err != nil {
			continue // a purge may have removed what the revert read
		}
		if c, ok, err := v.commit(ctx, purges, reqs, refused, m); ok || err != nil {
			return c, err
		}
	}
	return space.Commit{}, fault.New(fault.Conflict, "Nothing was undone: the files were changed again and again meanwhile. Try again.")
}

// work computes the requests that undo the commits, and the paths that are refused.
func (v *reverting) work(ctx context.Context, commits []space.CommitID) (reqs []request, refused []space.Rejection, err error) {
	if v.commits, err = v.order(ctx, commits); err != nil {
		return nil, nil, err
	}
	for _, c := range v.commits {
		if err := v.undo(ctx, c); err != nil {
			return nil, nil, v.r.internalf(err, "revert")
		}
	}
	return v.requests(ctx)
}

// commit commits the result. ok is false if a path has changed since the result was
// computed, or if a purge has run.
func (v *reverting) commit(ctx context.Context, purges int64, reqs []request, refused []space.Rejection, m space.Meta) (_ space.Commit, ok bool, _ error) {
	r := v.r
	r.commitMu.Lock()
	defer r.commitMu.Unlock()
	head := r.head.Load()
	if r.purges.Load() != purges {
		return space.Commit{}, false, nil
	}
	if head.tree != v.head.tree {
		if same, err := v.unmoved(ctx, head); err != nil || !same {
			return space.Commit{}, false, err
		}
	}
	p, err := r.decide(ctx, head, reqs, space.RefuseStale)
	if err != nil {
		return space.Commit{}, false, err
	}
	p.refused = append(p.refused, refused...)
	for path := range v.kept {
		p.conflicts = append(p.conflicts, space.Conflict{Path: space.Path(path)})
	}
	if m.Message == "" {
		m.Message = revertMessage(v.commits, len(v.kept)+len(p.refused) == 0)
	}
	c, err := r.apply(ctx, p, m)
	if err == nil && c.Changed {
		r.committed(c)
	}
	return c, err == nil, err
}

// unmoved reports whether head has the same entries as v.head at every path that the
// revert looked at.
func (v *reverting) unmoved(ctx context.Context, head *headState) (bool, error) {
	for _, paths := range []iter.Seq[string]{maps.Keys(v.now), maps.Keys(v.kept)} {
		for path := range paths {
			if err := ctx.Err(); err != nil {
				return false, err
			}
			was, err := v.r.trees().Lookup(v.head.tree, path)
			if err != nil {
				return false, v.r.internalf(err, "revert")
			}
			is, err := v.r.trees().Lookup(head.tree, path)
			if err != nil {
				return false, v.r.internalf(err, "revert")
			}
			if was.Found != is.Found || was.Blocked != is.Blocked || was.Mode != is.Mode || was.Hash != is.Hash {
				return false, nil
			}
		}
	}
	return true, nil
}

// revertMessage returns a message that says what a revert undoes, and whether it undoes all of
// it. Package internal/service reads the message to show what is undone.
func revertMessage(order []rawAt, whole bool) string {
	subject := func(c rawAt) string {
		read, _, _ := c.Read(c.id)
		return commits.OneLine(firstLine(read.Message), 80)
	}
	what := ""
	if !whole {
		what = " a part of"
	}
	if len(order) == 1 {
		return fmt.Sprintf("%s\n\nThis undoes%s the commit %s.", undoing(subject(order[0])), what, packfile.CommitID(order[0].id).Short())
	}
	var b strings.Builder
	fmt.Fprintf(&b, "Undo %d changes\n\nThis undoes%s the commits:\n", len(order), what)
	for _, c := range order[:min(len(order), maxRevertedTold)] {
		fmt.Fprintf(&b, "\n%s %s", packfile.CommitID(c.id).Short(), subject(c))
	}
	if n := len(order) - maxRevertedTold; n > 0 {
		fmt.Fprintf(&b, "\nand %d more", n)
	}
	return b.String()
}

// maxRevertedTold limits the commits that a revert's message names.
const maxRevertedTold = maxReverted

// undoing returns the subject of a commit that undoes a commit with the given subject.
// Undoing an undo is a redo, so that subjects do not grow with each undo.
func undoing(subject string) string {
	for _, w := range [][2]string{{"Undo ", "Redo "}, {"Redo ", "Undo "}} {
		if what, ok := strings.CutPrefix(subject, w[0]); ok && (strings.HasPrefix(what, "“") || strings.HasSuffix(what, " changes")) {
			return w[1] + what
		}
	}
	return "Undo “" + subject + "”"
}

// rawAt is a commit with its id.
type rawAt struct {
	commits.Raw
	id packfile.Hash
}

// undone is the new state of a path. data is merged content that the repository does
// not have.
type undone struct {
	packfile.TreeEntry // a zero mode means that there is no file
	data               []byte
	merged             bool
}

// reverting is a revert in progress.
type reverting struct {
	r       *repo
	head    *headState
	commits []rawAt
	now     map[string]undone // by path: the new states of the paths that the commits touched
	kept    map[string]bool   // paths that conflict and stay
	held    int64             // bytes of merged content
}

// set records the new state of a path. If the revert exceeds the limits of one change,
// the error is a fault.TooLarge.
func (v *reverting) set(path string, u undone) error {
	v.held += int64(len(u.data)) - int64(len(v.now[path].data))
	v.now[path] = u
	if lim := v.r.s.o.Limits; len(v.now) > lim.Entries || v.held > lim.Change {
		return fault.New(fault.TooLarge, "Nothing was undone: the result is too large for one change. Undo fewer changes at once.")
	}
	return nil
}

// order returns the commits, newest first. A commit that is not in head's history is a
// fault.NotFound.
func (v *reverting) order(ctx context.Context, ids []space.CommitID) ([]rawAt, error) {
	left := map[packfile.Hash]bool{}
	for _, id := range ids {
		st, err := v.r.resolve(string(id))
		if err != nil {
			return nil, err
		}
		left[st.id] = true
	}
	var out []rawAt
	err := v.r.history(ctx, v.head.id, "", func(h packfile.Hash, c commits.Raw, _ bool) (bool, error) {
		if left[h] {
			out = append(out, rawAt{c, h})
			delete(left, h)
		}
		return len(left) > 0, nil
	})
	if err != nil {
		return nil, err
	}
	for h := range left {
		return nil, fault.New(fault.NotFound, "The commit %s is not in this history.", packfile.CommitID(h).Short())
	}
	return out, nil
}

// at returns the state that the revert has given to a path so far, or else head's state.
func (v *reverting) at(path string) (undone, error) {
	if u, ok := v.now[path]; ok {
		return u, nil
	}
	at, err := v.r.trees().Lookup(v.head.tree, path)
	if err != nil {
		return undone{}, err
	}
	var u undone
	if at.Found && at.Blocked == "" && !at.HasDir() {
		u.TreeEntry = at.TreeEntry
	}
	return u, nil
}

// undo undoes the changes of one commit.
func (v *reverting) undo(ctx context.Context, c rawAt) error {
	var parent packfile.Hash
	if len(c.Parents) > 0 {
		st, err := v.r.state(c.Parents[0])
		if err != nil {
			return err
		}
		parent = st.tree
	}
	var changes []trees.Change
	if err := v.r.trees().Diff(ctx, parent, c.Tree, &changes); err != nil {
		return err
	}
	for _, d := range changes {
		if err := ctx.Err(); err != nil {
			return err
		}
		if v.kept[d.Path] {
			continue
		}
		u, err := v.at(d.Path)
		if err != nil {
			return err
		}
		if sameEntry(u.TreeEntry, d.Old) {
			continue // the change is undone already
		}
		merged, clean, err := v.merge(ctx, d.New, u, d.Old)
		if err != nil {
			return err
		}
		if !clean {
			v.kept[d.Path] = true
			v.held -= int64(len(v.now[d.Path].data))
			delete(v.now, d.Path)
			continue
		}
		if err := v.set(d.Path, merged); err != nil {
			return err
		}
	}
	return nil
}

func sameEntry(a, b packfile.TreeEntry) bool {
	return a.Mode == b.Mode && (a.Mode == 0 || a.Hash == b.Hash)
}

// maxRevertedLines is the largest file, in bytes, that is merged by lines.
const maxRevertedLines = 1 << 20

// merge applies to ours the change that leads from base to theirs. clean is false if ours
// and theirs changed the same lines, or if the contents cannot be merged by lines.
func (v *reverting) merge(ctx context.Context, base packfile.TreeEntry, ours undone, theirs packfile.TreeEntry) (_ undone, clean bool, err error) {
	switch {
	case sameEntry(ours.TreeEntry, base):
		return undone{TreeEntry: theirs}, true, nil
	case sameEntry(ours.TreeEntry, theirs), sameEntry(base, theirs):
		return ours, true, nil
	}
	var texts [3][]byte
	for i, u := range []undone{{TreeEntry: base}, ours, {TreeEntry: theirs}} {
		text, ok, err := v.text(u)
		if err != nil || !ok {
			return ours, false, err
		}
		texts[i] = text
	}
	text, conflicts, err := v.r.s.texts.Merge(ctx, texts[0], texts[1], texts[2])
	switch {
	case ctx.Err() != nil:
		return ours, false, ctx.Err()
	case err != nil && !errors.Is(err, context.DeadlineExceeded) && fault.CodeOf(err) != fault.TooLarge:
		return ours, false, err
	case err != nil || conflicts:
		return ours, false, nil // git cannot merge the texts, or not in time
	}
	mode := ours.Mode
	if ours.Mode == base.Mode {
		mode = theirs.Mode
	}
	return undone{TreeEntry: packfile.TreeEntry{Name: ours.Name, Mode: mode, Hash: plumbing.ComputeHash(plumbing.BlobObject, text)}, data: text, merged: true}, true, nil
}

// text returns the content of a file that can be merged by lines; ok is false for any
// other file.
func (v *reverting) text(u undone) (text []byte, ok bool, err error) {
	if u.merged {
		return u.data, true, nil
	}
	if !u.IsPlain() {
		return nil, false, nil
	}
	if n, err := v.r.db.Size(u.Hash); err != nil || n > maxRevertedLines {
		return nil, false, err
	}
	text, err = v.r.db.Blob(u.Hash)
	return text, err == nil && bytes.IndexByte(text, 0) < 0, err
}

// requests turns the new states of the paths into requests.
func (v *reverting) requests(ctx context.Context) (reqs []request, refused []space.Rejection, err error) {
	paths := make([]string, 0, len(v.now))
	for p := range v.now {
		paths = append(paths, p)
	}
	slices.Sort(paths)
	for _, path := range paths {
		if err := ctx.Err(); err != nil {
			return nil, nil, err
		}
		q, needed, err := v.request(ctx, path)
		switch {
		case isFault(err) && fault.CodeOf(err) != fault.Internal:
			refused = append(refused, rejection(path, err))
		case err != nil:
			return nil, nil, v.r.internalf(err, "revert")
		case needed:
			reqs = append(reqs, q)
		}
	}
	return reqs, refused, nil
}

// request returns the request that gives a path its new state. needed is false if a file
// to delete is already gone, or if files that the revert does not delete are in the way.
func (v *reverting) request(ctx context.Context, path string) (q request, needed bool, err error) {
	at, err := v.r.trees().Lookup(v.head.tree, path)
	if err != nil {
		return q, false, err
	}
	u := v.now[path]
	f := space.FileChange{Path: space.Path(path), Status: space.Deleted}
	if at.HasFile() {
		f.Old, f.OldMode = packfile.BlobID(at.Hash), at.FileMode()
	}
	if u.Mode == 0 {
		if !at.HasFile() {
			return q, false, nil
		}
		q, err = v.r.restoring(f)
		return q, true, err
	}
	if blocked, err := v.inTheWay(ctx, path, at); err != nil || blocked {
		v.kept[path] = true
		return q, false, err
	}
	if u.merged {
		q, err = v.r.check(space.Change{Path: path, Mode: u.FileMode(), Content: u.data, Base: f.Old, BaseMode: f.OldMode})
		if err == nil {
			q.warning, err = v.r.screen(ctx, q, q.data)
		}
		return q, err == nil, err
	}
	if !u.IsFile() {
		return q, false, errSubmodule(path)
	}
	f.Status, f.New, f.NewMode = space.Added, packfile.BlobID(u.Hash), u.FileMode()
	if f.Size, err = v.r.db.Size(u.Hash); err != nil {
		return q, false, err
	}
	q, err = v.r.restoring(f)
	return q, true, err
}

// inTheWay reports whether head has a file above a path, or files below it, that the
// revert does not delete.
func (v *reverting) inTheWay(ctx context.Context, path string, at trees.Place) (bool, error) {
	if at.Blocked != "" {
		u, ok := v.now[at.Blocked]
		return !ok || u.Mode != 0, nil
	}
	if !at.HasDir() {
		return false, nil
	}
	stays := false
	err := v.r.trees().Walk(ctx, at.Hash, path+"/", func(p string, _ packfile.TreeEntry) error {
		u, ok := v.now[p]
		stays = stays || !ok || u.Mode != 0
		return nil
	})
	return stays, err
}
