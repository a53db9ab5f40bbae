//go:build !linux

package gitcmd

import "os/exec"

// limit does nothing here: process limits do not cover allocated memory.
func limit(*exec.Cmd, int64) error { return nil }
