package crun

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"sync"

	"golang.org/x/sys/unix"

	"satchel/internal/space"
	"satchel/sandbox/oci"
)

// stage is the mount namespace in which containers are put together: that of
// one thread, which starts the OCI runtime. Nothing that is mounted there shows
// on the host, and all of it is gone with the process.
//
// Whatever is read-only here is so for good in a container: the kernel lets no
// user namespace take from a mount what a more privileged one put on it.
//
// Its root is the host's, with stageDir added. The root file system of a
// container must be where its own root user, who is no one on the host, can go;
// and the data directory is closed to others.
type stage struct {
	layout oci.Layout
	work   chan func()
	once   sync.Once
	quit   chan struct{} // closed by close
	gone   chan struct{} // closed when the thread has ended
}

// stageDir is where containers are put together, by id.
const stageDir = "/.satchel-stage"

// lent is what every mount of the host's is for a container.
const lent = unix.MOUNT_ATTR_RDONLY | unix.MOUNT_ATTR_NOSUID | unix.MOUNT_ATTR_NODEV

func newStage(runDir, exe, rootfs string) (*stage, error) {
	var err error
	s := &stage{work: make(chan func()), quit: make(chan struct{}), gone: make(chan struct{})}
	if rootfs == "" {
		s.layout, err = oci.HostLayout("/", exe)
	} else {
		s.layout, err = oci.DirLayout(rootfs, exe)
	}
	if err != nil {
		return nil, err
	}
	ready := make(chan error, 1)
	go func() {
		defer close(s.gone)
		runtime.LockOSThread() // for good: the thread ends with the goroutine
		ready <- s.enter(filepath.Join(runDir, "stage"))
		for {
			select {
			case f := <-s.work:
				f()
			case <-s.quit:
				return
			}
		}
	}()
	if err := <-ready; err != nil {
		s.close()
		return nil, fmt.Errorf("making the sandboxes' mount namespace: %w", err)
	}
	return s, nil
}

// do runs f on the stage's thread.
func (s *stage) do(f func() error) error {
	done := make(chan error, 1)
	select {
	case s.work <- func() { done <- f() }:
		return <-done
	case <-s.quit:
		return errClosed
	}
}

// close ends the thread, and with it the mount namespace.
func (s *stage) close() {
	s.once.Do(func() { close(s.quit) })
	<-s.gone
}

// enter moves the calling thread into the stage, and puts there what all
// containers share: the layout's binds then lead there.
func (s *stage) enter(root string) error {
	if err := enterStage(root); err != nil {
		return err
	}
	for i, b := range s.layout.Binds {
		at := filepath.Join(stageDir, "shared-"+strconv.Itoa(i))
		if err := attach(b.Source, at, unix.MountAttr{Attr_set: lent}, unix.AT_RECURSIVE); err != nil {
			return fmt.Errorf("lending %s to sandboxes: %w", b.Source, err)
		}
		s.layout.Binds[i].Source = at
	}
	return nil
}

// attach mounts a file or directory at a place that it makes.
func attach(source, at string, attr unix.MountAttr, flags uint) error {
	fd, err := unix.OpenTree(unix.AT_FDCWD, source, unix.OPEN_TREE_CLONE|unix.OPEN_TREE_CLOEXEC|flags)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil {
		return err
	}
	if st.Mode&unix.S_IFMT == unix.S_IFDIR {
		err = os.Mkdir(at, 0o755)
	} else {
		err = os.WriteFile(at, nil, 0o644)
	}
	if err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	if err := unix.MountSetattr(fd, "", unix.AT_EMPTY_PATH|flags, &attr); err != nil {
		return fmt.Errorf("mount_setattr: %w", err)
	}
	return unix.MoveMount(fd, "", unix.AT_FDCWD, at, unix.MOVE_MOUNT_F_EMPTY_PATH)
}

// enterStage moves the calling thread into a mount namespace of its own, whose
// root directory is a copy of the host's with stageDir in it.
func enterStage(root string) error {
	if err := unix.Unshare(unix.CLONE_NEWNS | unix.CLONE_FS); err != nil {
		return fmt.Errorf("a new mount namespace: %w", err)
	}
	// Nothing mounted here may show outside.
	if err := unix.Mount("", "/", "", unix.MS_SLAVE|unix.MS_REC, ""); err != nil {
		return fmt.Errorf("making the mounts private: %w", err)
	}
	// crun refuses machines that have both versions of cgroups; it is not to
	// use either here.
	if err := unix.Unmount("/sys/fs/cgroup/unified", unix.MNT_DETACH); err != nil && !errors.Is(err, unix.EINVAL) && !errors.Is(err, unix.ENOENT) {
		return fmt.Errorf("hiding the second version of cgroups: %w", err)
	}
	if err := os.MkdirAll(root, 0o700); err != nil {
		return err
	}
	if err := unix.Mount("satchel", root, "tmpfs", unix.MS_NOSUID|unix.MS_NODEV, "mode=0755,size=64m"); err != nil {
		return fmt.Errorf("a tmpfs: %w", err)
	}
	entries, err := os.ReadDir("/")
	if err != nil {
		return err
	}
	for _, e := range entries {
		if err := mirror("/"+e.Name(), filepath.Join(root, e.Name()), e.Type()); err != nil {
			return err
		}
	}
	if err := os.Mkdir(filepath.Join(root, stageDir), 0o711); err != nil {
		return err
	}
	// Not chroot: whoever may enter a mount namespace again begins at its real
	// root, which must not be the host's.
	if err := unix.Chdir(root); err != nil {
		return err
	}
	if err := unix.PivotRoot(".", "."); err != nil {
		return fmt.Errorf("pivot_root: %w", err)
	}
	if err := unix.Unmount(".", unix.MNT_DETACH); err != nil {
		return fmt.Errorf("leaving the old root: %w", err)
	}
	return unix.Chdir("/")
}

// mirror gives to an entry of the root directory its place in another.
func mirror(from, to string, kind fs.FileMode) error {
	switch kind {
	case fs.ModeDir:
		if err := os.Mkdir(to, 0o755); err != nil {
			return err
		}
		if err := unix.Mount(from, to, "", unix.MS_BIND|unix.MS_REC, ""); err != nil {
			return fmt.Errorf("binding %s: %w", from, err)
		}
	case fs.ModeSymlink:
		target, err := os.Readlink(from)
		if err != nil {
			return err
		}
		return os.Symlink(target, to)
	}
	return nil
}

// part is the place of a part of a container on the stage.
func part(id space.SandboxID, name string) string { return filepath.Join(stageDir, string(id), name) }

// The parts of a container.
const (
	rootPart    = "root"
	lowerPart   = "lower"
	gitPart     = "git"
	libraryPart = "library"
)

// build puts a container's parts together, for the range of ids that begins
// with first: its root directory, which belongs to its root user, and the
// seed's. The files of the checkout belong to the same user ids inside as
// outside, or the overlay could not copy them.
func (s *stage) build(id space.SandboxID, seed *space.Seed, first uint32, userns int) error {
	root := part(id, rootPart)
	for _, d := range []string{filepath.Dir(root), root} {
		if err := os.Mkdir(d, 0o755); err != nil {
			return err
		}
	}
	if err := s.layout.Create(root); err != nil {
		return err
	}
	err := filepath.WalkDir(root, func(p string, _ fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		return os.Lchown(p, int(first), int(first))
	})
	if err != nil {
		return err
	}
	if err := attach(root, root, unix.MountAttr{Attr_set: lent}, 0); err != nil {
		return fmt.Errorf("mounting the root: %w", err)
	}
	owners := unix.MountAttr{Attr_set: lent | unix.MOUNT_ATTR_IDMAP, Userns_fd: uint64(userns)}
	if err := attach(filepath.Clean(seed.Checkout), part(id, lowerPart), owners, 0); err != nil {
		return fmt.Errorf("mounting the checkout with its owners mapped (its file system may not be able to): %w", err)
	}
	for name, source := range map[string]string{gitPart: seed.GitView, libraryPart: seed.Library} {
		if source == "" {
			continue
		}
		attr := unix.MountAttr{Attr_set: lent | unix.MOUNT_ATTR_NOEXEC}
		if err := attach(filepath.Clean(source), part(id, name), attr, unix.AT_RECURSIVE); err != nil {
			return fmt.Errorf("mounting the %s: %w", name, err)
		}
	}
	return nil
}

// remove takes a container's parts away, as far as they are there.
func (s *stage) remove(id space.SandboxID) error {
	for _, name := range []string{rootPart, lowerPart, gitPart, libraryPart} {
		// A mount that is not there is EINVAL.
		err := unix.Unmount(part(id, name), unix.MNT_DETACH|unix.UMOUNT_NOFOLLOW)
		if err != nil && !errors.Is(err, unix.EINVAL) && !errors.Is(err, unix.ENOENT) {
			// RemoveAll would go on into what is mounted.
			return fmt.Errorf("unmounting the %s: %w", name, err)
		}
	}
	return os.RemoveAll(filepath.Join(stageDir, string(id)))
}
