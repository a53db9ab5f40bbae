package gitcmd

import (
	"fmt"
	"os/exec"

	"golang.org/x/sys/unix"
)

// limit has a command bound its memory before it becomes the program: all that
// it starts has its limits then, however soon. Limiting a process that runs
// already misses a child that it is about to have. It leaves no core files,
// which would hold the credential. A limit that is lower already stays.
func limit(cmd *exec.Cmd, memory int64) error {
	if cmd.Err != nil {
		return nil // there is no such program, which Start says
	}
	set := "ulimit -c 0"
	if memory > 0 {
		var old unix.Rlimit
		if err := unix.Getrlimit(unix.RLIMIT_DATA, &old); err != nil {
			return fmt.Errorf("reading the limit of memory: %w", err)
		}
		set += fmt.Sprintf(" && ulimit -d %d", min(uint64(memory), old.Max)>>10)
	}
	// git exits with less where it has something to tell.
	script := "{ " + set + `; } || exit 125; exec "$0" "$@"`
	cmd.Args = append([]string{"sh", "-c", script, cmd.Path}, cmd.Args[1:]...)
	cmd.Path = "/bin/sh"
	return nil
}
