package gitstore

import (
	"context"
	"os"
	"path/filepath"

	"satchel/gitstore/packfile"
	"satchel/gitstore/transport"
	"satchel/internal/fault"
	"satchel/internal/space"
)

// Transport moves commits between a repository on disk and a remote.
// *transport.Client is one, which says more about each method.
type Transport interface {
	// Fetch brings a branch's commits into the repository at gitDir, checked by
	// git's fsck, and sets the ref into. More than limit bytes are an error.
	Fetch(ctx context.Context, e transport.Endpoint, gitDir, branch, into string, limit int64, progress func(string)) error
	// Push makes a commit of the repository the branch's tip, where that is an
	// ancestor of it.
	Push(ctx context.Context, e transport.Endpoint, gitDir string, commit space.CommitID, branch string, progress func(string)) error
}

var _ Transport = (*transport.Client)(nil)

// Fetched is what Fetch brought.
type Fetched struct {
	Tip   space.CommitID // of the remote's branch
	Bytes int64          // of the packs that came
}

var errNoTransport = fault.New(fault.Unavailable, "This server has no remotes.")

// Fetch brings the commits of a remote's branch into the space's repository,
// where they are durable when it returns, and notes where the branch is. Head
// does not move: that is Integrate's part. What comes is received and checked
// in a quarantine, so that a transfer that fails or is refused leaves nothing.
// progress, which may be nil, is told lines for people. Errors of the transfer
// are *transport.Error; a branch whose files are over the space's limits is a
// fault.TooLarge.
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
	// The quarantine borrows objects of the space, and what is taken from it is
	// reached by no ref until it is tracked.
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
	if got.Bytes > room { // the transport looks only now and then
		return Fetched{}, tooMuchHistory(s.o.Limits.Repository)
	}
	theirs, err := q.r.state(tip)
	if err != nil {
		return Fetched{}, r.internalf(err, "fetch")
	}
	// Before anything of it is taken: what is once in the repository is walked
	// through again and again.
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

// fetchedRef is where a fetch puts the remote's tip in the quarantine.
const fetchedRef = "refs/fetched"

// Push gives a remote's branch the space's head, as that is when it is called,
// and returns it. It is never forced: where the remote has commits that head
// has not, the error is a *transport.Error, and Fetch and Integrate come first.
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
	r.unreached.RLock() // a purge must not run beside what sends its commits
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

// borrower makes a quarantine that reads the space's objects as its own, so
// that a transfer brings only what the space has not.
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

// open opens a quarantine whose objects are in; those of lender count as its
// own.
func (q *quarantine) open(lender *packfile.DB) (err error) {
	r := &repo{s: q.s, id: "quarantine", dir: q.repoDir()}
	if r.db, err = packfile.Open(filepath.Join(q.repoDir(), "objects"), q.s.cache); err != nil {
		return err
	}
	r.db.Lender = lender
	q.r = r
	return nil
}
