//go:build linux

package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"satchel/gitstore"
	"satchel/gitstore/transport"
	"satchel/internal/space"
)

// gitstoreSuite compares commits, and a clone from a git server on loopback, with git.
func gitstoreSuite(ctx context.Context, b *bench) error {
	return b.steps(ctx,
		step{"commit", benchCommit},
		step{"clone", benchClone},
	)
}

var author = space.Person{Name: "Ada", Email: "ada@example.com"}

// remoteSpace is a store with one space, and the client and address for its remote.
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

// clone fetches the remote's branch main into a new space.
func (s *remoteSpace) clone(ctx context.Context) error {
	got, err := s.store.Fetch(ctx, s.id, s.remote, "main", nil)
	if err != nil {
		return err
	}
	_, err = s.store.Integrate(ctx, s.id, got.Tip, space.Meta{Author: author})
	return err
}

// benchClone clones a remote with 10,000 files into a space, and compares this with git clone
// from the same server. The time of a clone includes receiving the objects, checking them as fsck
// does, and making the objects and the head durable.
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

	var ours, theirs times
	for i := range b.runs(5) + 1 {
		dir := filepath.Join(b.dir, fmt.Sprintf("clone-%d", i))
		s, err := openRemoteSpace(ctx, filepath.Join(dir, "store"), url, space.ChangeSet{})
		if err != nil {
			return err
		}
		err = ours.add(func() error { return s.clone(ctx) })
		st, serr := s.store.Stats(ctx, s.id)
		if err := errors.Join(err, serr, s.close()); err != nil {
			return err
		}
		if st.Files != files {
			return fmt.Errorf("the clone has %d files, not %d", st.Files, files)
		}
		if err := theirs.add(func() error { return runGit(ctx, b.dir, "clone", "-q", url, filepath.Join(dir, "git")) }); err != nil {
			return err
		}
		if err := os.RemoveAll(dir); err != nil {
			return err
		}
		if i == 0 {
			ours, theirs = nil, nil // the first run only warms the caches
		}
	}
	b.versus("clone_10k", ours.median(), "ms", "git clone", theirs.median())
	return nil
}
