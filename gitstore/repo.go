package gitstore

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"

	"satchel/gitstore/commits"
	"satchel/gitstore/gitcmd"
	"satchel/gitstore/packfile"
	"satchel/gitstore/trees"
	"satchel/internal/fault"
	"satchel/internal/space"
)

// branch is the one branch of a space.
const branch = "refs/heads/main"

// repoConfig is the configuration of a space's repository. Nothing in it runs a
// program. gc.auto keeps an operator's git from repacking at the same time as the
// store.
const repoConfig = `[core]
	repositoryformatversion = 0
	filemode = true
	bare = true
	logAllRefUpdates = true
[gc]
	auto = 0
[receive]
	fsckObjects = true
	denyDeletes = true
	denyNonFastForwards = true
`

// repo is one open space.
type repo struct {
	s   *Store
	id  space.SpaceID
	dir string
	db  *packfile.DB

	users   int           // callers of acquire that use the space now; guarded by Store.mu
	freed   chan struct{} // receives a value when a user releases the space
	gone    atomic.Bool   // the space is being deleted
	opened  chan struct{} // closed when openDisk has returned
	openErr error         // set before opened is closed

	// commitMu serialises commits. Reads do not take it.
	commitMu sync.Mutex
	broken   *damage // guarded by commitMu: a write that failed halfway and must be mended before the next one
	totals   *totals
	head     atomic.Pointer[headState]

	refMu sync.Mutex // guards the refs other than the branch

	loads       loads
	seeds       seeds
	maintaining sync.Mutex // held while packs are examined or replaced
	// unreached protects objects that no ref reaches yet. The code that adds them holds
	// it for reading, from the first look at the objects of the space until a ref reaches
	// the new ones. The code that removes unreachable objects holds it for writing.
	unreached sync.RWMutex
	// purges counts the purges that began to remove objects. It changes only while commitMu
	// is held.
	purges     atomic.Int64
	bundles    bundles
	reverts    chan struct{} // has one place, for the revert that is being computed
	provenance provenance
	// collected is the size of the packs at the last check that found few unreachable
	// objects in them.
	collected atomic.Int64
}

// damage is a write that failed halfway, such as on a full disk.
type damage struct {
	err error
	// logSize is the size in bytes to which the reflog must be cut. It is negative if the
	// reflog is whole, and only the branch's file is not at head.
	logSize int64
}

func (d *damage) Error() string { return d.err.Error() }
func (d *damage) Unwrap() error { return d.err }

// usable repairs what a failed write left, or returns why the space accepts no changes.
// The caller holds commitMu.
func (r *repo) usable() error {
	if r.gone.Load() {
		return errNoSpace()
	}
	if r.broken == nil {
		return nil
	}
	if err := r.mend(); err != nil {
		err = errors.Join(err, r.broken)
		if isDiskFull(err) {
			return fault.Wrap(err, fault.Unavailable, diskFullText)
		}
		return fault.Wrap(err, fault.Unavailable,
			"The space could not be written to disk, and takes no changes until it can be. The server's log has the reason.")
	}
	r.broken = nil
	return nil
}

func (r *repo) mend() error {
	if n := r.broken.logSize; n >= 0 {
		if err := r.cutLog(n); err != nil {
			return err
		}
		r.broken.logSize = -1
	}
	if head := r.head.Load().id; r.readRef() != head {
		return r.writeRef(head)
	}
	return nil
}

// cutLog cuts the branch's reflog to size bytes, durably.
func (r *repo) cutLog(size int64) error {
	f, err := os.OpenFile(r.logFile(), os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	return errors.Join(f.Truncate(size), r.s.o.Sync(f), f.Close())
}

// trees returns a reader of the space's trees.
func (r *repo) trees() trees.Reader { return trees.Reader{DB: r.db, MaxPaths: r.s.o.Limits.Walk} }

// headState is a head with its tree.
type headState struct {
	id   packfile.Hash
	tree packfile.Hash
}

// totals holds the number of files of a head and their total size.
type totals struct {
	files int
	bytes int64
}

func (r *repo) refFile() string { return filepath.Join(r.dir, filepath.FromSlash(branch)) }
func (r *repo) logFile() string { return filepath.Join(r.dir, "logs", filepath.FromSlash(branch)) }

// initBare creates an empty bare repository in dir, which must not exist.
func initBare(dir string) error {
	for _, d := range []string{"", "objects", "objects/pack", "objects/info", "refs", "refs/heads", "refs/tags", "logs", "logs/refs", "logs/refs/heads"} {
		if err := packfile.MkdirMode(filepath.Join(dir, d), 0o700); err != nil {
			return err
		}
	}
	for name, data := range map[string]string{
		"HEAD":                 "ref: " + branch + "\n",
		"config":               repoConfig,
		"logs/refs/heads/main": "",
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(data), 0o600); err != nil {
			return err
		}
	}
	return nil
}

// openDisk opens the repository and repairs what a crash left behind.
func (r *repo) openDisk(ctx context.Context) error {
	if _, err := os.Stat(filepath.Join(r.dir, "HEAD")); errors.Is(err, fs.ErrNotExist) {
		return errNoSpace()
	} else if err != nil {
		return err
	}
	if err := r.s.recoverPacks(ctx, filepath.Join(r.dir, "objects", "pack")); err != nil {
		return r.cannotOpen(err)
	}
	db, err := packfile.Open(filepath.Join(r.dir, "objects"), r.s.cache)
	if err != nil {
		return r.cannotOpen(err)
	}
	r.db = db
	if err := r.recoverHead(); err != nil {
		db.Close()
		return r.cannotOpen(err)
	}
	if err := r.recoverRefs(); err != nil {
		db.Close()
		return r.cannotOpen(err)
	}
	if err := r.recoverPurge(ctx); err != nil {
		// The space is whole. Only the removal must be tried again.
		r.logger().Error("The old objects of a purge could not be removed; it is tried again.", "error", err)
	}
	return nil
}

// cannotOpen returns the error for a space that cannot be opened. This program wrote
// the files, so the space is damaged unless the system or a limit of git caused the
// error.
func (r *repo) cannotOpen(err error) error {
	err = r.internalf(err, "open")
	var refused *fs.PathError
	var moved *os.LinkError
	switch {
	case fault.CodeOf(err) != fault.Internal, gitcmd.OutOfMemory(err), errors.Is(err, context.DeadlineExceeded):
		return err
	case errors.As(err, &refused) && !errors.Is(err, syscall.EIO) && !errors.Is(err, fs.ErrNotExist), errors.As(err, &moved):
		return err
	}
	return fault.Wrap(err, fault.Damaged, "The space is damaged on the server's disk and cannot be opened. Nothing of it was deleted. "+
		"Ask the server's operator to run satchel doctor, which says what is damaged, and then satchel space repair %s, which takes good copies from the remote or from a backup.", r.id)
}

func (r *repo) state(h packfile.Hash) (*headState, error) {
	c, err := commits.Get(r.db, h)
	if err != nil {
		return nil, err
	}
	return &headState{id: h, tree: c.Tree}, nil
}

// readRef returns the hash in the branch's file or, if there is no such file, in packed-refs.
// It returns the zero hash if there is no valid hash.
func (r *repo) readRef() packfile.Hash {
	b, err := os.ReadFile(r.refFile())
	if errors.Is(err, fs.ErrNotExist) {
		// An operator's git gc may have packed the ref.
		packed, _ := os.ReadFile(filepath.Join(r.dir, "packed-refs"))
		for line := range strings.Lines(string(packed)) {
			if id, ok := strings.CutSuffix(strings.TrimSpace(line), " "+branch); ok {
				b, err = []byte(id), nil
			}
		}
	}
	if err != nil {
		return packfile.Hash{}
	}
	h, err := packfile.HashFrom(string(bytes.TrimSpace(b)))
	if err != nil {
		return packfile.Hash{}
	}
	return h
}

// writeRef replaces the branch's file. It does not sync the file, because the reflog is
// durable. The temporary file has the name of git's own lock.
func (r *repo) writeRef(h packfile.Hash) error {
	lock := r.refFile() + ".lock"
	f, err := os.OpenFile(lock, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	_, err = f.WriteString(h.String() + "\n")
	if err = errors.Join(err, f.Close()); err == nil {
		r.s.o.probe("ref written")
		err = os.Rename(lock, r.refFile())
	}
	if err != nil {
		os.Remove(lock)
	}
	return err
}

// advance moves the branch from old to h, durably. It fails if the branch is not at
// old. The caller holds commitMu.
func (r *repo) advance(old, h packfile.Hash, who space.Person, stamp, why string) error {
	if got := r.readRef(); got.IsZero() && !old.IsZero() {
		// The branch's file is damaged or gone. Take the commit from the reflog, as when
		// the space is opened.
		logged, _, err := r.lastLogged()
		if err != nil {
			return err
		}
		if logged != old {
			return fmt.Errorf("the branch cannot be read, and its log has %s in place of %s", logged, old)
		}
		r.logger().Error("The branch's file is damaged and is written again.", "head", old)
	} else if got != old {
		return fmt.Errorf("the branch was moved from %s to %s by another program", old, got)
	}
	f, err := os.OpenFile(r.logFile(), os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o600)
	if err != nil {
		return err
	}
	defer f.Close()
	st, err := f.Stat()
	if err != nil {
		return err
	}
	line := fmt.Sprintf("%s %s %s %s\t%s\n", old, h, commits.Ident(who, "Satchel"), stamp, commits.OneLine(why, commits.MaxName))
	_, err = f.WriteString(line)
	r.s.o.probe("log written")
	if err == nil {
		err = r.s.o.Sync(f)
	}
	if err != nil {
		// The line may or may not be on disk. Remove it now, or at the latest before
		// another commit.
		if terr := r.cutLog(st.Size()); terr != nil {
			r.broken = &damage{terr, st.Size()}
		}
		return fmt.Errorf("reflog: %w", err)
	}
	r.s.o.probe("log synced")
	// From here on the commit counts, whatever happens to the ref's file.
	if err := r.writeRef(h); err != nil {
		r.broken = &damage{err, -1}
		r.s.o.Logger.Error("The branch's file could not be written; the next commit writes it again.",
			"space", r.id, "error", err)
	}
	r.s.o.probe("ref renamed")
	return nil
}

// lastLogged returns the newest commit of the reflog, and the size of the reflog's
// well-formed part in bytes.
func (r *repo) lastLogged() (h packfile.Hash, size int64, err error) {
	b, err := os.ReadFile(r.logFile())
	if errors.Is(err, fs.ErrNotExist) {
		return packfile.Hash{}, 0, nil
	}
	if err != nil {
		return packfile.Hash{}, 0, err
	}
	for len(b) > 0 {
		nl := bytes.IndexByte(b, '\n')
		if nl < 0 {
			break
		}
		fields := strings.SplitN(string(b[:nl]), " ", 3)
		if len(fields) < 3 {
			break
		}
		n, err := packfile.HashFrom(fields[1])
		if err != nil {
			break
		}
		h, size, b = n, size+int64(nl)+1, b[nl+1:]
	}
	return h, size, nil
}
