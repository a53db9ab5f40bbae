//go:build linux

package main

import (
	"context"
	"os"
	"path/filepath"
	"time"

	"satchel/gitstore"
	"satchel/internal/space"
)

func commitAll(ctx context.Context, dir string, fresh bool) error {
	steps := [][]string{{"add", "-A"}, {"-c", "user.name=Ada", "-c", "user.email=ada@example.com", "commit", "-q", "-m", "x"}}
	if fresh {
		steps = append([][]string{{"init", "-q", "-b", "main"}}, steps...)
	}
	for _, args := range steps {
		if err := runGit(ctx, dir, args...); err != nil {
			return err
		}
	}
	return nil
}

// benchCommit measures durable commits of one changed file in a space of 10,000 files.
func benchCommit(ctx context.Context, b *bench) error {
	files := b.size(10_000)
	dir, err := b.corpusRepository(ctx, "commit-corpus", files, 2000)
	if err != nil {
		return err
	}
	fsyncs := 0
	for _, slow := range []time.Duration{0, 2 * time.Millisecond} {
		store, err := gitstore.Open(gitstore.Options{Dir: filepath.Join(b.dir, "commit-store", slow.String()), Sync: func(f *os.File) error {
			fsyncs++
			time.Sleep(slow) // simulates a disk with a slow fsync
			return f.Sync()
		}})
		if err != nil {
			return err
		}
		defer store.Close()
		id := space.NewSpaceID()
		if _, err := store.Create(ctx, id, corpusChanges(files, 2000), space.Meta{Author: author}); err != nil {
			return err
		}
		w := newWords(2) // another seed, so that the pages change
		fsyncs = 0
		var ours, theirs times
		n := b.runs(100)
		for i := range n {
			path := pagePath(i)
			content := []byte(w.page(i, 2000))
			head, err := store.Head(ctx, id)
			if err != nil {
				return err
			}
			base, mode, _, err := store.Blob(ctx, id, head, space.Path(path))
			if err != nil {
				return err
			}
			cs := space.ChangeSet{Changes: []space.Change{{Path: path, Content: content, Base: base, BaseMode: mode}}}
			if err := ours.add(func() error {
				_, err := store.Commit(ctx, id, cs, space.Meta{Author: author, Message: "x"})
				return err
			}); err != nil {
				return err
			}
			if slow > 0 {
				continue
			}
			if err := os.WriteFile(filepath.Join(dir, path), content, 0o644); err != nil {
				return err
			}
			if err := theirs.add(func() error { return commitAll(ctx, dir, false) }); err != nil {
				return err
			}
		}
		if slow == 0 {
			b.versus("commit_p50", ours.median(), "ms", "git add -A && git commit", theirs.median())
			b.alone("commit_fsyncs", float64(fsyncs)/float64(n), "fsyncs")
		} else {
			b.alone("commit_slow_disk_p50", ours.median(), "ms")
		}
	}
	return nil
}
