package gitstore

import (
	"context"
	"fmt"
	"strings"
	"time"

	"satchel/gitstore/commits"
	"satchel/gitstore/merge"
	"satchel/gitstore/packfile"
	"satchel/gitstore/trees"
	"satchel/internal/bytesize"
	"satchel/internal/fault"
	"satchel/internal/space"
)

// How says how a remote's commit relates to head, and so what Integrate did.
type How string

// The relation of a remote's commit to head, and the result.
const (
	UpToDate    How = "up to date"   // head is the remote's commit
	Ahead       How = "ahead"        // head descends from the remote's commit
	FastForward How = "fast forward" // the remote's commit descends from head, and head moved to it
	Adopted     How = "adopted"      // the space was as created; head now has the remote's history
	Merged      How = "merged"       // the histories diverged; head is a merge of both
)

// Integration is the result of Integrate.
type Integration struct {
	How How
	// Head is the space's head after the call.
	Head space.CommitID
	// Commit is head's commit. Changed is false if head did not move. Otherwise, Files
	// lists the differences from the previous head, Conflicts the conflicts of a merge,
	// and Rejected the remote's paths that break a rule. The repository keeps these
	// paths unchanged; checkouts leave them out.
	Commit space.Commit
	// Replaced lists files that nobody had changed since the space was created. A merge
	// of histories without a common commit replaced them with the remote's.
	Replaced []space.Path
}

// mergeTries is how often Integrate computes a merge while other callers can commit. After
// that, the other callers wait for the merge. If they would wait too long, Integrate lets
// them commit, and gives up after manyTries computations.
const (
	mergeTries = 3
	manyTries  = 10
)

// A merge that takes longer than heldTime, or that reports more than heldPaths paths,
// is not computed while commits wait.
const (
	heldTime  = time.Second
	heldPaths = 2000
)

var errBusy = fault.New(fault.Unavailable, "The space changes so often that its remote's commits could not be merged. Try again.")

// Integrate brings a fetched commit into head. It never loses a commit of the space:
//
//	head has the commit              nothing to do
//	the commit has head              head moves to it (fast-forward)
//	the space has only its first     the remote's history is adopted, as by Import
//	commit
//	otherwise                        both are merged (see package merge), even if they
//	                                 have no commit in common
//
// A commit that the space does not have is a fault.NotFound. A result that exceeds the
// space's limits is a fault.TooLarge. If commits come too fast for a large merge, the
// error is a fault.Unavailable; try again then. After an error the space is unchanged.
func (s *Store) Integrate(ctx context.Context, id space.SpaceID, tip space.CommitID, m space.Meta) (Integration, error) {
	r, theirs, release, err := s.at(ctx, id, tip)
	if err != nil {
		return Integration{}, err
	}
	defer release()
	r.unreached.RLock() // there may be no ref that reaches the tip
	defer r.unreached.RUnlock()
	var long bool // the last try took too long to repeat it while commits wait
	for try := 1; ; try++ {
		head, begin := r.head.Load(), time.Now()
		wait := try > mergeTries && !long
		if long && try > manyTries {
			return Integration{}, errBusy
		}
		if wait {
			r.commitMu.Lock()
			head = r.head.Load()
		}
		var move func() (Integration, error)
		var paths int
		how, base, err := r.relation(ctx, head, theirs)
		if err == nil {
			move, paths, err = r.integration(ctx, how, head, theirs, base, m)
		}
		long = paths > heldPaths || time.Since(begin) > heldTime
		s.o.probe("integration computed")
		if !wait {
			r.commitMu.Lock()
		}
		if err == nil && r.head.Load() != head {
			r.commitMu.Unlock()
			continue // the plan is outdated: head has moved
		}
		var res Integration
		if err == nil {
			res, err = move()
		}
		if err == nil && res.Commit.Changed {
			r.committed(res.Commit)
		}
		r.commitMu.Unlock()
		if err != nil {
			if fault.CodeOf(err) == fault.Internal {
				err = r.internalf(err, "integrate")
			}
			return Integration{}, err
		}
		return res, nil
	}
}

// relation returns how a remote's commit relates to head, and one of the newest commits
// that both have, if any.
func (r *repo) relation(ctx context.Context, head, theirs *headState) (how How, base packfile.Hash, err error) {
	if head.id == theirs.id {
		return UpToDate, head.id, nil
	}
	p, err := r.paint(ctx, head.id, theirs.id)
	if err != nil {
		return "", base, err
	}
	base = p.base()
	switch {
	case p.colour[theirs.id] == paintBoth:
		return Ahead, base, nil
	case p.colour[head.id] == paintBoth:
		return FastForward, base, nil
	case !base.IsZero():
		ok, err := r.mergesFrom(ctx, p)
		if !ok {
			base = packfile.Hash{} // merge as without a common commit, which loses nothing
		}
		return Merged, base, err
	}
	first, err := r.pristine(head)
	if first {
		return Adopted, base, err
	}
	return Merged, base, err
}

// integration prepares an integration, and needs no lock. The function move carries the
// integration out. The caller holds commitMu when it calls move. paths is the number of
// changed files and conflicts.
func (r *repo) integration(ctx context.Context, how How, head, theirs *headState, base packfile.Hash, m space.Meta) (move func() (Integration, error), paths int, err error) {
	switch how {
	case UpToDate, Ahead:
		c, err := commits.Get(r.db, head.id)
		return func() (Integration, error) {
			return Integration{How: how, Head: packfile.CommitID(head.id), Commit: r.proven(c, head.id)}, nil
		}, 0, err
	case FastForward:
		w, err := r.weigh(ctx, head.tree, theirs.tree)
		return func() (Integration, error) { return r.moveTo(ctx, how, head, theirs, w, m) }, len(w.files), err
	case Adopted:
		a, err := r.weighAdoption(ctx, r, head, theirs)
		return func() (Integration, error) {
			c, err := r.adoptHere(ctx, head, theirs, a, m)
			return Integration{How: how, Head: c.ID, Commit: c}, err
		}, len(a.files), err
	}
	x, err := r.merge(ctx, head, theirs, base)
	if err != nil {
		return nil, 0, err
	}
	return func() (Integration, error) { return r.recordMerge(ctx, head, theirs, x, m) }, len(x.files) + len(x.Conflicts), nil
}

// merged is a merge that is computed, but not committed.
type merged struct {
	merge.Result
	objs []trees.Object // objects of the tree that the space lacks
	weight
}

// merge computes the merge of two commits. It takes no lock and changes nothing.
func (r *repo) merge(ctx context.Context, ours, theirs *headState, base packfile.Hash) (*merged, error) {
	q, err := r.borrower("a merge")
	if err != nil {
		return nil, err
	}
	defer q.Close()
	if err := q.open(r.db); err != nil {
		return nil, err
	}
	q.r.db.ByName = packfile.NameIndex{}
	o := merge.Options{
		Trees: q.r.trees(), Git: q.git, MaxConflicts: r.s.o.Limits.Conflicts,
		Ours: merge.Commit{ID: ours.id, Tree: ours.tree}, Theirs: merge.Commit{ID: theirs.id, Tree: theirs.tree},
		EncodeCommit: func(tree packfile.Hash, parents []packfile.Hash) []byte {
			return commits.Encode(tree, parents, space.Meta{}, "Files that both sides edited", r.s.o.committer())
		},
		Untouched: func(ctx context.Context) (func(string, packfile.TreeEntry) (bool, error), error) {
			s, err := q.r.startersOf(ctx, ours)
			return func(path string, e packfile.TreeEntry) (bool, error) { return s.untouched(q.r, path, e) }, err
		},
	}
	if !base.IsZero() {
		st, err := r.state(base)
		if err != nil {
			return nil, err
		}
		o.Base = merge.Commit{ID: base, Tree: st.tree}
	}
	m := &merged{}
	if m.Result, err = merge.Commits(ctx, o); err != nil {
		return nil, err
	}
	if m.objs, err = q.r.trees().Missing(ctx, r.db, m.Tree); err != nil {
		return nil, err
	}
	m.weight, err = q.r.weigh(ctx, ours.tree, m.Tree)
	return m, err
}

// recordMerge commits a merge. The caller holds commitMu.
func (r *repo) recordMerge(ctx context.Context, head, theirs *headState, x *merged, m space.Meta) (Integration, error) {
	next, err := r.allowed(ctx, head, x.weight)
	if err != nil {
		return Integration{}, err
	}
	m.Message = mergeMessage(m.Message, theirs.id, x.Conflicts, x.Replaced)
	c, err := r.record(ctx, head, []packfile.Hash{head.id, theirs.id}, x.Tree, x.objs, m, "")
	if err != nil {
		return Integration{}, err
	}
	r.totals = &next
	c.Files, c.Rejected, c.Conflicts, c.Changed = x.files, x.notes, x.Conflicts, true
	c.Warnings = r.twins(x.files)
	return Integration{How: Merged, Head: c.ID, Commit: c, Replaced: x.Replaced}, nil
}

// maxListed is the maximum number of conflicts in a merge's message, and also the maximum
// number of replaced files.
const maxListed = 200

// mergeMessage adds the conflicts and replaced files of a merge to the caller's
// message.
func mergeMessage(msg string, theirs packfile.Hash, conflicts []space.Conflict, replaced []space.Path) string {
	var b strings.Builder
	if b.WriteString(strings.TrimSpace(msg)); b.Len() == 0 {
		fmt.Fprintf(&b, "Merge the remote's %s", packfile.CommitID(theirs).Short())
	}
	if len(conflicts) > 0 {
		b.WriteString("\n\nChanged here and at the remote; nothing was dropped:\n\n")
	}
	for i, c := range conflicts {
		if i == maxListed {
			fmt.Fprintf(&b, "- and %d more\n", len(conflicts)-i)
			break
		}
		b.WriteString("- " + commits.OneLine(string(c.Path), space.MaxPathBytes) + ": ")
		switch {
		case c.Remote:
			b.WriteString("what the user said here; the remote's version is " + commits.OneLine(string(c.Kept), space.MaxPathBytes) + "\n")
		case c.Kept == "":
			b.WriteString("kept as the remote has it\n")
		case c.Kept == c.Path:
			b.WriteString("kept as it was here\n")
		default:
			b.WriteString("what was here is " + commits.OneLine(string(c.Kept), space.MaxPathBytes) + "\n")
		}
	}
	if len(replaced) > 0 {
		if len(conflicts) == 0 {
			b.WriteByte('\n')
		}
		b.WriteString("\nNot changed since the space was created, and replaced by the remote's version:\n\n")
	}
	for i, p := range replaced {
		if i == maxListed {
			fmt.Fprintf(&b, "- and %d more\n", len(replaced)-i)
			break
		}
		b.WriteString("- " + commits.OneLine(string(p), space.MaxPathBytes) + "\n")
	}
	return b.String()
}

// moveTo makes a remote's commit head. The caller holds commitMu.
func (r *repo) moveTo(ctx context.Context, how How, head, theirs *headState, w weight, m space.Meta) (Integration, error) {
	next, err := r.allowed(ctx, head, w)
	if err != nil {
		return Integration{}, err
	}
	raw, err := commits.Get(r.db, theirs.id)
	if err != nil {
		return Integration{}, err
	}
	if err := ctx.Err(); err != nil {
		return Integration{}, err // the last point at which nothing has changed
	}
	if err := r.advance(head.id, theirs.id, m.Author, stampNow(), "sync: "+string(how)); err != nil {
		return Integration{}, err
	}
	r.totals = &next
	r.head.Store(theirs)
	c := r.proven(raw, theirs.id)
	c.Files, c.Rejected, c.Changed = w.files, w.notes, true
	c.Warnings = r.twins(w.files)
	return Integration{How: how, Head: c.ID, Commit: c}, nil
}

func stampNow() string {
	now := time.Now()
	return fmt.Sprintf("%d %s", now.Unix(), now.Format("-0700"))
}

// weight is the effect of a foreign tree on head.
type weight struct {
	files []space.FileChange // differences from head
	notes []space.Rejection  // paths that break a rule, at most maxImportNotes
	noted int                // number of all paths that break a rule
	delta totals
}

// weigh compares a foreign tree with head's. It needs no lock.
func (r *repo) weigh(ctx context.Context, head, tree packfile.Hash) (w weight, err error) {
	if w.files, err = r.diff(ctx, head, tree); err != nil {
		return w, err
	}
	for _, f := range w.files {
		if f.Old != "" {
			n, err := r.sizeOf(f.Old)
			if err != nil {
				return w, err
			}
			w.delta.files, w.delta.bytes = w.delta.files-1, w.delta.bytes-n
		}
		if f.New == "" {
			continue
		}
		w.delta.files, w.delta.bytes = w.delta.files+1, w.delta.bytes+f.Size
		h, err := packfile.HashFrom(string(f.New))
		if err != nil {
			return w, err
		}
		reason, err := r.reasonOf(string(f.Path), packfile.TreeEntry{Mode: packfile.TreeMode(f.NewMode), Hash: h}, f.Size, r.s.o.Limits.File)
		if err != nil {
			return w, err
		}
		if reason == nil {
			continue
		}
		if w.noted++; len(w.notes) < maxImportNotes {
			w.notes = append(w.notes, rejection(string(f.Path), reason))
		}
	}
	return w, nil
}

// allowed returns the totals of the next head, or an error if they exceed a limit. The
// caller holds commitMu.
func (r *repo) allowed(ctx context.Context, head *headState, w weight) (totals, error) {
	if err := r.usable(); err != nil {
		return totals{}, err
	}
	if r.totals == nil {
		t, err := r.countTotals(ctx, head.tree)
		if err != nil {
			return totals{}, err
		}
		r.totals = &t
	}
	t, lim := totals{r.totals.files + w.delta.files, r.totals.bytes + w.delta.bytes}, r.s.o.Limits
	if t.files > lim.Files && w.delta.files > 0 || t.bytes > lim.Space && w.delta.bytes > 0 {
		return totals{}, overLimits(t, lim)
	}
	return t, nil
}

func overLimits(t totals, lim Limits) error {
	return fault.New(fault.TooLarge, "With the repository's files, the space would have %d files of %s, and %d files of %s are allowed. Make the repository smaller, or ask the server's operator for more.",
		t.files, bytesize.Text(t.bytes), lim.Files, bytesize.Text(lim.Space))
}

func (r *repo) sizeOf(b space.BlobID) (int64, error) {
	h, err := packfile.HashFrom(string(b))
	if err != nil {
		return 0, err
	}
	return r.db.Size(h)
}

// ResetToRemote makes a remote's commit the head of a space at a person's explicit
// request, even if head has commits that the remote lacks. Use it for a remote whose
// history was rewritten on purpose. The old head first gets a ref of its own, so that it
// stays in the repository and can be restored.
func (s *Store) ResetToRemote(ctx context.Context, id space.SpaceID, tip space.CommitID, m space.Meta) (space.Commit, error) {
	r, theirs, release, err := s.at(ctx, id, tip)
	if err != nil {
		return space.Commit{}, err
	}
	defer release()
	r.unreached.RLock()
	defer r.unreached.RUnlock()
	r.commitMu.Lock()
	defer r.commitMu.Unlock()
	head := r.head.Load()
	if head.id == theirs.id {
		c, err := commits.Get(r.db, head.id)
		return r.proven(c, head.id), err
	}
	w, err := r.weigh(ctx, head.tree, theirs.tree)
	if err == nil {
		err = r.keep(head.id)
	}
	var res Integration
	if err == nil {
		res, err = r.moveTo(ctx, "follow", head, theirs, w, m)
	}
	if err != nil {
		if fault.CodeOf(err) == fault.Internal {
			err = r.internalf(err, "follow")
		}
		return space.Commit{}, err
	}
	r.committed(res.Commit)
	return res.Commit, nil
}

// MergeText merges the changes from base to ours with those from base to theirs, line
// by line. See [merge.Texts.Merge].
func (s *Store) MergeText(ctx context.Context, base, ours, theirs []byte) ([]byte, error) {
	out, _, err := s.texts.Merge(ctx, base, ours, theirs)
	return out, explainDisk(err)
}
