package gitstore

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
	"strings"
	"time"

	"satchel/internal/fault"
)

// gitRunner runs the git program. It is the only place that does. Each run has
// an environment made from nothing: no system, global or user configuration,
// no prompts, no protocol but those allowed, no hooks, no helpers.
type gitRunner struct {
	program string
	timeout time.Duration
}

// gitCmd is one run.
type gitCmd struct {
	dir       string   // the working directory
	gitDir    string   // --git-dir; empty for commands that need none
	config    []string // in addition to safeConfig
	args      []string // never a secret: every user of the machine can read them
	env       []string // in addition
	protocols string   // GIT_ALLOW_PROTOCOL; empty allows none
	stdin     io.Reader
	progress  func(line string) // is told of lines on standard error
}

// Limits of what a run may print.
const (
	maxGitStdout = 16 << 20
	maxGitStderr = 64 << 10
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

// run returns what the program printed on standard output. The error has its
// standard error, for logs.
func (g gitRunner) run(ctx context.Context, c gitCmd) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, g.timeout)
	defer cancel()
	args := []string{"--no-pager", "--literal-pathspecs"}
	for _, kv := range slices.Concat(safeConfig, c.config) {
		args = append(args, "-c", kv)
	}
	if c.gitDir != "" {
		args = append(args, "--git-dir="+c.gitDir)
	}
	cmd := exec.CommandContext(ctx, g.program, append(args, c.args...)...)
	cmd.Dir = c.dir
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
		"GIT_ALLOW_PROTOCOL=" + c.protocols,
	}, c.env...)
	cmd.Stdin = c.stdin
	out := &capped{max: maxGitStdout}
	errOut := &capped{max: maxGitStderr, line: c.progress}
	cmd.Stdout, cmd.Stderr = out, errOut
	cmd.WaitDelay = 5 * time.Second // for children that keep the pipes open
	ownGroup(cmd)
	err := cmd.Run()
	errOut.flush()
	switch {
	case err == nil && out.cut:
		return nil, fmt.Errorf("git %s: more than %d bytes of output", c.args[0], maxGitStdout)
	case err == nil:
		return out.b.Bytes(), nil
	case errors.Is(err, exec.ErrNotFound):
		return nil, fault.Wrap(err, fault.Unavailable, "The git program is not installed on the server. Install it (version 2.39 or later).")
	case ctx.Err() != nil:
		return nil, fmt.Errorf("git %s: %w", c.args[0], context.Cause(ctx))
	}
	return nil, &gitError{cmd: c.args[0], stderr: strings.TrimSpace(errOut.b.String()), err: err}
}

// gitError is a run that failed.
type gitError struct {
	cmd    string
	stderr string
	err    error
}

func (e *gitError) Error() string { return fmt.Sprintf("git %s: %v: %s", e.cmd, e.err, e.stderr) }
func (e *gitError) Unwrap() error { return e.err }

// capped keeps the first max bytes, and tells of lines.
type capped struct {
	b    bytes.Buffer
	max  int
	cut  bool
	line func(string)
	part []byte
}

func (c *capped) Write(p []byte) (int, error) {
	keep := p[:min(len(p), c.max-c.b.Len())]
	c.b.Write(keep)
	c.cut = c.cut || len(keep) < len(p)
	if c.line != nil {
		c.part = append(c.part, p...)
		for {
			i := bytes.IndexAny(c.part, "\r\n")
			if i < 0 {
				break
			}
			c.tell(c.part[:i])
			c.part = c.part[i+1:]
		}
		if len(c.part) > 4096 {
			c.part = nil
		}
	}
	return len(p), nil
}

func (c *capped) tell(line []byte) {
	if s := oneLine(string(line), 200); s != "" {
		c.line(s)
	}
}

func (c *capped) flush() {
	if c.line != nil {
		c.tell(c.part)
	}
}
