package sandbox

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"satchel/internal/fault"
	"satchel/internal/space"
	"satchel/sandbox/protocol"
)

// treeState is what the host knows about a sandbox's files. Guarded by instance.tree.
type treeState struct {
	view    view
	head    space.CommitID          // the commit to which the sandbox was last updated
	behind  map[space.Path]struct{} // paths that are older in the sandbox than in head
	failed  map[space.Path]string   // the reason why a path of behind was not written, as an answer last gave it
	outside map[space.Path]bool     // paths that a sandbox cannot have, and that an answer has named
	refused map[string]space.Rejection
	retry   map[string]bool // paths of refused that the agent reports again in each collection
	pending map[string]pendingFile
	// collections counts the collections, to find paths that a complete one did not report.
	collections uint64
	commits     []space.Commit // the newest commits of this sandbox
	made        int            // the number of commits already dropped from the list
}

func newTreeState(s space.Checkouts, id space.SpaceID, seed *space.Checkout) treeState {
	return treeState{
		view:    view{seeder: s, id: id, seed: seed.Head, over: map[space.Path]file{}, damaged: seed.Damaged},
		head:    seed.Head,
		behind:  map[space.Path]struct{}{},
		failed:  map[space.Path]string{},
		outside: map[space.Path]bool{},
		refused: map[string]space.Rejection{},
		pending: map[string]pendingFile{},
	}
}

// saved is the outcome of a collection.
type saved struct {
	refused    []space.Rejection // rejections that no earlier answer reported
	conflicts  []space.Conflict
	unreported int // the number of refusals beyond maxRefused
	notes      []string
	err        error // why changes stay uncommitted
	agent      bool  // err comes from the agent: the sandbox is broken
	some       bool  // some changes were committed before err
}

// maxRounds limits the batches of one collection.
const maxRounds = 1000

// save commits the changes in the sandbox since the last save. It must finish even if the
// caller has gone, so ctx must be a context of the pool.
func (b *instance) save(ctx context.Context, meta space.Meta) saved {
	var s saved
	if err := b.tree.lock(ctx); err != nil {
		s.err = err
		return s
	}
	defer b.tree.unlock()
	b.collect(ctx, meta, &s)
	return s
}

// collect does the work of save, under the tree lock.
func (b *instance) collect(ctx context.Context, meta space.Meta, s *saved) {
	limits := protocol.CollectLimits{Entries: b.pool.o.MaxChangeFiles, FileSize: b.pool.o.MaxFile, Total: b.pool.o.MaxChange}
	if b.pool.o.Pending != nil {
		limits.FileSize = b.pool.o.MaxPendingFile
	}
	b.collections++
	defer b.show()
	keep := true // if set, paths that the Committer rejected wait for a later collection
	whole := false
	retry := map[string]bool{}
	for range maxRounds {
		began := time.Now()
		batch, err := b.agent.Collect(ctx, limits)
		if err != nil {
			s.err, s.agent = err, true
			return
		}
		if len(batch.Entries) == 0 {
			whole = true
			break
		}
		except, err := b.commit(ctx, batch, limits, meta, s, retry)
		b.pool.o.Metrics.collected(time.Since(began), len(batch.Entries), err)
		if err != nil {
			if s.err, s.agent = err, errors.Is(err, protocol.ErrProtocol); s.agent {
				b.die(err) // the peer broke the protocol, so it cannot be our agent
			}
			return
		}
		if !keep {
			except = nil
			clear(retry)
		}
		s.some = s.some || len(except) < len(batch.Entries)
		if err := b.agent.Ack(ctx, batch.ID, except); err != nil {
			if len(except) == 0 && !batch.More {
				// Everything is committed, so the error only concerns the sandbox.
				b.pool.o.Logger.Warn("the sandbox did not acknowledge a commit", "space", b.key.space, "err", err)
				return
			}
			s.err, s.agent = err, true
			return
		}
		limits.After = batch.ID
		b.unacked(except)
		if !batch.More {
			whole = true
			break
		}
		if len(except) == len(batch.Entries) {
			// There is no progress: the next batch would be the same. The rejected paths
			// are already reported, and will be again when they change.
			if !keep {
				break
			}
			keep = false
		}
	}
	for p := range b.retry {
		if !retry[p] {
			delete(b.refused, p) // the path was deleted or committed
		}
	}
	if b.retry = retry; !keep {
		b.retry = nil
	}
	if whole {
		b.settle(ctx)
	}
	if s.unreported > 0 {
		s.notes = append(s.notes, fmt.Sprintf("%s more could not be committed.", count(s.unreported, "path")))
	}
	if len(b.behind) > 0 {
		_, notes, err := b.syncToHead(ctx, false)
		if err != nil {
			b.pool.o.Logger.Warn("a conflict could not be brought into the sandbox", "space", b.key.space, "err", err)
		}
		s.notes = append(s.notes, notes...) // syncToHead reports each problem once
	}
}

// commit commits one batch and returns the paths that the agent must report again.
func (b *instance) commit(ctx context.Context, batch protocol.Batch, limits protocol.CollectLimits, meta space.Meta, s *saved, retry map[string]bool) ([]string, error) {
	d, err := makeDraft(ctx, &b.view, batch, limits, b.pool.o.MaxFile)
	if err != nil {
		return nil, err
	}
	if len(b.refused)+len(b.pending) > 0 {
		d.reported = reportsOf(batch)
	}
	for p := range b.refused { // if a path is rejected again, refuse adds it again
		if _, changed := d.changes[space.Path(p)]; !changed && !d.kept[p] && d.reported.changed(p) {
			delete(b.refused, p)
		}
	}
	except := d.busy
	for _, r := range d.refused {
		b.refuse(s, r)
	}
	cs := d.changeSet()
	if len(cs.Changes) == 0 {
		return append(except, b.keepBack(ctx, batch, d)...), nil
	}
	c, err := b.pool.o.Committer.Commit(ctx, b.key.space, cs, meta)
	if err != nil {
		for _, ch := range cs.Changes {
			d.keepChange(ch, fault.PublicOf(notSaved(err)), err)
		}
		b.keepBack(ctx, batch, d)
		for _, e := range batch.Entries {
			b.unacked([]string{e.Path})
		}
		return nil, fmt.Errorf("commit: %w", err)
	}
	for _, r := range c.Rejected {
		d.keepChange(d.changes[space.Path(r.Path)], r.Why, r.Err)
		delete(d.changes, space.Path(r.Path))
		except = append(except, r.Path)
		retry[r.Path] = true
		b.refuse(s, r)
	}
	for p := range d.changes {
		delete(b.refused, string(p))
		b.view.set(p, d.writes[p]) // the zero file if it was deleted
	}
	for _, conflict := range c.Conflicts {
		b.behind[conflict.Path] = struct{}{}
		if conflict.Kept != "" {
			b.behind[conflict.Kept] = struct{}{}
		}
	}
	s.conflicts = append(s.conflicts, c.Conflicts...)
	if c.Changed {
		b.remember(c)
		if c.Parent == b.head {
			b.head = c.ID // no other commit came between
		}
	}
	return append(except, b.keepBack(ctx, batch, d)...), nil
}

// refuse records a rejection, and reports it unless an earlier answer did.
func (b *instance) refuse(s *saved, r space.Rejection) {
	if old, ok := b.refused[r.Path]; ok && old.Why == r.Why {
		return
	}
	if old, ok := b.pending[r.Path]; ok && old.why == r.Why { // an answer before a restart gave this reason
		b.refused[r.Path] = r
		return
	}
	if len(b.refused) < maxRefused {
		b.refused[r.Path] = r
	}
	if len(s.refused) < maxRefused {
		s.refused = append(s.refused, r)
	} else {
		s.unreported++
	}
}

// maxRefused is how many rejections are remembered and reported.
const maxRefused = 1000

// maxRemembered is how many commits are kept for running commands.
const maxRemembered = 256

func (b *instance) remember(c space.Commit) {
	b.commits = append(b.commits, c)
	if n := len(b.commits) - maxRemembered; n > 0 {
		b.commits = slices.Delete(b.commits, 0, n)
		b.made += n
	}
}

// forget drops all remembered commits. No running command may need them.
func (b *instance) forget() {
	b.made += len(b.commits)
	b.commits = nil
}

// mark returns the current position in the list of commits, for the method since.
func (b *instance) mark() int { return b.made + len(b.commits) }

// since returns the commits made after mark was called that are still remembered.
func (b *instance) since(mark int) []space.Commit {
	return slices.Clone(b.commits[max(0, min(mark-b.made, len(b.commits))):])
}

// notSaved returns the error for a caller whose changes could not be committed.
func notSaved(err error) error {
	if err == nil {
		return nil
	}
	var f *fault.Error
	if errors.As(err, &f) {
		return err
	}
	return fault.Wrap(err, fault.Unavailable, "The changes could not be committed now. They stay in the sandbox, and the next command tries again to commit them.")
}
