package child

import (
	"fmt"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"

	"satchel/sandbox/gvisor/link"
	"satchel/sandbox/oci"
)

// assembleRoot assembles the root file system of all sandboxes, once, in this process's own
// mount namespace: the mounts are invisible to the rest of the host and vanish with the
// process. A sandbox then needs only one mount for its root, and boots faster than with a mount
// for each part.
func assembleRoot(c link.Config) (string, error) {
	// Keep the mounts made here invisible outside.
	if err := unix.Mount("", "/", "", unix.MS_SLAVE|unix.MS_REC, ""); err != nil {
		return "", fmt.Errorf("making the mounts private: %w", err)
	}
	var layout oci.Layout
	var err error
	if c.Rootfs == "" {
		layout, err = oci.HostLayout("/", c.Agent)
	} else {
		layout, err = oci.DirLayout(c.Rootfs, c.Agent)
	}
	if err != nil {
		return "", err
	}
	root := filepath.Join(c.RunDir, "root")
	if err := os.MkdirAll(root, 0o700); err != nil {
		return "", fmt.Errorf("making the root file system: %w", err)
	}
	if err := unix.Mount("satchel", root, "tmpfs", unix.MS_NOSUID|unix.MS_NODEV, "mode=0755,size=1m"); err != nil {
		return "", fmt.Errorf("mounting the root file system: %w", err)
	}
	if err := layout.Create(root); err != nil {
		return "", err
	}
	for _, b := range layout.Binds {
		if err := unix.Mount(b.Source, filepath.Join(root, b.Target), "", unix.MS_BIND|unix.MS_REC, ""); err != nil {
			return "", fmt.Errorf("lending %s to sandboxes: %w", b.Source, err)
		}
	}
	attr := unix.MountAttr{Attr_set: unix.MOUNT_ATTR_RDONLY | unix.MOUNT_ATTR_NOSUID | unix.MOUNT_ATTR_NODEV}
	if err := unix.MountSetattr(unix.AT_FDCWD, root, unix.AT_RECURSIVE, &attr); err != nil {
		return "", fmt.Errorf("making the root file system read-only (Linux 5.12 or newer is needed): %w", err)
	}
	return root, nil
}
