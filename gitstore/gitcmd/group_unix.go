//go:build unix

package gitcmd

import (
	"os/exec"
	"syscall"
)

// ownGroup makes the children of a run end when the context of the run ends.
func ownGroup(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
}
