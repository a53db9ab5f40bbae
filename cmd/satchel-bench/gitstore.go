//go:build linux

package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"time"

	"satchel/gitstore"
	"satchel/gitstore/transport"
	"satchel/internal/procmem"
	"satchel/internal/space"
)

// gitstoreSuite measures what a space does with its repository: commits, and
// transfers from and to a git server on loopback, each beside what a person
// would do with git.
func gitstoreSuite(ctx context.Context, b *bench) error {
	return b.steps(ctx,
		step{"commit", benchCommit},
		step{"clone", benchClone},
		step{"push", benchPush},
	)
}

var author = space.Person{Name: "Ada", Email: "ada@example.com"}

// remoteSpace is a store with one space, and how it reaches a remote.
type remoteSpace struct {
	store  *gitstore.Store
	client *transport.Client
	id     space.SpaceID
	remote transport.Endpoint
}

func openRemoteSpace(ctx context.Context, dir, url string, first space.ChangeSet) (*remoteSpace, error) {
	client := transport.New(transport.Options{})
	store, err := gitstore.Open(gitstore.Options{Dir: dir, Transport: client})
	if err != nil {
		return nil, errors.Join(err, client.Close())
	}
	s := &remoteSpace{store, client, space.NewSpaceID(), transport.Endpoint{URL: url, Trusted: true}}
	if _, err := store.Create(ctx, s.id, first, space.Meta{Author: author}); err != nil {
		return nil, errors.Join(err, s.close())
	}
	return s, nil
}

func (s *remoteSpace) close() error { return errors.Join(s.store.Close(), s.client.Close()) }

// clone brings a new space to what the remote has.
func (s *remoteSpace) clone(ctx context.Context) error {
	got, err := s.store.Fetch(ctx, s.id, s.remote, "main", nil)
	if err != nil {
		return err
	}
	_, err = s.store.Integrate(ctx, s.id, got.Tip, space.Meta{Author: author})
	return err
}

// cloneSpace is the program of which the memory of a clone is taken.
func cloneSpace(ctx context.Context, dir, url string) error {
	s, err := openRemoteSpace(ctx, dir, url, space.ChangeSet{})
	if err != nil {
		return err
	}
	return errors.Join(s.clone(ctx), s.close())
}

// benchClone makes a space of a remote's 10,000 files, beside git clone from the
// same server, with and without the files written out. Cloning here means: the
// objects received, checked by fsck and durable, and the space's head on them.
func benchClone(ctx context.Context, b *bench) error {
	files := b.size(10_000)
	work, err := b.corpusRepository(ctx, "clone-work", files, 2000)
	if err != nil {
		return err
	}
	srv, err := serveGit(filepath.Join(b.dir, "clone-remote"))
	if err != nil {
		return err
	}
	defer srv.close()
	if err := srv.create(ctx, "docs"); err != nil {
		return err
	}
	url := srv.url("docs")
	if err := runGit(ctx, work, "push", "-q", url, "main"); err != nil {
		return err
	}
	if err := runGit(ctx, srv.dir("docs"), "repack", "-adq"); err != nil {
		return err
	}

	var ours, written, theirs, bare times
	var bytes float64
	for i := range b.runs(5) + 1 {
		dir := filepath.Join(b.dir, fmt.Sprintf("clone-%d", i))
		s, err := openRemoteSpace(ctx, filepath.Join(dir, "store"), url, space.ChangeSet{})
		if err != nil {
			return err
		}
		err = written.add(func() error {
			if err := ours.add(func() error { return s.clone(ctx) }); err != nil {
				return err
			}
			return s.store.Warm(ctx, s.id)
		})
		st, serr := s.store.Stats(ctx, s.id)
		if err := errors.Join(err, serr, s.close()); err != nil {
			return err
		}
		if st.Files != files {
			return fmt.Errorf("the clone has %d files, not %d", st.Files, files)
		}
		bytes = float64(st.PackBytes)
		if err := theirs.add(func() error { return runGit(ctx, b.dir, "clone", "-q", url, filepath.Join(dir, "git")) }); err != nil {
			return err
		}
		if err := bare.add(func() error {
			return runGit(ctx, b.dir, "clone", "-q", "--bare", url, filepath.Join(dir, "bare"))
		}); err != nil {
			return err
		}
		if err := os.RemoveAll(dir); err != nil {
			return err
		}
		if i == 0 {
			ours, written, theirs, bare = nil, nil, nil, nil
		}
	}
	b.versus("clone_10k", ours.median(), "ms", "git clone", theirs.median())
	b.versus("clone_10k_written", written.median(), "ms", "git clone", theirs.median())
	b.versus("clone_10k_bare", ours.median(), "ms", "git clone --bare", bare.median())
	b.alone("clone_10k_speed", bytes/1e3/ours.median(), "MB/s")

	var mine, gits []float64
	for i := range b.runs(3) {
		dir := filepath.Join(b.dir, fmt.Sprintf("clone-memory-%d", i))
		peak, err := peakMemory(exec.CommandContext(ctx, b.self, cloneCommand, filepath.Join(dir, "store"), url))
		if err != nil {
			return err
		}
		mine = append(mine, peak)
		if peak, err = peakMemory(exec.CommandContext(ctx, "git", "clone", "-q", url, filepath.Join(dir, "git"))); err != nil {
			return err
		}
		gits = append(gits, peak)
		if err := os.RemoveAll(dir); err != nil {
			return err
		}
	}
	b.versus("rss_clone_10k", middle(mine), "MB", "git clone", middle(gits))
	return nil
}

// peakMemory runs a program and returns the most that it and its children used
// together, in MB.
func peakMemory(cmd *exec.Cmd) (float64, error) {
	var diag lockedBuffer
	cmd.Stderr = &diag
	if err := cmd.Start(); err != nil {
		return 0, err
	}
	done := make(chan error, 1)
	go func() { done <- cmd.Wait() }()
	var peak int64
	tick := time.NewTicker(2 * time.Millisecond)
	defer tick.Stop()
	for {
		select {
		case err := <-done:
			if err != nil {
				err = fmt.Errorf("%s: %w: %s", cmd, err, diag.String())
			}
			return float64(peak) / 1e6, err
		case <-tick.C:
			pids := append(procmem.Descendants(cmd.Process.Pid), cmd.Process.Pid)
			peak = max(peak, procmem.Of(pids...).PSS)
		}
	}
}

// benchPush sends a space of 10,000 files to an empty remote, and then 1,000
// commits of one file each, beside git push from a clone of the space.
func benchPush(ctx context.Context, b *bench) error {
	files, commits := b.size(10_000), b.size(10_000)/10
	srv, err := serveGit(filepath.Join(b.dir, "push-remote"))
	if err != nil {
		return err
	}
	defer srv.close()
	tree, w := corpusChanges(files, 2000), newWords(2)
	var first, firstGit, more, moreGit times
	var firstBytes, moreBytes float64
	for i := range b.runs(5) + 1 {
		dir := filepath.Join(b.dir, fmt.Sprintf("push-%d", i))
		mine, plain := fmt.Sprintf("mine-%d", i), fmt.Sprintf("git-%d", i)
		if err := errors.Join(srv.create(ctx, mine), srv.create(ctx, plain)); err != nil {
			return err
		}
		s, err := openRemoteSpace(ctx, filepath.Join(dir, "store"), srv.url(mine), tree)
		if err != nil {
			return err
		}
		clone := filepath.Join(dir, "clone")
		push := func(ours, theirs *times) (received float64, err error) {
			if _, err := os.Stat(clone); err == nil {
				err = runGit(ctx, clone, "pull", "-q", "origin", "main")
				if err != nil {
					return 0, err
				}
			} else if err := runGit(ctx, dir, "clone", "-q", "file://"+filepath.Join(dir, "store", string(s.id)+".git"), clone); err != nil {
				return 0, err
			}
			before := srv.received.Load()
			if err := ours.add(func() error {
				_, err := s.store.Push(ctx, s.id, s.remote, "main", nil)
				return err
			}); err != nil {
				return 0, err
			}
			received = float64(srv.received.Load() - before)
			return received, theirs.add(func() error { return runGit(ctx, clone, "push", "-q", srv.url(plain), "main") })
		}
		if firstBytes, err = push(&first, &firstGit); err == nil {
			if err = s.commitEach(ctx, w, commits); err == nil {
				moreBytes, err = push(&more, &moreGit)
			}
		}
		if err := errors.Join(err, s.close(), os.RemoveAll(dir)); err != nil {
			return err
		}
		if i == 0 {
			first, firstGit, more, moreGit = nil, nil, nil, nil
		}
	}
	b.versus("push_10k", first.median(), "ms", "git push", firstGit.median())
	b.alone("push_10k_speed", firstBytes/1e3/first.median(), "MB/s")
	b.versus("push_1000_commits", more.median(), "ms", "git push", moreGit.median())
	b.alone("push_commits_per_second", float64(commits)/more.median()*1e3, "commits/s")
	b.alone("push_1000_commits_speed", moreBytes/1e3/more.median(), "MB/s")
	return nil
}

// commitEach changes one page after the other, each in a commit of its own.
func (s *remoteSpace) commitEach(ctx context.Context, w *words, n int) error {
	for i := range n {
		base, mode, _, err := s.store.Blob(ctx, s.id, "", space.Path(pagePath(i)))
		if err != nil {
			return err
		}
		cs := space.ChangeSet{Changes: []space.Change{{Path: pagePath(i), Content: []byte(w.page(i, 2000)), Base: base, BaseMode: mode}}}
		if _, err := s.store.Commit(ctx, s.id, cs, space.Meta{Author: author, Message: "x"}); err != nil {
			return err
		}
	}
	return nil
}
