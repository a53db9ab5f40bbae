package gitstore

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"satchel/gitstore/commits"
	"satchel/gitstore/packfile"
	"satchel/gitstore/trees"
	"satchel/internal/fault"
	"satchel/internal/space"
)

// adoption is a history from elsewhere that was looked through, and what its
// head would make of ours.
type adoption struct {
	weight
	edits []trees.Edit // what is taken from its head
}

// weighAdoption looks through the head of a history, which from can read beside
// our own.
func (r *repo) weighAdoption(ctx context.Context, from *repo, head, theirs *headState) (a adoption, err error) {
	if a.weight, err = from.weigh(ctx, head.tree, theirs.tree); err != nil {
		return a, err
	}
	for _, n := range a.notes {
		switch space.RuleOf(n.Err) {
		case space.RuleGit, space.RuleSegment:
			// Dangerous to whoever checks it out: gone from head. All else stays as
			// its owner has it, and out of checkouts if need be.
			a.edits = append(a.edits, trees.Edit{Path: n.Path})
		}
	}
	return a, nil
}

// adopt makes a quarantined history the space's own, where that has only its
// first commit, with the first commit's files on top that the history lacks.
// The first commit stays in the repository and in the reflog.
func (r *repo) adopt(ctx context.Context, q *quarantine, m space.Meta, check func() error, progress func(string)) (ImportResult, error) {
	head := r.head.Load()
	q.r.db.Lender = r.db
	a, err := r.weighAdoption(ctx, q.r, head, q.head)
	if err != nil {
		return ImportResult{}, r.adoptError(err)
	}
	warnings, err := r.screenHistory(ctx, q, progress)
	if err != nil {
		return ImportResult{}, r.adoptError(err)
	}
	r.commitMu.Lock()
	defer r.commitMu.Unlock()
	if err := check(); err != nil {
		return ImportResult{}, err
	}
	if ok, err := r.pristine(r.head.Load()); err != nil || !ok {
		return ImportResult{}, errors.Join(err, errNotPristine)
	}
	theirs, err := r.allowed(ctx, head, a.weight)
	if err != nil {
		return ImportResult{}, r.adoptError(err)
	}
	if err := r.takePacks(q.r.db); err != nil {
		return ImportResult{}, r.internalf(err, "import")
	}
	c, err := r.adoptHere(ctx, head, q.head, a, m)
	if err != nil {
		return ImportResult{}, r.adoptError(err)
	}
	c.Warnings = append(c.Warnings, warnings...)
	r.committed(c)
	return ImportResult{Commit: c, History: true, Files: theirs.files, Bytes: theirs.bytes, Notes: a.notes, Noted: a.noted}, nil
}

func (r *repo) adoptError(err error) error {
	if fault.CodeOf(err) == fault.Internal {
		return r.internalf(err, "import")
	}
	return err
}

// adoptHere makes a history whose objects are in head's. The caller holds
// commitMu.
func (r *repo) adoptHere(ctx context.Context, head, theirs *headState, a adoption, m space.Meta) (space.Commit, error) {
	if _, err := r.allowed(ctx, head, a.weight); err != nil {
		return space.Commit{}, err
	}
	c, onTop, err := r.adoptHead(ctx, head, theirs, a.edits, m)
	if err != nil {
		return space.Commit{}, err
	}
	c.Files = slices.DeleteFunc(a.files, func(f space.FileChange) bool { return onTop[string(f.Path)] })
	c.Changed, c.Rejected = true, a.notes
	r.totals = nil // counted again when it is next asked for
	return c, nil
}

// takePacks gives the repository the quarantine's packs, durably.
func (r *repo) takePacks(from *packfile.DB) error {
	names, err := packfile.PackNames(from.PackDir())
	if err != nil {
		return err
	}
	for _, name := range names {
		for _, ext := range []string{".pack", ".idx"} {
			to := filepath.Join(r.db.PackDir(), name+ext)
			if err := linkOrCopy(filepath.Join(from.PackDir(), name+ext), to); err != nil {
				return err
			}
			if err := os.Chmod(to, 0o444); err != nil {
				return err
			}
			if err := r.s.o.disk.SyncDir(to); err != nil { // a file is synced alike
				return err
			}
			r.s.o.probe("taken " + ext)
		}
	}
	if err := r.s.o.disk.SyncDir(r.db.PackDir()); err != nil {
		return err
	}
	return r.db.Rescan()
}

// adoptHead moves the branch to the adopted history, with a commit on top
// where there is something to add to it or to take from it: those paths are
// returned.
func (r *repo) adoptHead(ctx context.Context, head, theirs *headState, edits []trees.Edit, m space.Meta) (c space.Commit, onTop map[string]bool, err error) {
	kept := 0
	names := packfile.NameIndex{}
	err = r.trees().Walk(ctx, head.tree, "", func(path string, e packfile.TreeEntry) error {
		at, err := r.trees().LookupIn(names, theirs.tree, path)
		if err == nil && !at.Found && at.Blocked == "" {
			edits = append(edits, trees.Edit{Path: path, Mode: e.Mode, Hash: e.Hash})
			kept++
		}
		return err
	})
	if err != nil {
		return c, nil, err
	}
	onTop = map[string]bool{}
	for _, e := range edits {
		onTop[e.Path] = true
	}
	if len(edits) > 0 {
		var objs []trees.Object
		tree, err := r.trees().Rewrite(theirs.tree, edits, &objs)
		if err != nil {
			return c, nil, err
		}
		c, err = r.record(ctx, head, []packfile.Hash{theirs.id}, tree, objs, m, fmt.Sprintf("Add %d files that every space starts with", kept))
		return c, onTop, err
	}
	raw, err := commits.Get(r.db, theirs.id)
	if err != nil {
		return c, nil, err
	}
	if err := r.advance(head.id, theirs.id, m.Author, stampNow(), adopting); err != nil {
		return c, nil, err
	}
	r.head.Store(theirs)
	return r.proven(raw, theirs.id), onTop, nil
}
