package sandbox

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"satchel/internal/fault"
	"satchel/internal/space"
	"satchel/sandbox/agent"
)

// treeState is what the host knows of a sandbox's files. Guarded by box.tree.
type treeState struct {
	view    view
	head    space.CommitID          // what the sandbox was last brought to
	behind  map[space.Path]struct{} // older than head inside: changed there too, or not written
	refused map[string]space.Refusal
	retry   map[string]bool // of refused: the Committer's, told again by each collection
	commits []space.Commit  // made from this sandbox, the newest ones
	made    int             // how many there were before commits
}

func newTreeState(s space.Seeder, id space.SpaceID, head space.CommitID) treeState {
	return treeState{
		view:    view{seeder: s, id: id, seed: head, over: map[space.Path]file{}},
		head:    head,
		behind:  map[space.Path]struct{}{},
		refused: map[string]space.Refusal{},
	}
}

// saved is the outcome of a collection.
type saved struct {
	refused   []space.Refusal // not told before
	conflicts []space.Conflict
	untold    int // refusals beyond maxRefused
	notes     []string
	err       error // why changes stay uncommitted
	agent     bool  // err is the agent's: the sandbox is broken
}

// maxRounds bounds the batches of one collection.
const maxRounds = 1000

// save commits what changed in the sandbox since it was last saved. It must
// run to its end though the caller has gone: ctx is the pool's.
func (b *box) save(ctx context.Context, meta space.Meta) saved {
	var s saved
	if err := b.tree.lock(ctx); err != nil {
		s.err = err
		return s
	}
	defer b.tree.unlock()
	b.collect(ctx, meta, &s)
	return s
}

// collect is save under the tree lock.
func (b *box) collect(ctx context.Context, meta space.Meta, s *saved) {
	limits := agent.CollectLimits{Entries: b.pool.o.MaxChangeFiles, FileSize: b.pool.o.MaxFile, Total: b.pool.o.MaxChange}
	keep := true // leave what a Committer refused to a later try
	retry := map[string]bool{}
	for range maxRounds {
		began := time.Now()
		batch, err := b.agent.Collect(ctx, limits)
		if err != nil {
			s.err, s.agent = err, true
			return
		}
		if len(batch.Entries) == 0 {
			break
		}
		except, err := b.commit(ctx, batch, limits, meta, s, retry)
		b.pool.o.Metrics.collected(time.Since(began), len(batch.Entries), err)
		if err != nil {
			if s.err, s.agent = err, errors.Is(err, agent.ErrProtocol); s.agent {
				b.die(err) // whoever speaks for the sandbox is not our agent any more
			}
			return
		}
		if !keep {
			except = nil
			clear(retry)
		}
		if err := b.agent.Ack(ctx, batch.ID, except); err != nil {
			s.err, s.agent = err, true
			return
		}
		if !batch.More {
			break
		}
		if len(except) == len(batch.Entries) {
			// Nothing moves on: the next batch would be the same. What was
			// refused is named already, and is told again when it changes.
			if !keep {
				break
			}
			keep = false
		}
	}
	for p := range b.retry {
		if !retry[p] {
			delete(b.refused, p) // it is gone, or was committed
		}
	}
	if b.retry = retry; !keep {
		b.retry = nil
	}
	if s.untold > 0 {
		s.notes = append(s.notes, fmt.Sprintf("%s more could not be committed.", count(s.untold, "path")))
	}
	if len(b.behind) > 0 {
		if _, notes, err := b.catchUp(ctx, false); err != nil {
			b.pool.o.Logger.Warn("a conflict could not be brought into the sandbox", "space", b.key.space, "err", err)
		} else {
			s.notes = append(s.notes, notes...)
		}
	}
}

// commit makes a commit of one batch and returns the paths that the agent
// shall tell again.
func (b *box) commit(ctx context.Context, batch agent.Batch, limits agent.CollectLimits, meta space.Meta, s *saved, retry map[string]bool) ([]string, error) {
	d, err := makeDraft(ctx, &b.view, batch, limits)
	if err != nil {
		return nil, err
	}
	for _, p := range d.gone {
		delete(b.refused, p)
	}
	except := d.busy
	for _, r := range d.refused {
		b.refuse(s, r)
	}
	cs := d.changeSet()
	if len(cs.Changes) == 0 {
		return except, nil
	}
	c, err := b.pool.o.Committer.Commit(ctx, b.key.space, cs, meta)
	if err != nil {
		return nil, fmt.Errorf("commit: %w", err)
	}
	for _, r := range c.Refused {
		delete(d.changes, space.Path(r.Path))
		except = append(except, r.Path)
		retry[r.Path] = true
		b.refuse(s, r)
	}
	for p := range d.changes {
		delete(b.refused, string(p))
		b.view.set(p, d.writes[p]) // the zero file where it was deleted
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
			b.head = c.ID // nothing of others' came between
		}
	}
	return except, nil
}

// refuse notes a refusal, and tells it unless the same was told before.
func (b *box) refuse(s *saved, r space.Refusal) {
	if old, ok := b.refused[r.Path]; ok && old.Why == r.Why {
		return
	}
	if len(b.refused) < maxRefused {
		b.refused[r.Path] = r
	}
	if len(s.refused) < maxRefused {
		s.refused = append(s.refused, r)
	} else {
		s.untold++
	}
}

// maxRefused bounds the refusals that are remembered and told.
const maxRefused = 1000

// maxRemembered bounds the commits that are kept for commands that still run.
const maxRemembered = 256

func (b *box) remember(c space.Commit) {
	b.commits = append(b.commits, c)
	if n := len(b.commits) - maxRemembered; n > 0 {
		b.commits = slices.Delete(b.commits, 0, n)
		b.made += n
	}
}

// forget drops the commits that no command is interested in.
func (b *box) forget() {
	b.made += len(b.commits)
	b.commits = nil
}

// mark returns the place in the row of commits where since begins.
func (b *box) mark() int { return b.made + len(b.commits) }

// since returns the commits made after mark was called.
func (b *box) since(mark int) []space.Commit {
	return slices.Clone(b.commits[max(0, min(mark-b.made, len(b.commits))):])
}

// errTooMuch says that bringing a sandbox up to head would take too long.
var errTooMuch = errors.New("too much changed in the space")

// catchUp brings the sandbox's files to head, but for those that have changes
// of their own, which stay as they are until they are committed beside head's.
// With bounded it returns errTooMuch, having done nothing, where that is more
// than the options allow.
func (b *box) catchUp(ctx context.Context, bounded bool) (applied []space.FileChange, notes []string, err error) {
	head, err := b.view.seeder.Head(ctx, b.key.space)
	if err != nil {
		return nil, nil, err
	}
	if head == b.head && len(b.behind) == 0 {
		return nil, nil, nil
	}
	wanted, err := b.wanted(ctx, head)
	if err != nil {
		return nil, nil, err
	}
	if bounded {
		var bytes int64
		for _, c := range wanted {
			bytes += c.Size
		}
		if len(wanted) > b.pool.o.MaxApplyFiles || bytes > b.pool.o.MaxApplyBytes {
			return nil, nil, errTooMuch
		}
	}
	for _, c := range wanted {
		b.behind[c.Path] = struct{}{}
	}
	b.head = head
	for len(wanted) > 0 {
		n, entries, err := b.applyEntries(ctx, wanted)
		if err != nil {
			return applied, notes, err
		}
		results, err := b.agent.Apply(ctx, entries)
		if err != nil {
			return applied, notes, err
		}
		left := map[string]agent.ApplyResult{}
		for _, r := range results {
			if r.Dirty || r.Problem != "" {
				left[r.Path] = r
			}
		}
		for _, c := range wanted[:n] {
			r, ok := left[string(c.Path)]
			if !ok {
				delete(b.behind, c.Path)
				b.view.set(c.Path, file{c.New, c.NewMode})
				applied = append(applied, c)
			} else if !r.Dirty {
				notes = append(notes, fmt.Sprintf("The newer version of %s could not be brought into the sandbox: %s.", shown(r.Path), Clean([]byte(r.Problem))))
			}
		}
		wanted = wanted[n:]
	}
	return applied, notes, nil
}

// wanted lists what differs between the sandbox and head: deletions first, so
// that a file can become a directory, else by path.
func (b *box) wanted(ctx context.Context, head space.CommitID) ([]space.FileChange, error) {
	var list []space.FileChange
	if head != b.head {
		diff, err := b.view.seeder.Diff(ctx, b.key.space, b.head, head)
		if err != nil {
			return nil, err
		}
		list = diff
	}
	listed := make(map[space.Path]bool, len(list))
	for _, c := range list {
		listed[c.Path] = true
	}
	for _, p := range slices.Sorted(maps.Keys(b.behind)) {
		if listed[p] {
			continue
		}
		blob, mode, ok, err := b.view.seeder.Blob(ctx, b.key.space, head, p)
		if err != nil {
			return nil, err
		}
		c := space.FileChange{Path: p, Status: space.Deleted}
		if ok {
			c = space.FileChange{Path: p, Status: space.Modified, New: blob, NewMode: mode}
		}
		list = append(list, c)
	}
	var deletes, writes []space.FileChange
	for _, c := range list {
		has, err := b.view.get(ctx, c.Path)
		if err != nil {
			return nil, err
		}
		switch want := (file{c.New, c.NewMode}); {
		case !want.exists() && !has.exists() || want == has:
			delete(b.behind, c.Path)
		case !want.exists():
			deletes = append(deletes, c)
		default:
			writes = append(writes, c)
		}
	}
	return append(deletes, writes...), nil
}

// Bounds of one call of Apply.
const (
	applyFiles = 500
	applyBytes = 4 << 20
)

// applyEntries reads the contents for one call of Apply, of the first n of
// list.
func (b *box) applyEntries(ctx context.Context, list []space.FileChange) (n int, entries []agent.ApplyEntry, err error) {
	var bytes int
	for n < len(list) && n < applyFiles && bytes < applyBytes {
		c := list[n]
		e := agent.ApplyEntry{Path: string(c.Path), Delete: c.New == "", Mode: c.NewMode}
		if !e.Delete {
			if e.Content, err = b.view.seeder.ReadBlob(ctx, b.key.space, c.New); err != nil {
				return 0, nil, err
			}
			bytes += len(e.Content)
		}
		entries = append(entries, e)
		n++
	}
	return n, entries, nil
}

// notSaved is what a caller is told where changes could not be committed.
func notSaved(err error) error {
	if err == nil {
		return nil
	}
	var f *fault.Error
	if errors.As(err, &f) {
		return err
	}
	return fault.Wrap(err, fault.Unavailable, "The changes could not be committed now. They stay in the sandbox and are tried again at the end of the next command.")
}
