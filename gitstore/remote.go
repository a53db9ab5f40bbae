package gitstore

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"

	"satchel/gitstore/commits"
	"satchel/gitstore/gitcmd"
	"satchel/gitstore/packfile"
	"satchel/gitstore/transport"
	"satchel/internal/fault"
	"satchel/internal/space"
)

// Transport moves commits between a repository on disk and a remote. [transport.Client]
// implements it and documents the methods in detail.
type Transport interface {
	// Fetch brings a branch's commits into the repository at gitDir, has git's fsck
	// check them, and sets the ref whose name is into. More than limit bytes are an error.
	Fetch(ctx context.Context, e transport.Endpoint, gitDir, branch, into string, limit int64, progress func(string)) error
	// Push moves the remote's branch to a commit of the repository at gitDir, if the
	// branch's old tip is an ancestor of the commit.
	Push(ctx context.Context, e transport.Endpoint, gitDir string, commit space.CommitID, branch string, progress func(string)) error
}

var _ Transport = (*transport.Client)(nil)

// Fetched is the result of Fetch.
type Fetched struct {
	Tip   space.CommitID // the tip of the remote's branch
	Bytes int64          // the size of the packs received
}

var errNoTransport = fault.New(fault.Unavailable, "This server has no remotes.")

// Fetch brings the commits of a remote's branch into the space's repository, durably,
// and records the branch's tip. It does not move head; Integrate does. It receives and
// checks the commits in a quarantine, so that a failed or refused transfer leaves
// nothing. If progress is not nil, Fetch calls it with lines for people to read. Errors
// of the transfer are *transport.Error. A branch whose files exceed the space's limits
// is a fault.TooLarge.
func (s *Store) Fetch(ctx context.Context, id space.SpaceID, e transport.Endpoint, branch string, progress func(line string)) (Fetched, error) {
	if s.o.Transport == nil {
		return Fetched{}, errNoTransport
	}
	if err := transport.CheckBranch(branch); err != nil {
		return Fetched{}, err
	}
	r, release, err := s.acquire(ctx, id)
	if err != nil {
		return Fetched{}, err
	}
	defer release()
	// The quarantine borrows objects of the space. Until the branch is tracked, no ref
	// reaches the objects that are taken from the quarantine.
	r.unreached.RLock()
	defer r.unreached.RUnlock()
	q, err := r.borrower("a fetch")
	if err != nil {
		return Fetched{}, r.internalf(err, "fetch")
	}
	defer q.Close()
	room := s.o.Limits.Repository - r.db.PackBytes()
	if room <= 0 {
		return Fetched{}, tooMuchHistory(s.o.Limits.Repository)
	}
	if progress == nil {
		progress = func(string) {}
	}
	if err := s.o.Transport.Fetch(ctx, e, q.repoDir(), branch, fetchedRef, room, progress); err != nil {
		return Fetched{}, err
	}
	if err := q.open(r.db); err != nil {
		return Fetched{}, r.internalf(err, "fetch")
	}
	tip := q.r.readOwnRef(fetchedRef)
	if !q.r.isCommit(tip) {
		return Fetched{}, fault.New(fault.Invalid, "The remote's branch %q is not a commit.", branch)
	}
	got := Fetched{Tip: packfile.CommitID(tip), Bytes: q.r.db.PackBytes()}
	if got.Bytes > room { // the transport checks only at intervals
		return Fetched{}, tooMuchHistory(s.o.Limits.Repository)
	}
	theirs, err := q.r.state(tip)
	if err != nil {
		return Fetched{}, r.internalf(err, "fetch")
	}
	// Check the tree before anything is taken, because every later walk goes through it.
	if err := r.weighTip(ctx, q.r, theirs.tree); err != nil {
		return Fetched{}, r.internalf(err, "fetch")
	}
	if err := r.takePacks(q.r.db); err != nil {
		return Fetched{}, r.internalf(err, "fetch")
	}
	s.o.probe("objects taken")
	if err := r.setTracked(branch, tip); err != nil {
		return Fetched{}, r.internalf(err, "fetch")
	}
	return got, nil
}

// fetchedRef is the ref of the remote's tip in the quarantine.
const fetchedRef = "refs/fetched"

// Push pushes the space's current head to a remote's branch, and returns that head. It
// never forces. If the remote has commits that head lacks, the error is a
// *transport.Error; call Fetch and Integrate first.
func (s *Store) Push(ctx context.Context, id space.SpaceID, e transport.Endpoint, branch string, progress func(line string)) (space.CommitID, error) {
	if s.o.Transport == nil {
		return "", errNoTransport
	}
	if err := transport.CheckBranch(branch); err != nil {
		return "", err
	}
	r, release, err := s.acquire(ctx, id)
	if err != nil {
		return "", err
	}
	defer release()
	r.unreached.RLock() // a purge must not run while commits are sent
	defer r.unreached.RUnlock()
	if progress == nil {
		progress = func(string) {}
	}
	head := r.head.Load().id
	if err := s.o.Transport.Push(ctx, e, r.dir, packfile.CommitID(head), branch, progress); err != nil {
		return "", err
	}
	s.o.probe("pushed")
	if err := r.setTracked(branch, head); err != nil {
		return "", r.internalf(err, "push")
	}
	return packfile.CommitID(head), nil
}

// borrower creates a quarantine that borrows the space's objects, so that a transfer
// brings only objects that the space lacks.
func (r *repo) borrower(label string) (*quarantine, error) {
	q, err := r.s.newQuarantine(label)
	if err != nil {
		return nil, err
	}
	info := filepath.Join(q.repoDir(), "objects", "info", "alternates")
	if err := os.WriteFile(info, []byte(filepath.ToSlash(r.db.Dir)+"\n"), 0o600); err != nil {
		q.Close()
		return nil, err
	}
	return q, nil
}

// open opens the quarantine's repository, after objects were put there. The objects of
// lender count as the quarantine's own.
func (q *quarantine) open(lender *packfile.DB) (err error) {
	r := &repo{s: q.s, id: "quarantine", dir: q.repoDir()}
	if r.db, err = packfile.Open(filepath.Join(q.repoDir(), "objects"), q.s.cache); err != nil {
		return err
	}
	r.db.Lender = lender
	q.r = r
	return nil
}

// trackedRefs is the prefix of the refs for the last known tips of the remote's branches. A
// power loss may lose the newest tips, but a ref never names a commit that the remote did
// not contain. Sandboxes do not see these refs.
const trackedRefs = trackingRefs + "origin/"

func (r *repo) refPath(ref string) string { return filepath.Join(r.dir, filepath.FromSlash(ref)) }

// readOwnRef returns the hash in a ref that only this package writes, or the zero hash if
// the ref cannot be read.
func (r *repo) readOwnRef(ref string) packfile.Hash {
	b, err := os.ReadFile(r.refPath(ref))
	if errors.Is(err, fs.ErrNotExist) {
		b = r.packedRef(ref)
	} else if err != nil {
		return packfile.Hash{}
	}
	h, err := packfile.HashFrom(string(bytes.TrimSpace(b)))
	if err != nil {
		return packfile.Hash{}
	}
	return h
}

// packedRef returns a ref's hash from the file packed-refs, where an operator's git gc may
// have put it.
func (r *repo) packedRef(ref string) []byte {
	packed, _ := os.ReadFile(filepath.Join(r.dir, "packed-refs"))
	for line := range strings.Lines(string(packed)) {
		if id, ok := strings.CutSuffix(strings.TrimSpace(line), " "+ref); ok {
			return []byte(id)
		}
	}
	return nil
}

// writeOwnRef sets a ref. It makes the file's content durable before it renames the
// file, so that a power loss leaves the old ref or the new one. If durable is set, it makes
// the rename durable too. It removes a ref whose name is in the way: the ref of a branch
// "a" is in the way of "a/b".
func (r *repo) writeOwnRef(ref string, h packfile.Hash, durable bool) error {
	name := r.refPath(ref)
	made, err := r.makeRefDirs(path.Dir(ref))
	if err != nil {
		return err
	}
	if st, err := os.Lstat(name); err == nil && st.IsDir() {
		if err := removeTree(name); err != nil {
			return err
		}
	}
	tmp, err := os.CreateTemp(filepath.Join(r.dir, "refs"), ".tmp-*")
	if err != nil {
		return err
	}
	_, err = tmp.WriteString(h.String() + "\n")
	if err == nil {
		err = r.s.o.Sync(tmp)
	}
	if err = errors.Join(err, tmp.Close()); err == nil {
		r.s.o.probe("own ref written")
		err = os.Rename(tmp.Name(), name)
	}
	if err != nil {
		os.Remove(tmp.Name())
		return err
	}
	r.s.o.probe("own ref renamed")
	if !durable {
		return nil
	}
	for _, dir := range append(made, path.Dir(ref)) {
		if err := r.s.o.disk.SyncDir(r.refPath(dir)); err != nil {
			return err
		}
	}
	return nil
}

// makeRefDirs creates the directory of a ref, and returns the directories that got a
// new entry.
func (r *repo) makeRefDirs(dir string) (changed []string, err error) {
	at := "refs"
	for seg := range strings.SplitSeq(strings.TrimPrefix(dir, "refs/"), "/") {
		next := at + "/" + seg
		st, err := os.Lstat(r.refPath(next))
		if err == nil && !st.IsDir() {
			err = errors.Join(os.Remove(r.refPath(next)), fs.ErrNotExist)
		}
		if errors.Is(err, fs.ErrNotExist) {
			changed = append(changed, at)
			err = os.Mkdir(r.refPath(next), 0o700)
		}
		if err != nil {
			return nil, err
		}
		at = next
	}
	return changed, nil
}

// setTracked records the tip of a remote's branch. The caller knows that the remote has
// the commit, and that its objects are durable here.
func (r *repo) setTracked(branch string, h packfile.Hash) error {
	r.refMu.Lock()
	defer r.refMu.Unlock()
	if r.readOwnRef(trackedRefs+branch) == h {
		return nil
	}
	return r.writeOwnRef(trackedRefs+branch, h, false)
}

// tracked returns the last known tip of a remote's branch.
func (r *repo) tracked(branch string) (packfile.Hash, bool, error) {
	if err := transport.CheckBranch(branch); err != nil {
		return packfile.Hash{}, false, err
	}
	h := r.readOwnRef(trackedRefs + branch)
	if h.IsZero() {
		return packfile.Hash{}, false, nil
	}
	if _, err := commits.Get(r.db, h); errors.Is(err, packfile.ErrNotFound) {
		return packfile.Hash{}, false, nil
	} else if err != nil {
		return packfile.Hash{}, false, r.internalf(err, "tracked commit")
	}
	return h, true, nil
}

// Tracked returns the last known tip of a remote's branch, or false if none is known.
func (s *Store) Tracked(ctx context.Context, id space.SpaceID, branch string) (space.CommitID, bool, error) {
	r, release, err := s.acquire(ctx, id)
	if err != nil {
		return "", false, err
	}
	defer release()
	h, ok, err := r.tracked(branch)
	if !ok {
		return "", false, err
	}
	return packfile.CommitID(h), true, nil
}

// Unpushed counts the commits of head that the remote's branch is not known to contain. It
// also returns the newest of these commits, at most limit, without their files.
func (s *Store) Unpushed(ctx context.Context, id space.SpaceID, branch string, limit int) (n int, newest []space.Commit, err error) {
	r, release, err := s.acquire(ctx, id)
	if err != nil {
		return 0, nil, err
	}
	defer release()
	from, _, err := r.tracked(branch)
	if err != nil {
		return 0, nil, err
	}
	head := r.head.Load().id
	if head == from {
		return 0, nil, nil
	}
	p, err := r.paint(ctx, head, from)
	if err != nil {
		return 0, nil, r.internalf(err, "count unpushed commits")
	}
	for _, d := range p.only(paintA) {
		if n++; len(newest) < limit {
			c := r.proven(d.c, d.h)
			c.Changed = true
			newest = append(newest, c)
		}
	}
	return n, newest, nil
}

// ForgetRemote removes the tracking refs of the space's remote. It removes no commit.
func (s *Store) ForgetRemote(ctx context.Context, id space.SpaceID) error {
	r, release, err := s.acquire(ctx, id)
	if err != nil {
		return err
	}
	defer release()
	r.refMu.Lock()
	defer r.refMu.Unlock()
	// Use git, because an operator's gc may have packed the refs.
	list, err := s.git.Run(ctx, gitcmd.Cmd{Dir: r.dir, GitDir: r.dir, Args: []string{"for-each-ref", "--format=delete %(refname)", trackedRefs}})
	if err == nil && len(list) > 0 {
		_, err = s.git.Run(ctx, gitcmd.Cmd{Dir: r.dir, GitDir: r.dir, Args: []string{"update-ref", "--stdin"}, Stdin: bytes.NewReader(list)})
	}
	if err != nil {
		return r.internalf(err, "forget the remote")
	}
	return nil
}

// keep creates a durable ref for a commit that no branch will reach.
func (r *repo) keep(h packfile.Hash) error {
	r.refMu.Lock()
	defer r.refMu.Unlock()
	if err := r.writeOwnRef(keptRefs+h.String(), h, true); err != nil {
		return fmt.Errorf("keep %s: %w", h, err)
	}
	return nil
}

// recoverRefs removes what a crash left of refs other than the branch: temporary files, and
// tracking refs that git would fail on, because they cannot be read or do not name a commit.
// It never removes a kept ref, which is durable before anything relies on it.
func (r *repo) recoverRefs() error {
	left, err := filepath.Glob(filepath.Join(r.dir, "refs", ".tmp-*"))
	if err != nil {
		return err
	}
	for _, name := range left {
		if err := os.Remove(name); err != nil {
			return err
		}
	}
	root := r.refPath(strings.TrimSuffix(trackedRefs, "/"))
	err = filepath.WalkDir(root, func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		rel, err := filepath.Rel(r.dir, name)
		if err != nil {
			return err
		}
		ref := filepath.ToSlash(rel)
		h := r.readOwnRef(ref)
		if !h.IsZero() && r.isCommit(h) {
			return nil
		}
		r.logger().Warn("A tracking ref of the remote is damaged and is removed; the next fetch sets it again.", "ref", ref)
		return os.Remove(name)
	})
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}
