// Package gitcmd runs the git program. It is the only package that does.
//
// Each run has an environment made from nothing: no system, global or user
// configuration, no prompts, no protocol but those that the run names, no
// hooks, no helpers, and objects that git's fsck refuses are not taken. A run
// ends with its context, its children with it, and what it prints and the
// memory that it takes are bounded.
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
	// Timeout ends a run that takes longer; zero sets no limit of its own.
	Timeout time.Duration
	// Memory bounds what each process of a run may have, in bytes: the one that
	// is started and its children, each by itself. Zero is DefaultMemory, less
	// sets no limit. Linux alone has it. A run that needs more fails; see
	// OutOfMemory.
	Memory int64
}

// Cmd is one run.
type Cmd struct {
	Dir    string   // the working directory
	GitDir string   // --git-dir; empty for commands that need none
	Config []string // "key=value", in addition to what every run is given
	Args   []string // the command and its arguments; never a secret: every user of the machine can read them
	Env    []string // in addition; the one place for a secret
	// Protocols is GIT_ALLOW_PROTOCOL, such as "https"; empty allows none.
	Protocols string
	Stdin     io.Reader
	// Stdout takes what the program prints, without a limit; Run then returns
	// nothing of it. Nil keeps it for Run.
	Stdout io.Writer
	// Progress is told of each line on standard error, cut and without control
	// characters, while the run lasts; nil tells nobody. The lines are git's
	// and the remote's: they may name the host's paths.
	Progress func(line string)
}

// Error is a run that failed. Its text is for logs: git's words may name the
// host's paths.
type Error struct {
	Cmd    string // git's subcommand
	Stderr string // without progress; the middle is left out where it is long
	Stdout []byte // what was printed before; merge-tree tells of conflicts so
	Cut    bool   // Stdout is not all of it
	Err    error  // an *exec.ExitError where the program ran and ended by itself
	// Here reports that the remote was a directory, whose words are those of a
	// child of this run.
	Here bool
}

// Error returns the command, how it ended, and what it said.
func (e *Error) Error() string { return fmt.Sprintf("git %s: %v: %s", e.Cmd, e.Err, e.Stderr) }

// Unwrap returns how the program ended.
func (e *Error) Unwrap() error { return e.Err }

// ExitCode returns the program's exit status; -1 where a signal ended it or it
// never ran.
func (e *Error) ExitCode() int {
	var exit *exec.ExitError
	if errors.As(e.Err, &exit) {
		return exit.ExitCode()
	}
	return -1
}

// Limits of what a run may print.
const (
	maxStdout = 16 << 20
	maxStderr = 64 << 10
)

// safeConfig is given to every run and beats every file.
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

// Run returns what the program printed on standard output. It fails with an
// *Error where the program did, with the context's cause where that ended it,
// and with fault.Unavailable if there is no such program.
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
	cmd.WaitDelay = 5 * time.Second // for children that keep the pipes open
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
