package sources

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"

	"satchel/internal/space"
)

// Modes in sandboxes: the user who runs commands can read the directories and files, and
// cannot write them.
const (
	treeDir  = 0o755
	treeFile = 0o444
)

// The directories in Options.Dir.
const (
	treesDir   = "trees"   // each snapshot once
	usersDir   = "users"   // each user's library, as sandboxes see it
	scratchDir = "scratch" // trees that are being made or removed
)

// writeTree writes a snapshot's files into a new directory. Files that the older tree has too
// become hard links to its files. The contents of the others come from the store.
func (m *Manager) writeTree(ctx context.Context, s space.Source, sn *snapshot, dir string, old *snapshot, oldTree string) error {
	return makeTree(ctx, sn, dir, func(f space.Entry, to string) error {
		if old != nil && oldTree != "" {
			if o, ok := old.find(f.Path); ok && o.Blob == f.Blob && o.Mode != space.Symlink && os.Link(filepath.Join(oldTree, filepath.FromSlash(string(f.Path))), to) == nil {
				return nil
			}
		}
		data, err := m.o.Store.ReadBlob(ctx, s.Space, f.Blob)
		if err != nil {
			return err
		}
		return writeFile(to, data)
	})
}

// linkTree creates a tree for a sandbox's library, of hard links to another tree's files.
func linkTree(ctx context.Context, sn *snapshot, from, to string) error {
	return makeTree(ctx, sn, to, func(f space.Entry, name string) error {
		src := filepath.Join(from, filepath.FromSlash(string(f.Path)))
		if os.Link(src, name) == nil {
			return nil
		}
		// The file has too many links, or the file system has no hard links.
		data, err := os.ReadFile(src)
		if err != nil {
			return err
		}
		return writeFile(name, data)
	})
}

// makeTree creates directories and symbolic links, and calls put to create each file. Every
// name must be new, and only this process writes below dir, so no link is ever followed.
func makeTree(ctx context.Context, sn *snapshot, dir string, put func(f space.Entry, to string) error) error {
	if err := mkdir(dir); err != nil {
		return err
	}
	made := map[string]bool{".": true}
	links := map[string]bool{} // symbolic links; an imported history may list files below a link
	for _, f := range sn.files {
		if err := ctx.Err(); err != nil {
			return err
		}
		parent := path.Dir(string(f.Path))
		if links[parent] {
			continue
		}
		if err := makeDirs(dir, parent, made); err != nil {
			return err
		}
		to := filepath.Join(dir, filepath.FromSlash(string(f.Path)))
		var err error
		if f.Mode == space.Symlink {
			links[string(f.Path)] = true
			err = os.Symlink(sn.links[f.Path], to)
		} else {
			err = put(f, to)
		}
		// A file system that ignores case keeps only one of two names that differ in case.
		if err != nil && !errors.Is(err, fs.ErrExist) {
			return err
		}
	}
	return nil
}

func makeDirs(root, dir string, made map[string]bool) error {
	if made[dir] {
		return nil
	}
	if err := makeDirs(root, path.Dir(dir), made); err != nil {
		return err
	}
	made[dir] = true
	return mkdir(filepath.Join(root, filepath.FromSlash(dir)))
}

// mkdir creates a directory with the mode treeDir, whatever the umask. The directory must not
// exist.
func mkdir(dir string) error {
	if err := os.Mkdir(dir, treeDir); err != nil {
		return err
	}
	return os.Chmod(dir, treeDir)
}

func writeFile(name string, data []byte) error {
	f, err := os.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	_, err = f.Write(data)
	return errors.Join(err, f.Chmod(treeFile), f.Close())
}

// removeTree removes a directory of this package. It refuses a relative path.
func removeTree(dir string) error {
	if dir == "" || !strings.HasPrefix(dir, string(filepath.Separator)) && filepath.VolumeName(dir) == "" {
		return errors.New("only an absolute path is removed")
	}
	return os.RemoveAll(dir)
}
