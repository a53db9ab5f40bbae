package rootfs

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"hash"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// unused is what no sandbox has use for, or what belongs to one machine alone:
// the contents of each directory, or the file.
var unused = []string{
	"boot", "dev", "media", "mnt", "opt", "proc", "root", "run", "srv", "sys", "tmp", "home",
	"var/cache", "var/lib/apt/lists", "var/lib/systemd", "var/log", "var/tmp", "debootstrap",
	"etc/apt/sources.list", "etc/apt/sources.list.d", "etc/hostname", "etc/machine-id", "etc/resolv.conf",
	"etc/passwd-", "etc/group-", "etc/shadow", "etc/shadow-", "etc/gshadow", "etc/gshadow-",
	"var/lib/dpkg/status-old", "var/lib/dpkg/diversions-old", "var/lib/dpkg/statoverride-old",
	"var/lib/dbus/machine-id", "etc/.pwd.lock", "etc/ssl/private",
	"usr/share/bug", "usr/share/info", "usr/share/lintian", "usr/share/locale", "usr/share/man", "usr/share/doc-base",
	"usr/share/linda", "usr/share/gitweb", "usr/share/bash-completion",
}

// strip takes out what no sandbox has use for and what none should have:
// documentation but the licences, translations, apt's caches, devices, setuid
// and setgid bits and capabilities. It follows no link. No file stays newer
// than epoch, where there is one.
func strip(dir string, epoch time.Time) error {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return err
	}
	defer root.Close()
	for _, name := range unused {
		if err := empty(root, name); err != nil {
			return err
		}
	}
	for _, special := range []struct {
		dir  string
		keep func(name string) bool
	}{
		{"usr/share/doc", func(name string) bool { return filepath.Base(name) == "copyright" }},
		{"usr/lib/locale", func(name string) bool { return strings.HasPrefix(name, "usr/lib/locale/C.") }},
	} {
		if err := removeBut(root, special.dir, special.keep); err != nil {
			return err
		}
	}
	return harden(root, epoch)
}

// empty removes a file, or what is in a directory.
func empty(root *os.Root, name string) error {
	fi, err := root.Lstat(name)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err != nil:
		return err
	case !fi.IsDir():
		return root.Remove(name)
	}
	entries, err := fs.ReadDir(root.FS(), name)
	if err != nil {
		return err
	}
	for _, e := range entries {
		if err := root.RemoveAll(name + "/" + e.Name()); err != nil {
			return fmt.Errorf("stripping: %w", err)
		}
	}
	return nil
}

// removeBut removes the files of a directory but some, and the directories that
// this leaves empty.
func removeBut(root *os.Root, dir string, keep func(string) bool) error {
	var dirs []string
	err := fs.WalkDir(root.FS(), dir, func(name string, d fs.DirEntry, err error) error {
		switch {
		case errors.Is(err, fs.ErrNotExist):
			return nil
		case err != nil:
			return err
		case d.IsDir():
			if name != dir {
				dirs = append(dirs, name)
			}
			return nil
		case keep(name):
			return nil
		}
		return root.Remove(name)
	})
	for i := len(dirs) - 1; i >= 0; i-- {
		_ = root.Remove(dirs[i]) // not empty: it keeps something
	}
	return err
}

// harden removes what is no file, directory or link, takes setuid and setgid
// bits and capabilities away, and sets back times.
func harden(root *os.Root, epoch time.Time) error {
	var old []string // names whose time is to be set, directories after what is in them
	err := fs.WalkDir(root.FS(), ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		fi, err := d.Info()
		if err != nil {
			return err
		}
		switch t := fi.Mode().Type(); t {
		case 0, fs.ModeDir:
			if special := fi.Mode() & (fs.ModeSetuid | fs.ModeSetgid); special != 0 {
				if err := root.Chmod(name, fi.Mode()&^(fs.ModeSetuid|fs.ModeSetgid)); err != nil {
					return err
				}
			}
			if err := dropCapabilities(root, name); t == 0 && err != nil {
				return err
			}
		case fs.ModeSymlink:
		default:
			return root.Remove(name)
		}
		if !epoch.IsZero() && fi.ModTime().After(epoch) {
			old = append(old, name)
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("stripping: %w", err)
	}
	ts, err := unix.TimeToTimespec(epoch)
	if err != nil {
		return err
	}
	for i := len(old) - 1; i >= 0; i-- {
		name := filepath.Join(root.Name(), old[i])
		if err := unix.UtimesNanoAt(unix.AT_FDCWD, name, []unix.Timespec{ts, ts}, unix.AT_SYMLINK_NOFOLLOW); err != nil {
			return fmt.Errorf("setting the time of %s: %w", old[i], err)
		}
	}
	return nil
}

func dropCapabilities(root *os.Root, name string) error {
	err := unix.Lremovexattr(filepath.Join(root.Name(), name), "security.capability")
	if err == unix.ENODATA || err == unix.ENOTSUP || err == unix.EPERM {
		return nil // none, or none that a file of an ordinary user could have
	}
	return err
}

// measure counts a tree: the bytes and number of its files, and a digest of
// everything but times.
func measure(dir string) (size int64, files int, digest string, err error) {
	sum := sha256.New()
	err = filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		fi, err := d.Info()
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(dir, path)
		if err != nil {
			return err
		}
		fmt.Fprintf(sum, "%q %v", rel, fi.Mode())
		switch fi.Mode().Type() {
		case 0:
			size += fi.Size()
			files++
			fmt.Fprintf(sum, " %d\n", fi.Size())
			return addFile(sum, path)
		case fs.ModeSymlink:
			target, err := os.Readlink(path)
			fmt.Fprintf(sum, " %q\n", target)
			return err
		}
		fmt.Fprintln(sum)
		return nil
	})
	return size, files, fmt.Sprintf("%x", sum.Sum(nil)), err
}

func addFile(sum hash.Hash, path string) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	_, err = io.Copy(sum, f)
	return err
}
