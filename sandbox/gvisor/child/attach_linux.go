package child

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"

	"satchel/internal/space"
	"satchel/sandbox/gvisor/link"
	"satchel/sandbox/protocol"
)

// A sandbox boots with three empty directories, its places. When a user needs the sandbox,
// the directories of a space are mounted there, so a sandbox can boot before its user is
// known. The places are in a file system whose mounts propagate to the gofers: each gofer
// receives only the mounts below the places of its own sandbox.

// placesDir returns the directory with the places of all sandboxes.
func placesDir(runDir string) string { return filepath.Join(runDir, "places") }

// mountPlaces creates the file system of the places. Like the root file system, only this
// process and its children see it, and it vanishes with this process.
func mountPlaces(runDir string) error {
	dir := placesDir(runDir)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return fmt.Errorf("making the places of spaces: %w", err)
	}
	if err := unix.Mount("satchel", dir, "tmpfs", unix.MS_NOSUID|unix.MS_NODEV|unix.MS_NOEXEC, "mode=0755,size=1m"); err != nil {
		return fmt.Errorf("mounting the places of spaces: %w", err)
	}
	if err := unix.Mount("", dir, "", unix.MS_SHARED, ""); err != nil {
		return fmt.Errorf("sharing the places of spaces: %w", err)
	}
	return nil
}

// places returns the places of a sandbox.
func (o *owner) places(id space.SandboxID) (lower, git, library string) {
	dir := filepath.Join(placesDir(o.conf.RunDir), string(id))
	return filepath.Join(dir, "lower"), filepath.Join(dir, "git"), filepath.Join(dir, "library")
}

func (o *owner) makePlaces(id space.SandboxID) error {
	lower, git, library := o.places(id)
	for _, dir := range []string{filepath.Dir(lower), lower, git, library} {
		if err := os.Mkdir(dir, 0o755); err != nil {
			return fmt.Errorf("making the places of a space: %w", err)
		}
	}
	return nil
}

// removePlaces unmounts what is attached to a sandbox's places, and removes the places. It
// deletes only empty directories, because below a mount are the files of a space.
func (o *owner) removePlaces(id space.SandboxID) error {
	lower, git, library := o.places(id)
	for _, place := range []string{lower, git, library} {
		at := filepath.Join(place, protocol.Attached)
		if err := unix.Unmount(at, unix.MNT_DETACH); err != nil && !errors.Is(err, unix.EINVAL) && !errors.Is(err, unix.ENOENT) {
			return fmt.Errorf("unmounting %s: %w", at, err)
		}
		for _, dir := range []string{at, place} {
			if err := os.Remove(dir); err != nil && !errors.Is(err, fs.ErrNotExist) {
				return err
			}
		}
	}
	if err := os.Remove(filepath.Dir(lower)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

// attach mounts the directories of a space at a sandbox's places, read-only.
func (o *owner) attach(id space.SandboxID, req *link.AttachRequest) error {
	b := o.find(id)
	if b == nil || req == nil {
		return errNoSandbox
	}
	<-b.started
	b.places.Lock()
	defer b.places.Unlock()
	if b.attached {
		return errors.New("the sandbox has a space already")
	}
	b.attached = true
	lower, git, library := o.places(id)
	for _, m := range []struct {
		source, place string
		noexec        uint64
	}{{req.Lower, lower, 0}, {req.Git, git, unix.MOUNT_ATTR_NOEXEC}, {req.Library, library, unix.MOUNT_ATTR_NOEXEC}} {
		if m.source == "" {
			continue
		}
		at := filepath.Join(m.place, protocol.Attached)
		if err := os.Mkdir(at, 0o755); err != nil {
			return fmt.Errorf("attaching a space: %w", err)
		}
		tree, err := unix.OpenTree(unix.AT_FDCWD, m.source, unix.OPEN_TREE_CLONE|unix.OPEN_TREE_CLOEXEC|unix.AT_RECURSIVE)
		if err != nil {
			return fmt.Errorf("attaching a space: %w", err)
		}
		attr := unix.MountAttr{Attr_set: unix.MOUNT_ATTR_RDONLY | unix.MOUNT_ATTR_NOSUID | unix.MOUNT_ATTR_NODEV | m.noexec}
		err = unix.MountSetattr(tree, "", unix.AT_EMPTY_PATH|unix.AT_RECURSIVE, &attr)
		if err == nil {
			// The sandbox sees the mount only from here on, when it is already read-only.
			err = unix.MoveMount(tree, "", unix.AT_FDCWD, at, unix.MOVE_MOUNT_F_EMPTY_PATH)
		}
		unix.Close(tree)
		if err != nil {
			return fmt.Errorf("attaching a space: %w", err)
		}
	}
	return nil
}
