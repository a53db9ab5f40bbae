package rootfs

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"

	"satchel/internal/fault"
)

// Build makes a root file system beside Options.Dir and moves it there once it
// is whole and checked. Errors are fault.Invalid for wrong options,
// fault.Conflict where the directory exists, fault.Unavailable where a program
// is missing or failed, and what Options.Check says.
func Build(ctx context.Context, o Options) (r Result, err error) {
	began := time.Now()
	if o, err = o.withDefaults(); err != nil {
		return Result{}, err
	}
	old, err := replaced(o)
	if err != nil {
		return Result{}, err
	}
	t, err := findTool(o)
	if err != nil {
		return Result{}, err
	}
	a, err := findArchives(o.AptDir, o.Suite, o.Mirror)
	if err != nil {
		return Result{}, err
	}
	dir, err := os.MkdirTemp(filepath.Dir(o.Dir), "."+filepath.Base(o.Dir)+".building-")
	if err != nil {
		return Result{}, fault.Wrap(err, fault.Invalid, "Nothing can be made beside %s: %v.", o.Dir, err)
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	if err := os.Chmod(dir, 0o755); err != nil {
		return Result{}, err
	}
	r = Result{Dir: o.Dir, Suite: o.Suite, Mirror: shownURL(a.mirror), Tool: t.name}
	for _, u := range a.updates {
		r.Security = r.Security || u.suite == o.Suite+"-security"
	}
	o.Progress(fmt.Sprintf("Making Debian %s with %s from %s", o.Suite, t.name, r.Mirror), false)
	if err := t.install(ctx, o, a, dir); err != nil {
		return Result{}, err
	}
	if err := r.finish(o, dir); err != nil {
		return Result{}, err
	}
	if err := ctx.Err(); err != nil {
		return Result{}, err
	}
	if r.Kept, err = putInPlace(dir, o.Dir, old); err != nil {
		return Result{}, err
	}
	r.Took = time.Since(began)
	return r, nil
}

// finish strips, counts and checks what was installed.
func (r *Result) finish(o Options, dir string) (err error) {
	o.Progress("Taking out what sandboxes have no use for", false)
	if r.Packages, err = installed(dir); err != nil {
		return err
	}
	if r.Unpacked, _, _, err = measure(dir); err != nil {
		return err
	}
	if err := strip(dir, o.Epoch); err != nil {
		return err
	}
	if r.Size, r.Files, r.Digest, err = measure(dir); err != nil {
		return err
	}
	if o.Check == nil {
		return nil
	}
	o.Progress("Running a sandbox over it", false)
	r.Found, err = o.Check(dir)
	return err
}

// replaced tells whether there is a directory to be replaced.
func replaced(o Options) (bool, error) {
	fi, err := os.Lstat(o.Dir)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return false, nil
	case err != nil:
		return false, fault.Wrap(err, fault.Invalid, "%s cannot be built: %v.", o.Dir, err)
	case !fi.IsDir():
		return false, fault.New(fault.Conflict, "%s exists and is no directory.", o.Dir)
	case !isRoot(o.Dir): // nothing of it is taken over
		return false, fault.New(fault.Conflict, "%s exists and is no root file system. Name another directory.", o.Dir)
	case !o.Replace:
		return false, fault.New(fault.Conflict, "%s exists. Name another directory, or replace it with --replace.", o.Dir)
	}
	return true, mayRemove(keptAt(o.Dir))
}

// isRoot tells whether a directory, which is no link to one, holds a root file
// system: one is replaced and removed, anything else is somebody's own.
func isRoot(dir string) bool {
	fi, err := os.Lstat(dir)
	if err != nil || !fi.IsDir() {
		return false
	}
	_, err = os.Stat(filepath.Join(dir, "usr/bin/bash"))
	return err == nil
}

// keptAt is where the directory that another one replaces is kept.
func keptAt(dir string) string { return dir + ".old" }

// mayRemove refuses to make room where there is anything but a root file system.
func mayRemove(old string) error {
	if _, err := os.Lstat(old); errors.Is(err, fs.ErrNotExist) || isRoot(old) {
		return nil
	}
	return fault.New(fault.Conflict,
		"What is replaced is kept as %s, and the one that is there is removed; but %[1]s is no root file system. Move it away, or name another directory.", old)
}

// putInPlace moves a finished directory to its name, in one step also where it
// replaces another one, which becomes name.old: a server may lend it out still.
func putInPlace(dir, name string, old bool) (kept string, err error) {
	if err := syncAll(dir); err != nil {
		return "", fmt.Errorf("writing it to the disk: %w", err)
	}
	if !old {
		return "", unix.Renameat2(unix.AT_FDCWD, dir, unix.AT_FDCWD, name, unix.RENAME_NOREPLACE)
	}
	kept = keptAt(name)
	// Looked at again: a build takes minutes.
	if err := mayRemove(kept); err != nil {
		return "", err
	}
	if err := os.RemoveAll(kept); err != nil {
		return "", fmt.Errorf("removing %s: %w", kept, err)
	}
	if err := unix.Renameat2(unix.AT_FDCWD, dir, unix.AT_FDCWD, name, unix.RENAME_EXCHANGE); err != nil {
		return "", fmt.Errorf("replacing %s: %w", name, err)
	}
	return kept, os.Rename(dir, kept)
}

// syncAll has everything on the disk before the name says that it is whole.
func syncAll(dir string) error {
	f, err := os.Open(dir)
	if err != nil {
		return err
	}
	defer f.Close()
	return unix.Syncfs(int(f.Fd()))
}
