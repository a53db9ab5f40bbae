// Package gitcmd runs the git program: call [Runner.Run]. The server runs git only through this
// package.
//
// Each run starts with an empty environment: no system, global or user configuration, no
// prompts, no hooks, no helpers, and only the protocols that the run names. Objects that
// git's fsck refuses are rejected. A run and its children end with its context. The output
// that Run returns is bounded. On Linux, the memory of a run is bounded too.
package gitcmd

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
	"time"

	"satchel/internal/fault"
)

// Runner runs the git program.
type Runner struct {
	// Program is the name or the path of git 2.39 or later.
	Program string
	// Timeout ends a run that takes longer. Zero means that only the context limits a run.
	Timeout time.Duration
	// Memory bounds the memory, in bytes, of each process of a run, children included. Zero
	// means DefaultMemory; less than zero means no limit. Only Linux supports this limit. A
	// run that needs more memory fails; see OutOfMemory.
	Memory int64
}

// Cmd is one run.
type Cmd struct {
	Dir    string   // the working directory
	GitDir string   // --git-dir; empty for commands that need none
	Config []string // "key=value", in addition to what every run is given
	Args   []string // the command and its arguments; never a secret: every user of the machine can read them
	Env    []string // additional variables; the only place for a secret
	// Protocols is GIT_ALLOW_PROTOCOL, such as "https"; empty allows none.
	Protocols string
	Stdin     io.Reader
	// Stdout takes the program's output, without a limit, and Run returns none of it. If
	// Stdout is nil, Run returns the output.
	Stdout io.Writer
	// Progress, if not nil, is called during the run with each line on standard error, cut
	// and without control characters. The lines come from git and from the remote, and may
	// name paths of the host.
	Progress func(line string)
}

// Error is the error of a failed run. Its text is for logs: it may name paths of the host.
type Error struct {
	Cmd    string // git's subcommand
	Stderr string // without progress; the middle of a long text is left out
	Stdout []byte // the output before the failure; merge-tree reports conflicts there
	Cut    bool   // Stdout is incomplete
	Err    error  // an *exec.ExitError if the program ran and exited
	// Here reports whether the remote was a directory. Then the remote's messages come from
	// a child of this run.
	Here bool
}

// Error returns the command, how it ended, and what it said.
func (e *Error) Error() string { return fmt.Sprintf("git %s: %v: %s", e.Cmd, e.Err, e.Stderr) }

// Unwrap returns how the program ended.
func (e *Error) Unwrap() error { return e.Err }

// ExitCode returns the program's exit status, or -1 if a signal ended it or it never ran.
func (e *Error) ExitCode() int {
	var exit *exec.ExitError
	if errors.As(e.Err, &exit) {
		return exit.ExitCode()
	}
	return -1
}

// Limits of a run's output.
const (
	maxStdout = 16 << 20
	maxStderr = 64 << 10
)

// safeConfig is given to every run and overrides every configuration file.
var safeConfig = []string{
	"core.hooksPath=/dev/null",
	"core.fsmonitor=false",
	"core.attributesFile=/dev/null",
	"core.excludesFile=/dev/null",
	"core.askPass=",
	"core.fsync=all",
	"credential.helper=",
	"diff.external=",
	"gc.auto=0",
	"maintenance.auto=false",
	"protocol.ext.allow=never",
	"http.followRedirects=false",
	"submodule.recurse=false",
	"fetch.recurseSubmodules=false",
	"fetch.unpackLimit=1",
	"transfer.unpackLimit=1",
	"transfer.fsckObjects=true",
	"fetch.fsckObjects=true",
	"transfer.bundleURI=false",
}

// Run returns the program's standard output. The error is an *Error if the program failed,
// the context's cause if the context ended the run, and a fault.Unavailable if the program
// does not exist.
func (r Runner) Run(ctx context.Context, c Cmd) ([]byte, error) {
	if r.Timeout > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, r.Timeout)
		defer cancel()
	}
	args := []string{"--no-pager", "--literal-pathspecs"}
	for _, kv := range slices.Concat(safeConfig, memoryConfig, c.Config) {
		args = append(args, "-c", kv)
	}
	if c.GitDir != "" {
		args = append(args, "--git-dir="+c.GitDir)
	}
	cmd := exec.CommandContext(ctx, r.Program, append(args, c.Args...)...)
	cmd.Dir = c.Dir
	cmd.Env = append([]string{
		"PATH=" + os.Getenv("PATH"),
		"HOME=/nonexistent",
		"XDG_CONFIG_HOME=/nonexistent",
		"LC_ALL=C",
		"GIT_CONFIG_NOSYSTEM=1",
		"GIT_CONFIG_SYSTEM=/dev/null",
		"GIT_CONFIG_GLOBAL=/dev/null",
		"GIT_ATTR_NOSYSTEM=1",
		"GIT_TERMINAL_PROMPT=0",
		"GIT_ASKPASS=",
		"SSH_ASKPASS=",
		"GIT_NO_REPLACE_OBJECTS=1",
		"GIT_OPTIONAL_LOCKS=0",
		"GIT_ALLOW_PROTOCOL=" + c.Protocols,
	}, c.Env...)
	cmd.Stdin = c.Stdin
	out := &capped{max: maxStdout}
	errOut := &lines{half: maxStderr / 2, tell: c.Progress}
	cmd.Stdout, cmd.Stderr = out, errOut
	if c.Stdout != nil {
		cmd.Stdout = c.Stdout
	}
	cmd.WaitDelay = 5 * time.Second // for children that hold the pipes open
	ownGroup(cmd)
	if err := limit(cmd, r.memory()); err != nil {
		return nil, err
	}
	err := cmd.Run()
	said := errOut.text()
	switch {
	case err == nil && out.cut:
		return nil, fmt.Errorf("git %s: more than %d bytes of output", c.Args[0], maxStdout)
	case err == nil:
		return out.b.Bytes(), nil
	case errors.Is(err, exec.ErrNotFound):
		return nil, fault.Wrap(err, fault.Unavailable, "The git program is not installed on the server. Install it (version 2.39 or later).")
	case ctx.Err() != nil:
		return nil, fmt.Errorf("git %s: %w", c.Args[0], context.Cause(ctx))
	}
	return nil, &Error{Cmd: c.Args[0], Stderr: said, Stdout: out.b.Bytes(), Cut: out.cut, Err: err, Here: c.Protocols == "file"}
}
