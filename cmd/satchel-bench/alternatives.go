//go:build linux

package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
)

// detached starts a container of plain runsc over a directory, in which exec
// runs commands until end is called.
func (b *bench) detached(ctx context.Context, id, work string) (r *runsc, end func(), err error) {
	if r, err = b.newRunsc(id+"-runsc", work, "/usr/bin/sleep", "3600"); err != nil {
		return nil, nil, err
	}
	if err := r.do(ctx, "run", "--detach", "--bundle", r.bundle, id); err != nil {
		return nil, nil, err
	}
	return r, func() { _ = r.do(context.WithoutCancel(ctx), "delete", "--force", id) }, nil
}

// exec runs a command in a container that runs.
func (r *runsc) exec(ctx context.Context, id, command string) error {
	return r.do(ctx, "exec", id, "/usr/bin/bash", "-c", command)
}

// perSession does for each command what a tool without a server does for each
// session: it clones the space, starts a fresh sandbox over the clone, and
// pushes what was written.
type perSession struct {
	b      *bench
	name   string
	remote string
	n      int
}

func (b *bench) newPerSession(ctx context.Context, name, from string) (*perSession, error) {
	p := &perSession{b: b, name: name, remote: filepath.Join(b.dir, name+".git")}
	return p, runGit(ctx, b.dir, "clone", "-q", "--bare", "file://"+from, p.remote)
}

// run is called by one goroutine at a time.
func (p *perSession) run(ctx context.Context, t task) error {
	p.n++
	name := fmt.Sprintf("%s-%d", p.name, p.n)
	clone := filepath.Join(p.b.dir, name)
	if err := runGit(ctx, p.b.dir, "clone", "-q", "file://"+p.remote, clone); err != nil {
		return err
	}
	r, err := p.b.newRunsc(name+"-runsc", clone, "/usr/bin/bash", "-c", t.command)
	if err != nil {
		return err
	}
	if err := r.do(ctx, "run", "--bundle", r.bundle, "session"); err != nil || !t.writes {
		return err
	}
	if err := commitAll(ctx, clone, false); err != nil {
		return err
	}
	return runGit(ctx, clone, "push", "-q", "origin", "main")
}

// mkdir makes a directory of the scratch space.
func (b *bench) mkdir(name string) (string, error) {
	dir := filepath.Join(b.dir, name)
	return dir, os.MkdirAll(dir, 0o755)
}

// corpusRepository makes a git repository of n pages of about size bytes.
func (b *bench) corpusRepository(ctx context.Context, name string, n, size int) (string, error) {
	dir, err := b.mkdir(name)
	if err != nil {
		return "", err
	}
	if err := makeCorpus(dir, n, size); err != nil {
		return "", err
	}
	return dir, commitAll(ctx, dir, true)
}
