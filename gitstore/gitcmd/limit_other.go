//go:build !linux

package gitcmd

import "os/exec"

// limit does nothing: on these systems, process limits do not cover allocated memory.
func limit(*exec.Cmd, int64) error { return nil }
