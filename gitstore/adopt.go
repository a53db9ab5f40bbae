package gitstore

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"satchel/internal/fault"
	"satchel/internal/space"
)

// adopt makes a quarantined history the space's own, where that has only its
// first commit, with the first commit's files on top that the history lacks.
// The first commit stays in the repository and in the reflog.
func (r *repo) adopt(ctx context.Context, q *quarantine, m space.Meta) (ImportResult, error) {
	res := ImportResult{History: true}
	var edits []edit
	lim := r.s.o.Limits
	err := q.r.walk(ctx, q.head.tree, "", func(path string, e treeEntry) error {
		reason, size, err := q.r.reasonOf(path, e, lim.File)
		if err != nil {
			return err
		}
		if reason != nil {
			res.note(path, reason)
			switch space.RuleOf(reason) {
			case space.RuleGit, space.RuleSegment:
				// Dangerous to whoever checks it out: gone from head. All else
				// stays as its owner has it, and out of checkouts if need be.
				edits = append(edits, edit{path: path})
			}
		}
		res.Files++
		res.Bytes += size
		return nil
	})
	if err != nil {
		return ImportResult{}, r.internalf(err, "import")
	}
	if res.Files > lim.Files || res.Bytes > lim.Space {
		return ImportResult{}, fault.New(fault.TooLarge, "The repository has %d files of %s at its head, and %d files of %s are allowed.",
			res.Files, sizeText(res.Bytes), lim.Files, sizeText(lim.Space))
	}
	r.commitMu.Lock()
	defer r.commitMu.Unlock()
	if r.broken != nil {
		return ImportResult{}, fault.Wrap(r.broken, fault.Unavailable, "The space takes no changes until the server is restarted.")
	}
	head := r.head.Load()
	if ok, err := r.pristine(head); err != nil || !ok {
		return ImportResult{}, errors.Join(err, errNotPristine)
	}
	if err := r.takePacks(q.r.db); err != nil {
		return ImportResult{}, r.internalf(err, "import")
	}
	c, err := r.adoptHead(ctx, head, q.head, edits, m)
	if err != nil {
		return ImportResult{}, r.internalf(err, "import")
	}
	if c.Files, err = r.diff(ctx, head.tree, r.head.Load().tree); err != nil {
		return ImportResult{}, err
	}
	c.Changed = true
	r.totals = nil // counted again when it is next asked for
	res.Commit = c
	r.committed(c)
	return res, nil
}

// takePacks gives the repository the quarantine's packs, durably.
func (r *repo) takePacks(from *objectDB) error {
	names, err := packNames(from.packDir())
	if err != nil {
		return err
	}
	for _, name := range names {
		for _, ext := range []string{".pack", ".idx"} {
			to := filepath.Join(r.db.packDir(), name+ext)
			if err := linkOrCopy(filepath.Join(from.packDir(), name+ext), to); err != nil {
				return err
			}
			if err := os.Chmod(to, 0o444); err != nil {
				return err
			}
			if err := r.s.o.syncDir(to); err != nil { // a file is synced alike
				return err
			}
		}
	}
	if err := r.s.o.syncDir(r.db.packDir()); err != nil {
		return err
	}
	return r.db.rescan()
}

// adoptHead moves the branch to the adopted history, with a commit on top
// where there is something to add to it or to take from it.
func (r *repo) adoptHead(ctx context.Context, head, theirs *headState, edits []edit, m space.Meta) (space.Commit, error) {
	kept := 0
	err := r.walk(ctx, head.tree, "", func(path string, e treeEntry) error {
		at, err := r.lookup(theirs.tree, path)
		if err == nil && !at.found && at.blocked == "" {
			edits = append(edits, edit{path, e.mode, e.hash})
			kept++
		}
		return err
	})
	if err != nil {
		return space.Commit{}, err
	}
	if len(edits) > 0 {
		var objs []newObject
		tree, err := r.rewrite(theirs.tree, edits, &objs)
		if err != nil {
			return space.Commit{}, err
		}
		return r.record(ctx, head, []hash{theirs.id}, tree, objs, m, fmt.Sprintf("Add %d files that every space starts with", kept))
	}
	c, err := r.rawCommit(theirs.id)
	if err != nil {
		return space.Commit{}, err
	}
	now := time.Now()
	stamp := fmt.Sprintf("%d %s", now.Unix(), now.Format("-0700"))
	if err := r.advance(head.id, theirs.id, m.Author, stamp, "import"); err != nil {
		return space.Commit{}, err
	}
	r.head.Store(theirs)
	return c.commit(theirs.id), nil
}
