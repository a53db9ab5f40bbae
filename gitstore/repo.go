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

	"github.com/go-git/go-git/v5/plumbing"

	"satchel/internal/fault"
	"satchel/internal/space"
)

// branch is the one branch of a space.
const branch = "refs/heads/main"

// repoConfig is the configuration of a bare repository. Nothing in it runs a
// program; gc.auto keeps an operator's git from repacking beside us.
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
	db  *objectDB

	users   int           // of acquire, under Store.mu
	opened  chan struct{} // closed when openDisk has ended
	openErr error         // before opened is closed

	// commitMu serialises commits. Reads do not take it.
	commitMu sync.Mutex
	broken   error // under commitMu: why the space takes no more commits until it is opened again
	totals   *totals
	head     atomic.Pointer[headState]

	seeds       seeds
	maintaining sync.Mutex // held by a run of Maintain
}

// headState is a head with its tree.
type headState struct {
	id   hash
	tree hash
}

// totals are what head holds.
type totals struct {
	files int
	bytes int64
}

func (r *repo) refFile() string { return filepath.Join(r.dir, filepath.FromSlash(branch)) }
func (r *repo) logFile() string { return filepath.Join(r.dir, "logs", filepath.FromSlash(branch)) }

// initBare lays out an empty bare repository in dir, which must not exist.
func initBare(dir string) error {
	for _, d := range []string{"", "objects", "objects/pack", "objects/info", "refs", "refs/heads", "refs/tags", "logs", "logs/refs", "logs/refs/heads"} {
		if err := mkdirMode(filepath.Join(dir, d), 0o700); err != nil {
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

// openDisk opens the repository and puts right what a crash left behind.
func (r *repo) openDisk(ctx context.Context) error {
	if _, err := os.Stat(filepath.Join(r.dir, "HEAD")); errors.Is(err, fs.ErrNotExist) {
		return fault.New(fault.NotFound, "There is no such space.")
	} else if err != nil {
		return err
	}
	if err := r.s.recoverPacks(ctx, filepath.Join(r.dir, "objects", "pack")); err != nil {
		return r.internalf(err, "open")
	}
	db, err := openObjects(filepath.Join(r.dir, "objects"), r.s.cache)
	if err != nil {
		return r.internalf(err, "open")
	}
	r.db = db
	if err := r.recoverHead(); err != nil {
		db.close()
		return r.internalf(err, "open")
	}
	return nil
}

// rawCommit reads a commit.
func (r *repo) rawCommit(h hash) (rawCommit, error) {
	o, err := r.db.read(h)
	if err != nil {
		return rawCommit{}, err
	}
	if o.kind != plumbing.CommitObject {
		return rawCommit{}, fmt.Errorf("object %s is a %s, not a commit", h, o.kind)
	}
	return parseCommit(o.data)
}

func (r *repo) state(h hash) (*headState, error) {
	c, err := r.rawCommit(h)
	if err != nil {
		return nil, err
	}
	return &headState{id: h, tree: c.tree}, nil
}

// readRef returns the branch's commit as the file says it; the zero hash where
// there is none that can be read.
func (r *repo) readRef() hash {
	b, err := os.ReadFile(r.refFile())
	if errors.Is(err, fs.ErrNotExist) {
		// An operator's git gc may have packed it.
		packed, _ := os.ReadFile(filepath.Join(r.dir, "packed-refs"))
		for line := range strings.Lines(string(packed)) {
			if id, ok := strings.CutSuffix(strings.TrimSpace(line), " "+branch); ok {
				b, err = []byte(id), nil
			}
		}
	}
	if err != nil {
		return hash{}
	}
	h, err := hashFrom(string(bytes.TrimSpace(b)))
	if err != nil {
		return hash{}
	}
	return h
}

// writeRef replaces the branch's file. It is not made durable: the reflog is.
// The name of the temporary file is that of git's own lock.
func (r *repo) writeRef(h hash) error {
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

// advance moves the branch from old to h, durably, where it still is at old.
// The caller holds commitMu.
func (r *repo) advance(old, h hash, who space.Person, stamp, why string) error {
	if got := r.readRef(); got != old {
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
	line := fmt.Sprintf("%s %s %s %s\t%s\n", old, h, ident(who, "Satchel"), stamp, oneLine(why, maxName))
	_, err = f.WriteString(line)
	r.s.o.probe("log written")
	if err == nil {
		err = r.s.o.Sync(f)
	}
	if err != nil {
		// Whether the line is on disk is unknown now: take it back, or take no
		// more commits until the space is opened again.
		if terr := errors.Join(f.Truncate(st.Size()), r.s.o.Sync(f)); terr != nil {
			r.broken = terr
		}
		return fmt.Errorf("reflog: %w", err)
	}
	r.s.o.probe("log synced")
	// From here on the commit stands, whatever happens to the ref's file.
	if err := r.writeRef(h); err != nil {
		r.broken = err
		r.s.o.Logger.Error("The branch's file could not be written; it is put right when the space is opened again.",
			"space", r.id, "error", err)
	}
	r.s.o.probe("ref renamed")
	return nil
}

// lastLogged returns the newest commit of the reflog, and the size of its
// well-formed part.
func (r *repo) lastLogged() (h hash, size int64, err error) {
	b, err := os.ReadFile(r.logFile())
	if errors.Is(err, fs.ErrNotExist) {
		return hash{}, 0, nil
	}
	if err != nil {
		return hash{}, 0, err
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
		n, err := hashFrom(fields[1])
		if err != nil {
			break
		}
		h, size, b = n, size+int64(nl)+1, b[nl+1:]
	}
	return h, size, nil
}
