package oci

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"satchel/sandbox/protocol"
)

// Layout is the root file system of sandboxes, before anything is mounted: a
// small tree of our own, and the parts of the host that are bound into it.
type Layout struct {
	Dirs  []string          // absolute paths inside, parents first
	Links map[string]string // path inside → target
	Files map[string]string // path inside → content
	// Binds are mounted read-only. Each target exists in Dirs or Files.
	Binds []Bind
}

// shell is the login shell of the commands' users, and home is their home directory,
// which the agent creates in the /tmp of each user.
const (
	shell = "/bin/bash"
	home  = protocol.TmpDir + "/home"
)

// HostLayout returns the layout that lends the host's programs to sandboxes. Of
// the host, it takes only /usr, directories such as /bin and /lib, and the parts
// of /etc without which programs do not run. root is the host's root directory,
// agentExe the program that becomes process 1.
func HostLayout(root, agentExe string) (Layout, error) {
	l := base()
	if err := l.lend(root, "usr"); err != nil {
		return Layout{}, err
	}
	for _, name := range []string{"bin", "sbin", "lib", "lib32", "lib64", "libx32"} {
		fi, err := os.Lstat(filepath.Join(root, name))
		switch {
		case errors.Is(err, fs.ErrNotExist):
		case err != nil:
			return Layout{}, fmt.Errorf("looking at the host's /%s: %w", name, err)
		case fi.Mode()&fs.ModeSymlink != 0:
			target, err := os.Readlink(filepath.Join(root, name))
			if err != nil {
				return Layout{}, fmt.Errorf("reading the host's /%s: %w", name, err)
			}
			l.Links["/"+name] = target
		default:
			if err := l.lend(root, name); err != nil {
				return Layout{}, err
			}
		}
	}
	// On Debian, awk, editors and other programs are links through /etc/alternatives.
	if fi, err := os.Stat(filepath.Join(root, "etc/alternatives")); err == nil && fi.IsDir() {
		if err := l.lend(root, "etc/alternatives"); err != nil {
			return Layout{}, err
		}
	}
	// The loader uses its cache to find libraries outside the standard places.
	cache := filepath.Join(root, "etc/ld.so.cache")
	if fi, err := os.Lstat(cache); err == nil && fi.Mode().IsRegular() {
		l.Files["/etc/ld.so.cache"] = ""
		l.Binds = append(l.Binds, Bind{Source: cache, Target: "/etc/ld.so.cache"})
	}
	l.addAgent(agentExe)
	return l, nil
}

// DirLayout returns the layout whose programs come from a root file system directory of
// the operator, instead of the host. It uses only those files of the directory's /etc
// that HostLayout would take from the host.
func DirLayout(dir, agentExe string) (Layout, error) {
	if fi, err := os.Stat(filepath.Join(dir, "usr")); err != nil || !fi.IsDir() {
		return Layout{}, fmt.Errorf("the root file system %s has no /usr", dir)
	}
	return HostLayout(dir, agentExe)
}

// base returns what every layout has: the mount points, and an /etc without files of the
// host.
func base() Layout {
	l := Layout{Links: map[string]string{}, Files: map[string]string{}}
	for _, d := range []string{
		"/dev", "/proc", "/sys", protocol.TmpDir, "/var/tmp", "/root", "/home", "/mnt", "/opt",
		path.Dir(protocol.Lower), path.Dir(protocol.Git), path.Dir(protocol.Library), protocol.Upper, protocol.SpaceDir, protocol.LibraryDir, protocol.RunDir,
	} {
		l.addDir(d)
	}
	id := func(n int) string { return strconv.Itoa(n) }
	cmd, ro := id(protocol.CommandUID), id(protocol.ReadOnlyUID)
	l.Files["/etc/passwd"] = "root:x:0:0:root:/root:/usr/sbin/nologin\n" +
		"satchel:x:" + cmd + ":" + cmd + ":Satchel:" + home + ":" + shell + "\n" +
		"reader:x:" + ro + ":" + ro + ":Satchel, read-only:" + home + ":" + shell + "\n" +
		"nobody:x:65534:65534:nobody:/:/usr/sbin/nologin\n"
	l.Files["/etc/group"] = "root:x:0:\nsatchel:x:" + cmd + ":\nreader:x:" + ro + ":\nnogroup:x:65534:\n"
	l.Files["/etc/nsswitch.conf"] = "passwd: files\ngroup: files\nshadow: files\nhosts: files\n"
	l.Files["/etc/hosts"] = "127.0.0.1 localhost " + Hostname + "\n::1 localhost " + Hostname + "\n"
	l.Files["/etc/hostname"] = Hostname + "\n"
	l.Files["/etc/host.conf"] = "multi on\n"
	// Git refuses a repository of another user, such as the space in read-only commands, unless its
	// directory is configured as safe. The other settings are for commands without a terminal, and
	// for repositories that commands create in /tmp.
	l.Files["/etc/gitconfig"] = "[safe]\n\tdirectory = *\n[core]\n\tpager = cat\n[advice]\n\tdetachedHead = false\n" +
		"[init]\n\tdefaultBranch = main\n[user]\n\tname = satchel\n\temail = satchel@localhost\n"
	l.addDir("/etc")
	return l
}

// lend binds a directory of root to the same place inside.
func (l *Layout) lend(root, name string) error {
	source := filepath.Join(root, name)
	fi, err := os.Stat(source)
	if err != nil {
		return fmt.Errorf("looking at the host's /%s: %w", name, err)
	}
	if !fi.IsDir() {
		return fmt.Errorf("the host's /%s is not a directory", name)
	}
	l.addDir("/" + name)
	l.Binds = append(l.Binds, Bind{Source: source, Target: "/" + name})
	return nil
}

func (l *Layout) addAgent(exe string) {
	l.Files[protocol.Exe] = ""
	l.Binds = append(l.Binds, Bind{Source: exe, Target: protocol.Exe})
}

// addDir adds a directory and its parents.
func (l *Layout) addDir(dir string) {
	if dir == "/" || slices.Contains(l.Dirs, dir) {
		return
	}
	l.addDir(path.Dir(dir))
	l.Dirs = append(l.Dirs, dir)
}

// Create creates the directories, links and files of the layout in dir, which must be
// empty or hold the same layout. It mounts nothing.
func (l Layout) Create(dir string) error {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return fmt.Errorf("opening the sandbox's root: %w", err)
	}
	defer root.Close()
	in := func(p string) string { return strings.TrimPrefix(p, "/") }
	for _, d := range l.Dirs {
		if err := root.Mkdir(in(d), 0o755); err != nil && !errors.Is(err, fs.ErrExist) {
			return fmt.Errorf("making %s in the sandbox's root: %w", d, err)
		}
	}
	// Only root may read the agent's directory.
	if err := root.Chmod(in(path.Dir(protocol.Exe)), 0o700); err != nil {
		return fmt.Errorf("closing %s: %w", path.Dir(protocol.Exe), err)
	}
	for _, name := range sortedKeys(l.Links) {
		err := root.Symlink(l.Links[name], in(name))
		if err != nil && !errors.Is(err, fs.ErrExist) {
			return fmt.Errorf("linking %s in the sandbox's root: %w", name, err)
		}
	}
	for _, name := range sortedKeys(l.Files) {
		f, err := root.OpenFile(in(name), os.O_CREATE|os.O_WRONLY|os.O_TRUNC, 0o644)
		if err != nil {
			return fmt.Errorf("making %s in the sandbox's root: %w", name, err)
		}
		_, err = f.WriteString(l.Files[name])
		if err := errors.Join(err, f.Close()); err != nil {
			return fmt.Errorf("writing %s in the sandbox's root: %w", name, err)
		}
	}
	return nil
}

func sortedKeys(m map[string]string) []string {
	keys := make([]string, 0, len(m))
	for k := range m {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	return keys
}
