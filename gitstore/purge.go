package gitstore

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/go-git/go-git/v5/plumbing"

	"satchel/gitstore/commits"
	"satchel/gitstore/gitcmd"
	"satchel/gitstore/packfile"
	"satchel/gitstore/rewrite"
	"satchel/internal/fault"
	"satchel/internal/space"
)

// PurgeResult is the result of a purge.
type PurgeResult struct {
	Head    space.CommitID
	Commits int          // number of commits that were rewritten or dropped
	Files   []space.Path // files whose content changed in some commit, sorted
	Words   int          // number of commits and tags whose message or names changed
	// Commit is the new head. Its files are the differences from the old head. The
	// blobs in their Old fields are gone. Changed is false if nothing was rewritten.
	Commit space.Commit
}

// RewriteFile returns the new content of a file of the history; see [rewrite.File].
type RewriteFile = rewrite.File

// Purge rewrites the commits that are not in the history of since (all commits if since is
// empty), and then removes the old objects from disk for good. It removes everything that no
// branch, tag or other ref reaches any more, the old lines of reflogs, and the
// checkouts and the git view of sandboxes. It calls file once for each content that a
// rewritten commit adds or changes at a path.
//
// Commits keep their dates, and the authors and messages that file does not change.
// They lose their signatures, which would no longer be valid. Merges keep their
// parents, except those that a dropped commit makes redundant. Commits that become empty
// are dropped, except first commits. Tags and kept refs move to the rewritten commits. A
// tracking ref to a rewritten commit is removed, because the remote still has the old one.
// A tag of a blob or a tree is removed if it holds removed content.
//
// A space with live sandboxes is a fault.Conflict: stop them first. Commits wait
// meanwhile, reads do not, and running bundles end. If the process is killed, the space
// has either its old history or the new one, and the removal is finished when the space
// is next opened. If head has moved but the removal failed, Purge returns a result with
// the error. GC and the next opening of the space then try the removal again.
func (s *Store) Purge(ctx context.Context, id space.SpaceID, since space.CommitID, file RewriteFile, m space.Meta) (PurgeResult, error) {
	r, release, err := s.acquire(ctx, id)
	if err != nil {
		return PurgeResult{}, err
	}
	defer release()
	// End the bundles: a download must not delay a purge, and gets no more of what the
	// purge removes.
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
		return PurgeResult{}, fault.New(fault.Conflict, "The space has a running sandbox. Stop it first: it has the files that are to be removed.")
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

// install makes the result of a purge the space's history. The caller holds commitMu,
// seeds.turn and maintaining.
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
	// From here on the new history counts, whatever happens to the old one.
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

// A purge moves a space to its new history in these steps. If the process dies in
// between, opening the space completes the steps:
//
//	new objects       packs that no ref reaches yet; after a crash, a later purge or GC
//	                  drops them
//	the journal       names the old head and the moves of the other refs; dropped if
//	                  head has not moved
//	head moves        by the reflog, as with every commit
//	other refs move   by the journal, which can be repeated
//	reflogs           in the branch's reflog, rewritten commits replace those that were
//	                  made here, and removed commits go; a rename replaces the file.
//	                  Other reflogs are deleted
//	packs             one pack gets everything that the refs reach; all others go
//	the journal       removed

// journalFile is the name of a purge's journal in the repository.
const journalFile = "satchel-purge"

// purgeJournal is what is left to do after head has moved.
type purgeJournal struct {
	Old  string
	New  string
	Refs []refMove
	// Made maps the old id of each rewritten commit of this server to its new id. The new
	// commit counts as made by this server too.
	Made map[string]string `json:",omitempty"`
}

// refMove moves, creates or deletes a ref. An empty New deletes the ref.
type refMove struct{ Name, New string }

// rewrittenLine follows the two hashes in the reflog's line for a rewritten commit.
const rewrittenLine = "Satchel <> 0 +0000\t" + committing + "rewritten by a purge\n"

// namedRef is a ref with its object. If the object is a commit, or a tag of a commit, commit
// is set. If it is a tree or a blob, or a tag of one, other is set.
type namedRef struct {
	name   string
	object packfile.Hash
	commit packfile.Hash
	other  packfile.TreeEntry
}

// Namespaces of refs.
const (
	trackingRefs = "refs/remotes/"
	keptRefs     = "refs/satchel/kept/" // the last part of each name is the commit
	tagRefs      = "refs/tags/"
)

// refs lists every ref except the branch.
func (r *repo) refs(ctx context.Context) ([]namedRef, error) {
	out, err := r.s.git.Run(ctx, gitcmd.Cmd{Dir: r.dir, GitDir: r.dir, Args: []string{"for-each-ref", "--format=%(objectname) %(refname)"}})
	if err != nil {
		return nil, err
	}
	var refs []namedRef
	for line := range strings.Lines(string(out)) {
		id, name, _ := strings.Cut(strings.TrimSuffix(line, "\n"), " ")
		if name == branch {
			continue
		}
		ref := namedRef{name: name}
		if ref.object, err = packfile.HashFrom(id); err != nil {
			return nil, err
		}
		if err := r.peel(&ref); err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		refs = append(refs, ref)
	}
	return refs, nil
}

// peel follows tags to the object that a ref stands for.
func (r *repo) peel(ref *namedRef) error {
	h := ref.object
	for range maxTagChain {
		o, err := r.db.Read(h)
		if err != nil {
			return err
		}
		switch o.Kind {
		case plumbing.CommitObject:
			ref.commit = h
			return nil
		case plumbing.TreeObject:
			ref.other = packfile.TreeEntry{Mode: packfile.ModeDir, Hash: h}
			return nil
		case plumbing.BlobObject:
			ref.other = packfile.TreeEntry{Mode: packfile.ModeRegular, Hash: h}
			return nil
		}
		line, _, _ := bytes.Cut(o.Data, []byte("\n"))
		if h, err = packfile.HashFrom(strings.TrimPrefix(string(line), "object ")); err != nil {
			return fmt.Errorf("malformed tag: %w", err)
		}
	}
	return errors.New("too many tags of tags")
}

// maxTagChain limits how many tags of tags are followed.
const maxTagChain = 16

// purger is a purge in progress.
type purger struct {
	*rewrite.Rewriter
	repo      *repo // reads the space's objects and the new ones
	starts    []namedRef
	old       map[packfile.Hash]bool // the commits that stay as they are
	installed bool
}

func (r *repo) newPurger(ctx context.Context, since space.CommitID, file RewriteFile) (*purger, error) {
	old := map[packfile.Hash]bool{}
	if since != "" {
		st, err := r.resolve(string(since))
		if err != nil {
			return nil, err
		}
		if err := commits.Ancestry(ctx, r.db, []packfile.Hash{st.id}, old); err != nil {
			return nil, r.internalf(err, "purge")
		}
	}
	refs, err := r.refs(ctx)
	if err != nil {
		return nil, r.internalf(err, "purge")
	}
	refs = append(refs, namedRef{name: branch, object: r.head.Load().id, commit: r.head.Load().id})
	var tips []packfile.Hash
	for _, ref := range refs {
		if !ref.commit.IsZero() {
			tips = append(tips, ref.commit)
		}
	}
	db, err := packfile.Open(r.db.Dir, r.s.cache)
	if err != nil {
		return nil, r.internalf(err, "purge")
	}
	p := &purger{repo: &repo{s: r.s, id: r.id, dir: r.dir, db: db}, starts: refs, old: old}
	p.Rewriter = rewrite.New(rewrite.Options{Trees: p.repo.trees(), Disk: r.s.o.disk, File: file, Tips: tips, Old: old})
	return p, nil
}

// Close removes the packs that were written, unless they were installed.
func (p *purger) Close() {
	p.repo.db.Close()
	if !p.installed {
		p.Discard()
	}
}

// journal lists the moves of the refs, and writes the tag objects for them.
func (p *purger) journal(ctx context.Context, old, now packfile.Hash) (purgeJournal, error) {
	j := purgeJournal{Old: old.String(), New: now.String(), Made: map[string]string{}}
	made, err := p.repo.allMade()
	if err != nil {
		return j, err
	}
	for h := range made {
		if next := p.Now(h); next != h && !p.Dropped(h) {
			j.Made[h.String()] = next.String()
		}
	}
	for _, ref := range p.starts {
		next := p.Now(ref.commit)
		if ref.commit.IsZero() {
			gone, err := p.HoldsPurged(ctx, ref.other)
			if err != nil {
				return j, err
			}
			if gone {
				j.Refs = append(j.Refs, refMove{Name: ref.name})
			}
			continue
		}
		if ref.name == branch || next == ref.commit && (ref.object == ref.commit || p.old[next]) {
			continue
		}
		if next == ref.commit {
			tag, err := p.Retag(ref.object, ref.commit, next)
			if err != nil {
				return j, err
			}
			if tag != ref.object {
				j.Refs = append(j.Refs, refMove{Name: ref.name, New: tag.String()})
			}
			continue
		}
		move := refMove{Name: ref.name, New: next.String()}
		switch {
		case strings.HasPrefix(ref.name, trackingRefs):
			move.New = ""
		case strings.HasPrefix(ref.name, keptRefs) && ref.name == keptRefs+ref.commit.String():
			move.New = ""
			j.Refs = append(j.Refs, refMove{Name: keptRefs + next.String(), New: next.String()})
		case ref.object != ref.commit:
			tag, err := p.Retag(ref.object, ref.commit, next)
			if err != nil {
				return j, err
			}
			move.New = tag.String()
		}
		j.Refs = append(j.Refs, move)
	}
	return j, p.Flush()
}

// writeJournal makes a journal durable.
func (r *repo) writeJournal(j purgeJournal) error {
	b, err := json.Marshal(j)
	if err != nil {
		return err
	}
	return r.s.o.disk.ReplaceDurable(filepath.Join(r.dir, journalFile), b, 0o600)
}

func (r *repo) dropJournal() error {
	err := os.Remove(filepath.Join(r.dir, journalFile))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return errors.Join(err, r.s.o.disk.SyncDir(r.dir))
}

// recoverPurge finishes an interrupted purge, if there is one. Nobody else may use the
// space, unless the caller holds commitMu, seeds.turn and maintaining.
func (r *repo) recoverPurge(ctx context.Context) error {
	b, err := os.ReadFile(filepath.Join(r.dir, journalFile))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	var j purgeJournal
	if err := json.Unmarshal(b, &j); err != nil {
		return fmt.Errorf("%s: %w", journalFile, err)
	}
	if r.head.Load().id.String() == j.Old && j.Old != j.New {
		return r.dropJournal() // head has not moved, so nothing was purged
	}
	return r.finishPurge(ctx, j)
}

// finishPurge moves the refs other than the branch, and removes unreachable objects. It can
// be repeated.
func (r *repo) finishPurge(ctx context.Context, j purgeJournal) error {
	if err := r.moveRefs(ctx, j.Refs); err != nil {
		return err
	}
	r.s.o.probe("purge: refs moved")
	if err := r.purgeLogs(ctx, j.Made); err != nil {
		return err
	}
	r.s.o.probe("purge: logs cleaned")
	tips, err := r.tips(ctx)
	if err != nil {
		return err
	}
	if err := r.dropUnreachable(ctx, tips); err != nil {
		return err
	}
	r.forgetSeeds()
	return r.dropJournal()
}

// moveRefs moves the refs that are not yet at their targets.
func (r *repo) moveRefs(ctx context.Context, moves []refMove) error {
	if len(moves) == 0 {
		return nil
	}
	refs, err := r.refs(ctx)
	if err != nil {
		return err
	}
	at := map[string]string{}
	for _, ref := range refs {
		at[ref.name] = ref.object.String()
	}
	var in strings.Builder
	for _, m := range moves {
		switch {
		case at[m.Name] == m.New:
		case m.New == "": // the ref exists, or the first case would match
			fmt.Fprintf(&in, "delete %s\x00\x00", m.Name)
		default:
			fmt.Fprintf(&in, "update %s\x00%s\x00\x00", m.Name, m.New)
		}
	}
	r.refMu.Lock()
	defer r.refMu.Unlock()
	_, err = r.s.git.Run(ctx, gitcmd.Cmd{Dir: r.dir, GitDir: r.dir, Stdin: strings.NewReader(in.String()),
		Args: []string{"update-ref", "--no-deref", "-z", "--stdin"}})
	return err
}

// purgeLogs removes from the branch's reflog the lines of commits that no ref reaches
// any more, and deletes the reflogs of other refs. A commit that was made here still
// counts as made here under its new id.
func (r *repo) purgeLogs(ctx context.Context, made map[string]string) error {
	refs, err := r.refs(ctx)
	if err != nil {
		return err
	}
	tips := []packfile.Hash{r.head.Load().id}
	for _, ref := range refs {
		if !ref.commit.IsZero() {
			tips = append(tips, ref.commit)
		}
	}
	reached := map[packfile.Hash]bool{}
	if err := commits.Ancestry(ctx, r.db, tips, reached); err != nil {
		return err
	}
	err = r.rewriteLog(func(l logLine) (logLine, bool) {
		if next, ok := made[l.now.String()]; ok {
			if h, err := packfile.HashFrom(next); err == nil {
				// The old line may contain text that the purge removes from messages
				// and names.
				l.now, l.rest = h, rewrittenLine
			}
		}
		return l, reached[l.now]
	})
	if err != nil {
		return err
	}
	logs := filepath.Join(r.dir, "logs")
	return filepath.WalkDir(logs, func(p string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || p == r.logFile() {
			return err
		}
		if err := os.Remove(p); err != nil {
			return err
		}
		return r.s.o.disk.SyncDir(filepath.Dir(p))
	})
}

// tips returns the objects that the refs name.
func (r *repo) tips(ctx context.Context) ([]packfile.Hash, error) {
	refs, err := r.refs(ctx)
	if err != nil {
		return nil, err
	}
	tips := []packfile.Hash{r.head.Load().id}
	for _, ref := range refs {
		tips = append(tips, ref.object)
	}
	return tips, nil
}

// dropUnreachable packs everything that the tips reach, and removes all other objects.
// The caller holds the locks that Purge holds.
func (r *repo) dropUnreachable(ctx context.Context, tips []packfile.Hash) error {
	var in strings.Builder
	for _, h := range tips {
		fmt.Fprintln(&in, h)
	}
	dir := r.db.PackDir()
	out, err := r.s.git.Run(ctx, gitcmd.Cmd{Dir: r.dir, GitDir: r.dir, Stdin: strings.NewReader(in.String()),
		Args: []string{"pack-objects", "-q", "--revs", "--delta-base-offset", "--no-write-bitmap-index", filepath.Join(dir, "pack")}})
	if err != nil {
		return err
	}
	name := "pack-" + strings.TrimSpace(string(out))
	p, err := packfile.Load(filepath.Join(dir, name))
	if err != nil {
		return err
	}
	p.Close()
	for _, f := range []string{p.Base + ".pack", p.Base + ".idx", dir} {
		if err := r.s.o.disk.SyncDir(f); err != nil { // SyncDir works for files too
			return err
		}
	}
	r.s.o.probe("purge: packed")
	if err := r.removeObjectsBut(name); err != nil {
		return err
	}
	r.s.o.probe("purge: packs removed")
	r.db.Cache.Drop(r.db)
	return r.db.Rescan()
}

// removeObjectsBut removes every object that is not in the pack, and the files that git
// derived from objects.
func (r *repo) removeObjectsBut(pack string) error {
	top, err := os.ReadDir(r.db.Dir)
	if err != nil {
		return err
	}
	for _, e := range top {
		if name := e.Name(); name != "pack" && name != "info" {
			if err := removeTree(filepath.Join(r.db.Dir, name)); err != nil {
				return err
			}
		}
	}
	for _, name := range []string{"commit-graph", "commit-graphs", "packs"} {
		if err := removeTree(filepath.Join(r.db.Dir, "info", name)); err != nil {
			return err
		}
	}
	names, err := packfile.PackNames(r.db.PackDir())
	if err != nil {
		return err
	}
	for _, name := range names { // indexes first, so that no index lacks its pack
		if name != pack {
			if err := os.Remove(filepath.Join(r.db.PackDir(), name+".idx")); err != nil {
				return err
			}
		}
	}
	r.s.o.probe("purge: indexes removed")
	es, err := os.ReadDir(r.db.PackDir())
	if err != nil {
		return err
	}
	for _, e := range es {
		if !strings.HasPrefix(e.Name(), pack+".") {
			if err := os.Remove(filepath.Join(r.db.PackDir(), e.Name())); err != nil {
				return err
			}
		}
	}
	return errors.Join(r.s.o.disk.SyncDir(r.db.PackDir()), r.s.o.disk.SyncDir(r.db.Dir))
}
