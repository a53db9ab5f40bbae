package agent

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"

	"golang.org/x/sys/unix"

	"satchel/sandbox/protocol"
)

// Paths that package protocol does not define, because the host does not need them.
const (
	upperDir  = protocol.Upper + "/u" // the overlay's upper layer
	workDir   = protocol.Upper + "/w"
	jobsDir   = protocol.RunDir + "/jobs"
	outputDir = protocol.RunDir + "/output"
	homeDir   = protocol.TmpDir + "/home"
	shmDir    = "/dev/shm"
	gitName   = ".git" // the mount point in the space's root
)

// runDirOutputs is the number of output files that fit into RunDir: those of kept jobs and
// commands, and those of a running command.
const runDirOutputs = 2*keptJobs + keptOutputs + 2

// boot mounts everything, and makes SpaceDir the working directory. It returns a descriptor of
// Lower, because hideOwn later covers the path.
func boot(b protocol.Boot) (lower int, err error) {
	unix.Umask(0)
	if err := keepDescriptors(); err != nil {
		return -1, err
	}
	lower, err = unix.Open(protocol.Lower, unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return -1, fmt.Errorf("opening the checkout: %w", err)
	}
	if err := mountSpace(b); err != nil {
		return -1, err
	}
	if err := mountLibrary(); err != nil {
		return -1, err
	}
	if err := mountTmp(b, protocol.CommandUID); err != nil {
		return -1, err
	}
	const flags = unix.MS_NOSUID | unix.MS_NODEV | unix.MS_NOEXEC
	if err := mountTmpfs(protocol.RunDir, 0o755, runDirOutputs*b.Output, 10_000, flags); err != nil {
		return -1, err
	}
	for _, d := range []string{jobsDir, outputDir} {
		if err := os.Mkdir(d, 0o755); err != nil {
			return -1, err
		}
	}
	return lower, os.Chdir(protocol.SpaceDir)
}

// keepDescriptors ensures that no command inherits a descriptor that a package or the
// parent process opened without O_CLOEXEC.
func keepDescriptors() error {
	dir, err := os.Open("/proc/self/fd")
	if err != nil {
		return err
	}
	defer dir.Close()
	names, err := dir.Readdirnames(-1)
	for _, name := range names {
		if fd, err := strconv.Atoi(name); err == nil && fd > 2 {
			unix.CloseOnExec(fd)
		}
	}
	return err
}

// mountSpace makes SpaceDir an overlay of Lower and a bounded tmpfs that commands cannot see.
// If protocol.Git exists, mountSpace mounts it read-only at .git in SpaceDir.
func mountSpace(b protocol.Boot) error {
	if err := mountTmpfs(protocol.Upper, 0o700, b.Disk, b.Inodes, unix.MS_NOSUID|unix.MS_NODEV); err != nil {
		return err
	}
	for _, d := range []string{upperDir, workDir} {
		if err := os.Mkdir(d, 0o755); err != nil {
			return err
		}
		if err := os.Chown(d, protocol.CommandUID, protocol.CommandUID); err != nil {
			return err
		}
	}
	git := true
	if _, err := os.Lstat(protocol.Git); errors.Is(err, fs.ErrNotExist) {
		git = false
	} else if err != nil {
		return err
	}
	if git {
		if err := os.Mkdir(filepath.Join(upperDir, gitName), 0o755); err != nil {
			return err
		}
	}
	const flags = unix.MS_NOSUID | unix.MS_NODEV
	const opts = "lowerdir=" + protocol.Lower + ",upperdir=" + upperDir + ",workdir=" + workDir
	if err := unix.Mount("overlay", protocol.SpaceDir, "overlay", flags, opts); err != nil {
		return fmt.Errorf("mounting the overlay: %w", err)
	}
	if git {
		return bindReadOnly(protocol.Git, filepath.Join(protocol.SpaceDir, gitName))
	}
	return nil
}

// mountLibrary mounts the library, if there is one, at LibraryDir.
func mountLibrary() error {
	if _, err := os.Lstat(protocol.Library); errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return bindReadOnly(protocol.Library, protocol.LibraryDir)
}

func bindReadOnly(source, target string) error {
	if err := unix.Mount(source, target, "", unix.MS_BIND, ""); err != nil {
		return fmt.Errorf("binding %s: %w", target, err)
	}
	const ro = unix.MS_BIND | unix.MS_REMOUNT | unix.MS_RDONLY | unix.MS_NOSUID | unix.MS_NODEV | unix.MS_NOEXEC
	if err := unix.Mount("", target, "", ro, ""); err != nil {
		return fmt.Errorf("making %s read-only: %w", target, err)
	}
	return nil
}

// hideOwn covers the agent's directory: everybody could read the checkout in it, and if the
// server is not root, the directory belongs to the commands' user. The agent keeps open
// what it needs.
func hideOwn() error {
	return mountTmpfs(filepath.Dir(protocol.Exe), 0o700, 4096, 2, unix.MS_RDONLY)
}

// mountTmp mounts a bounded /tmp with the home directory of the user uid. It also mounts a
// bounded tmpfs for shared memory, because programs can write there too.
func mountTmp(b protocol.Boot, uid int) error {
	if _, err := os.Lstat(shmDir); err == nil {
		if err := mountTmpfs(shmDir, 0o1777, b.Tmp, 0, unix.MS_NOSUID|unix.MS_NODEV); err != nil {
			return err
		}
	}
	if err := mountTmpfs(protocol.TmpDir, 0o1777, b.Tmp, 0, unix.MS_NOSUID|unix.MS_NODEV); err != nil {
		return err
	}
	if err := os.Mkdir(homeDir, 0o700); err != nil {
		return err
	}
	return os.Chown(homeDir, uid, uid)
}

// mountTmpfs mounts a tmpfs. Zero for size or inodes means no limit.
func mountTmpfs(at string, mode fs.FileMode, size, inodes int64, flags uintptr) error {
	opts := fmt.Sprintf("mode=%04o", mode)
	if size > 0 {
		opts += ",size=" + strconv.FormatInt(size, 10)
	}
	if inodes > 0 {
		opts += ",nr_inodes=" + strconv.FormatInt(inodes, 10)
	}
	if err := unix.Mount("tmpfs", at, "tmpfs", flags, opts); err != nil {
		return fmt.Errorf("mounting a tmpfs on %s: %w", at, err)
	}
	return nil
}
