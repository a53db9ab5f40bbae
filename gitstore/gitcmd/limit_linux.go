package gitcmd

import (
	"fmt"
	"os/exec"

	"golang.org/x/sys/unix"
)

// limit makes a command bound its memory before it executes the program, so that all its
// children inherit the limit. Limiting a running process could miss a child that it is just
// starting. limit also disables core files, which could contain the credential. A limit that
// is already lower stays.
func limit(cmd *exec.Cmd, memory int64) error {
	if cmd.Err != nil {
		return nil // the program does not exist, which Start reports
	}
	set := "ulimit -c 0"
	if memory > 0 {
		var old unix.Rlimit
		if err := unix.Getrlimit(unix.RLIMIT_DATA, &old); err != nil {
			return fmt.Errorf("reading the limit of memory: %w", err)
		}
		set += fmt.Sprintf(" && ulimit -d %d", min(uint64(memory), old.Max)>>10)
	}
	// Most exit codes of git that have a meaning are lower than 125. Only git merge-file
	// counts conflicts up to 127.
	script := "{ " + set + `; } || exit 125; exec "$0" "$@"`
	cmd.Args = append([]string{"sh", "-c", script, cmd.Path}, cmd.Args[1:]...)
	cmd.Path = "/bin/sh"
	return nil
}
