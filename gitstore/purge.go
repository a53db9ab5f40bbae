package gitstore

import (
	"context"
	"fmt"
	"time"

	"satchel/gitstore/commits"
	"satchel/gitstore/packfile"
	"satchel/gitstore/rewrite"
	"satchel/internal/fault"
	"satchel/internal/space"
)

// PurgeResult reports what a purge did.
type PurgeResult struct {
	Head    space.CommitID
	Commits int          // rewritten or dropped
	Files   []space.Path // whose content changed in some commit, sorted
	Words   int          // commits whose message or names changed, and tags whose message did
	// Commit is the new head. Its files are what differs from the old one, of
	// which Old names blobs that are gone. Changed is false if there was
	// nothing to rewrite.
	Commit space.Commit
}

// RewriteFile says what a file of the history becomes; see [rewrite.File].
type RewriteFile = rewrite.File

// Purge rewrites the commits that since does not reach (all, where since is
// empty), and then removes the old objects from disk for good: what no branch,
// tag or other ref reaches any more, the old lines of reflogs, and the checkouts
// and git view of sandboxes. file is called once for each file's content that
// such a commit adds or changes at a path.
//
// Dates stay, and authors and messages where rewrite leaves them; signatures,
// which would no longer be right, do not. Merges keep their parents, and commits that become empty are dropped,
// but for a first commit. Tags and kept refs move to the rewritten commits; a
// tracking ref that names a rewritten commit is removed, because the remote
// still has the old one, as is a tag of a file or a tree that held what is gone.
//
// A space with live sandboxes is a fault.Conflict: stop them first. Commits wait
// meanwhile, reads do not, and bundles that are being written end. When the process is killed on the way, the space has
// its old history whole or the new one, and the removal is finished when it is
// next opened. Where the head has moved but the removal failed, the error comes
// with a result; the removal is tried again by GC and when the space is
// opened.
func (s *Store) Purge(ctx context.Context, id space.SpaceID, since space.CommitID, file RewriteFile, m space.Meta) (PurgeResult, error) {
	r, release, err := s.acquire(ctx, id)
	if err != nil {
		return PurgeResult{}, err
	}
	defer release()
	// Who only downloads does not keep what must go: it is handed to them no more.
	resume, err := r.bundles.stop(ctx, errPurged())
	if err != nil {
		return PurgeResult{}, err
	}
	defer resume()
	if !r.unreached.TryLock() {
		return PurgeResult{}, fault.New(fault.Conflict, "The space is busy with an import or a transfer. Try again when that is done.")
	}
	defer r.unreached.Unlock()
	r.maintaining.Lock()
	defer r.maintaining.Unlock()
	if err := r.seeds.enter(ctx); err != nil {
		return PurgeResult{}, err
	}
	defer r.seeds.leave()
	if r.seeds.seeded() {
		return PurgeResult{}, fault.New(fault.Conflict, "The space has a sandbox that runs. Stop it first: it holds the files that are to be removed.")
	}
	r.commitMu.Lock()
	defer r.commitMu.Unlock()
	if err := r.usable(); err != nil {
		return PurgeResult{}, err
	}
	p, err := r.newPurger(ctx, since, file)
	if err != nil {
		return PurgeResult{}, err
	}
	defer p.Close()
	if err := p.Run(ctx); err != nil {
		return PurgeResult{}, r.internalf(err, "purge")
	}
	return r.install(ctx, p, m)
}

// install makes a purge's result the space's history. The caller holds
// commitMu, the seeds' turn and maintaining.
func (r *repo) install(ctx context.Context, p *purger, m space.Meta) (res PurgeResult, err error) {
	head := r.head.Load()
	next := &headState{id: p.Now(head.id)}
	c, err := commits.Get(p.repo.db, next.id)
	if err != nil {
		return res, r.internalf(err, "purge")
	}
	next.tree = c.Tree
	was := head.id
	if p.Dropped(was) {
		was = next.id
	}
	res = PurgeResult{Head: packfile.CommitID(next.id), Commits: p.Commits(), Commit: r.rewritten(c, was, next.id)}
	for _, f := range p.Files() {
		res.Files = append(res.Files, space.Path(f))
	}
	j, err := p.journal(ctx, head.id, next.id)
	if err != nil {
		return PurgeResult{}, r.internalf(err, "purge")
	}
	res.Words = p.Words()
	if next.id == head.id && len(j.Refs) == 0 {
		return res, nil
	}
	if res.Commit.Files, err = p.repo.diff(ctx, head.tree, next.tree); err != nil {
		return PurgeResult{}, err
	}
	res.Commit.Changed = true
	if err := r.writeJournal(j); err != nil {
		return PurgeResult{}, r.internalf(err, "purge")
	}
	r.s.o.probe("purge: journal written")
	r.purges.Add(1)
	if next.id != head.id {
		if m.Time.IsZero() {
			m.Time = time.Now()
		}
		stamp := fmt.Sprintf("%d %s", m.Time.Unix(), m.Time.Format("-0700"))
		if err := r.advance(head.id, next.id, m.Author, stamp, "purge"); err != nil {
			r.dropJournal()
			return PurgeResult{}, r.internalf(err, "purge")
		}
	}
	// From here on the new history stands, whatever happens to the old one.
	p.installed = true
	if err := r.db.Rescan(); err != nil {
		r.logger().Error("The packs of a space could not be read again.", "error", err)
	}
	r.head.Store(next)
	r.totals = nil
	err = r.finishPurge(context.WithoutCancel(ctx), j)
	r.s.publish(r.id, res.Commit)
	if err != nil {
		r.logger().Error("The old objects of a purge could not be removed; it is tried again.", "error", err)
		return res, fault.Wrap(err, fault.Unavailable,
			"The history was rewritten, but the old files could not yet be removed from the server's disk. It will be tried again; the server's log has the reason.")
	}
	return res, nil
}
