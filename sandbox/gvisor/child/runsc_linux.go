package child

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
	"gvisor.dev/gvisor/runsc/config"
	"gvisor.dev/gvisor/runsc/flag"

	"satchel/sandbox/gvisor/link"
)

// runscConfig returns gVisor's configuration, which is the same for every sandbox.
func runscConfig(c link.Config, openFiles uint64) (*config.Config, error) {
	fs := flag.NewFlagSet("runsc", flag.ContinueOnError)
	config.RegisterFlags(fs)
	args := []string{
		"--root=/proc/self/cwd", // the state directory, see newOwner
		"--platform=" + c.Platform,
		"--network=none",
		"--host-uds=none",
		"--host-fifo=none",
		"--overlay2=none",
		"--file-access=exclusive",
		"--file-access-mounts=exclusive",
		"--ignore-cgroups=true",
		"--oci-seccomp=false",
		"--host-settings=ignore",
		"--sidecar-usage-policy=LEGACY_DEPRECATED_SLOW_EMBEDDED_FALLBACK",
		fmt.Sprintf("--directfs=%t", !c.NoDirectFS),
		fmt.Sprintf("--dcache=%d", direntCache(c.DirentCache, openFiles)),
	}
	if c.DebugLog != "" {
		args = append(args, "--debug=true", "--debug-log="+c.DebugLog+"/")
	}
	if err := fs.Parse(args); err != nil {
		return nil, fmt.Errorf("configuring gVisor: %w", err)
	}
	conf, err := config.NewFromFlags(fs)
	if err != nil {
		return nil, fmt.Errorf("configuring gVisor: %w", err)
	}
	return conf, nil
}

// The sentry moves the standard streams of process 1 to these descriptors when it boots
// (startingStdioFD in runsc/boot), and fails if one is open.
const (
	firstStdio = 253
	lastStdio  = 255
)

// keepDescriptorsFree occupies the descriptors that a sentry needs, so that no sentry inherits
// a file under one of them. gVisor's control socket is not close-on-exec: a sentry inherits the
// socket under its number in this process. With about 115 sandboxes, that would be one of
// these numbers.
func keepDescriptorsFree() error {
	null, err := unix.Open("/dev/null", unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return fmt.Errorf("keeping descriptors free: %w", err)
	}
	defer unix.Close(null)
	for fd := firstStdio; fd <= lastStdio; fd++ {
		if err := unix.Dup3(null, fd, unix.O_CLOEXEC); err != nil {
			return fmt.Errorf("keeping descriptors free: %w", err)
		}
	}
	return nil
}

// direntCache returns how many directory entries gVisor may cache: at most a quarter of the limit
// of open files. An entry holds up to two host files, and the directories above the entries hold
// as many again. After a command has walked a large tree, the sentry must still be able to open
// the next program.
func direntCache(want int, openFiles uint64) int {
	return int(min(uint64(want), openFiles/4))
}

// limitOpenFiles sets how many files this process, and each sentry and gofer that it starts, may
// open, and returns this limit. The default of many machines is 1,024, and only root can exceed the
// hard limit. One process never gets more than an eighth of the machine's limit, or 1,024 if that
// is more.
func limitOpenFiles(want uint64) (uint64, error) {
	if b, err := os.ReadFile("/proc/sys/fs/file-max"); err == nil {
		if all, err := strconv.ParseUint(strings.TrimSpace(string(b)), 10, 64); err == nil {
			want = min(want, max(all/8, 1024))
		}
	}
	// After this call, unlike after prlimit, Go does not reset the limit in child
	// processes.
	if syscall.Setrlimit(syscall.RLIMIT_NOFILE, &syscall.Rlimit{Cur: want, Max: want}) == nil {
		return want, nil
	}
	var lim syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &lim); err != nil {
		return 0, fmt.Errorf("reading the limit of open files: %w", err)
	}
	lim.Cur = lim.Max
	if err := syscall.Setrlimit(syscall.RLIMIT_NOFILE, &lim); err != nil {
		return 0, fmt.Errorf("raising the limit of open files: %w", err)
	}
	return lim.Cur, nil
}
