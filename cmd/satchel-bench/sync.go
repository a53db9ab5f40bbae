//go:build linux

package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"time"

	"satchel/internal/procmem"
	"satchel/internal/space"
)

// syncSuite measures sources that follow git repositories.
func syncSuite(ctx context.Context, b *bench) error {
	return b.steps(ctx,
		step{"syncs", benchSync},
		step{"a part of a large repository", benchSyncPart},
		step{"many sources", benchSyncMany},
	)
}

// syncRepository serves a repository of documentation. It has Nuxt's from the directory that the
// environment variable LARGE_TESTDATA names, or else 300 generated pages.
func (b *bench) syncRepository(ctx context.Context) (*gitServer, error) {
	work := filepath.Join(b.dir, "upstream-work")
	if err := os.MkdirAll(work, 0o700); err != nil {
		return nil, err
	}
	archive := filepath.Join(os.Getenv("LARGE_TESTDATA"), "docs", "nuxt.tar.gz")
	if _, err := os.Stat(archive); err == nil {
		if out, err := exec.CommandContext(ctx, "tar", "-xzf", archive, "-C", work, "--strip-components=1").CombinedOutput(); err != nil {
			return nil, fmt.Errorf("unpack %s: %w: %s", archive, err, out)
		}
	} else if err := makeCorpus(filepath.Join(work, "docs"), 300, 5000); err != nil {
		return nil, err
	}
	return b.serveWork(ctx, work)
}

// serveWork serves a directory as the repository docs. The server supports partial clones, as
// the large git hosts do.
func (b *bench) serveWork(ctx context.Context, work string) (*gitServer, error) {
	if err := commitAll(ctx, work, true); err != nil {
		return nil, err
	}
	g, err := serveGit(filepath.Join(b.dir, "upstream"))
	if err != nil {
		return nil, err
	}
	err = g.create(ctx, "docs")
	for _, args := range [][]string{{"push", "-q", g.dir("docs"), "main"}, {"--git-dir=" + g.dir("docs"), "config", "uploadpack.allowFilter", "true"}} {
		if err == nil {
			err = runGit(ctx, work, args...)
		}
	}
	if err != nil {
		g.close()
		return nil, err
	}
	return g, nil
}

// syncAnswer is the part of a command's answer that is measured.
type syncAnswer struct {
	Run struct {
		State          space.SyncState
		Problem        string
		Started, Ended time.Time
	}
}

func (s *server) sync(ctx context.Context, want space.SyncState, args ...string) (time.Duration, error) {
	var a syncAnswer
	if err := s.admin(ctx, &a, append([]string{"source"}, args...)...); err != nil {
		return 0, err
	}
	if a.Run.State != want {
		return 0, fmt.Errorf("the sync is %s: %s", a.Run.State, a.Run.Problem)
	}
	return a.Run.Ended.Sub(a.Run.Started), nil
}

// cloneAndCopy clones a repository and copies its files, as the alternative to a sync.
func (b *bench) cloneAndCopy(ctx context.Context, url, under string, n int) error {
	dir, to := filepath.Join(b.dir, fmt.Sprint("clone", n)), filepath.Join(b.dir, fmt.Sprint("copy", n))
	if err := runGit(ctx, b.dir, "clone", "-q", url, dir); err != nil {
		return err
	}
	return exec.CommandContext(ctx, "cp", "-r", filepath.Join(dir, under), to).Run()
}

// benchSync measures first syncs, and syncs without changes.
func benchSync(ctx context.Context, b *bench) error {
	g, err := b.syncRepository(ctx)
	if err != nil {
		return err
	}
	defer g.close()
	s, c, err := b.serveOne(ctx, "sync", noSpare)
	if err != nil {
		return err
	}
	defer s.stop()
	defer c.close()
	var ours, theirs, same times
	for n := range b.runs(20) {
		took, err := s.sync(ctx, space.SyncReady, "add", g.url("docs"), "--id", fmt.Sprint("docs", n), "--every", "0")
		if err != nil {
			return err
		}
		ours = append(ours, took)
		if err := theirs.add(func() error { return b.cloneAndCopy(ctx, g.url("docs"), "", n) }); err != nil {
			return err
		}
		if took, err = s.sync(ctx, space.SyncUnchanged, "sync", fmt.Sprint("docs", n)); err != nil {
			return err
		}
		same = append(same, took)
	}
	b.versus("sync_cold", ours.median(), "ms", "git clone && cp -r", theirs.median())
	b.alone("sync_same", same.median(), "ms")
	return nil
}

// benchSyncPart syncs 20 pages of a repository of 40 MB.
func benchSyncPart(ctx context.Context, b *bench) error {
	work := filepath.Join(b.dir, "large-work")
	if err := errors.Join(makeCorpus(filepath.Join(work, "docs"), 20, 5000), makeCorpus(filepath.Join(work, "src"), b.size(2000), 20_000)); err != nil {
		return err
	}
	g, err := b.serveWork(ctx, work)
	if err != nil {
		return err
	}
	defer g.close()
	s, c, err := b.serveOne(ctx, "part", noSpare)
	if err != nil {
		return err
	}
	defer s.stop()
	defer c.close()
	var ours, theirs times
	var ourBytes, theirBytes int64
	for n := range b.runs(5) {
		g.sent.Store(0)
		took, err := s.sync(ctx, space.SyncReady, "add", g.url("docs"), "--id", fmt.Sprint("part", n), "--every", "0", "--set", "content_path=docs")
		if err != nil {
			return err
		}
		ours, ourBytes = append(ours, took), g.sent.Swap(0)
		if err := theirs.add(func() error { return b.cloneAndCopy(ctx, g.url("docs"), "docs", n) }); err != nil {
			return err
		}
		theirBytes = g.sent.Load()
	}
	b.versus("sync_part", ours.median(), "ms", "git clone && cp -r", theirs.median())
	b.versus("sync_part_bytes", float64(ourBytes)/1e6, "MB", "git clone", float64(theirBytes)/1e6)
	return nil
}

// benchSyncMany measures how much more memory a server needs for 25 syncs at once than when idle.
func benchSyncMany(ctx context.Context, b *bench) error {
	g, err := b.syncRepository(ctx)
	if err != nil {
		return err
	}
	defer g.close()
	s, c, err := b.serveOne(ctx, "many", noSpare)
	if err != nil {
		return err
	}
	defer s.stop()
	defer c.close()
	time.Sleep(rest)
	pid := s.cmd.Process.Pid
	memory := func() float64 { return float64(procmem.Of(append(procmem.Descendants(pid), pid)...).PSS) / 1e6 }
	idle := memory()
	const sources = 25
	errs := make([]error, sources)
	var adding sync.WaitGroup
	for n := range sources {
		adding.Go(func() {
			_, errs[n] = s.sync(ctx, space.SyncReady, "add", g.url("docs"), "--id", fmt.Sprint("many", n), "--every", "0")
		})
	}
	done := make(chan struct{})
	go func() { adding.Wait(); close(done) }()
	most := idle
	for running := true; running; {
		select {
		case <-done:
			running = false
		case <-time.After(20 * time.Millisecond):
		}
		most = max(most, memory())
	}
	b.alone("sync_25_memory", most-idle, "MB")
	return errors.Join(errs...)
}
