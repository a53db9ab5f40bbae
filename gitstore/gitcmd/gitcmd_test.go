package gitcmd_test

import (
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"satchel/gitstore/gitcmd"
	"satchel/internal/fault"
	"satchel/internal/testenv"
)

// script is a program that stands in for git.
func script(t *testing.T, body string) gitcmd.Runner {
	t.Helper()
	if runtime.GOOS == "windows" {
		testenv.SkipOrFail(t, "a shell script cannot stand in for git here")
	}
	name := filepath.Join(t.TempDir(), "git")
	if err := os.WriteFile(name, []byte("#!/bin/sh\n"+body), 0o700); err != nil {
		t.Fatal(err)
	}
	return gitcmd.Runner{Program: name, Timeout: time.Minute}
}

func TestTheEnvironmentIsMadeFromNothing(t *testing.T) {
	t.Setenv("GIT_SSH_COMMAND", "evil")
	t.Setenv("https_proxy", "http://elsewhere")
	t.Setenv("GIT_TRACE_CURL", "1")
	t.Setenv("HOME", "/home/somebody")
	out, err := script(t, "env\n").Run(t.Context(), gitcmd.Cmd{Args: []string{"status"}, Env: []string{"MINE=1"}, Protocols: "https"})
	if err != nil {
		t.Fatal(err)
	}
	env := strings.Split(strings.TrimSpace(string(out)), "\n")
	for _, want := range []string{"MINE=1", "HOME=/nonexistent", "GIT_CONFIG_NOSYSTEM=1", "GIT_CONFIG_GLOBAL=/dev/null", "GIT_TERMINAL_PROMPT=0", "GIT_ALLOW_PROTOCOL=https", "LC_ALL=C"} {
		if !slices.Contains(env, want) {
			t.Errorf("the environment lacks %s", want)
		}
	}
	for _, kv := range env {
		for _, bad := range []string{"GIT_SSH_COMMAND=", "https_proxy=", "GIT_TRACE_CURL="} {
			if strings.HasPrefix(kv, bad) {
				t.Errorf("the environment has %s", kv)
			}
		}
	}
}

func TestAFailureTellsItsLastWordsAndNotItsProgress(t *testing.T) {
	var told []string
	_, err := script(t, `
printf 'Receiving objects:  10%%\rReceiving objects:  90%%\rReceiving objects: 100%%, done.\r\n' >&2
i=0; while [ $i -lt 3000 ]; do echo "remote: line $i of what a remote says to fill the log" >&2; i=$((i+1)); done
echo out
printf 'fatal: the last word' >&2
exit 7
`).Run(t.Context(), gitcmd.Cmd{Args: []string{"fetch"}, Progress: func(s string) { told = append(told, s) }})
	var g *gitcmd.Error
	if !errors.As(err, &g) {
		t.Fatalf("got %v", err)
	}
	if g.ExitCode() != 7 || g.Cmd != "fetch" || string(g.Stdout) != "out\n" {
		t.Errorf("exit %d of %q, which printed %q", g.ExitCode(), g.Cmd, g.Stdout)
	}
	if !strings.HasPrefix(g.Stderr, "Receiving objects: 100%, done.\nremote: line 0 ") || !strings.HasSuffix(g.Stderr, "line 2999 of what a remote says to fill the log\nfatal: the last word") {
		t.Errorf("kept %.200q … %q", g.Stderr, g.Stderr[max(0, len(g.Stderr)-200):])
	}
	if strings.Contains(g.Stderr, "90%") || len(g.Stderr) > 64<<10+100 {
		t.Errorf("kept progress, or %d bytes", len(g.Stderr))
	}
	if want := []string{"Receiving objects: 10%", "Receiving objects: 90%", "Receiving objects: 100%, done."}; len(told) != 3004 || !slices.Equal(told[:3], want) {
		t.Errorf("told %d lines: %q", len(told), told[:min(3, len(told))])
	}
}

func TestARunEndsWithItsContextAndItsChildren(t *testing.T) {
	pipe := filepath.Join(t.TempDir(), "pipe")
	ctx, cancel := context.WithCancelCause(t.Context())
	r := script(t, "mkfifo "+pipe+".new && mv "+pipe+".new "+pipe+"; sleep 600 > "+pipe+" & wait\n")
	why := errors.New("enough")
	done := make(chan error, 1)
	go func() {
		_, err := r.Run(ctx, gitcmd.Cmd{Args: []string{"fetch"}})
		done <- err
	}()
	testenv.WaitFor(t, "the pipe", func() bool { _, err := os.Stat(pipe); return err == nil })
	child, err := os.Open(pipe) // waits for the child
	if err != nil {
		t.Fatal(err)
	}
	defer child.Close()
	cancel(why)
	if err := <-done; !errors.Is(err, why) {
		t.Errorf("got %v", err)
	}
	if _, err := io.ReadAll(child); err != nil { // waits for the child's end
		t.Error(err)
	}
}

func TestARunHasATimeout(t *testing.T) {
	r := script(t, "sleep 600\n")
	r.Timeout = 20 * time.Millisecond
	if _, err := r.Run(t.Context(), gitcmd.Cmd{Args: []string{"fetch"}}); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("got %v", err)
	}
}

func TestAMissingProgramIsNamed(t *testing.T) {
	r := gitcmd.Runner{Program: "git-that-is-not-installed"}
	if _, err := r.Run(t.Context(), gitcmd.Cmd{Args: []string{"version"}}); fault.CodeOf(err) != fault.Unavailable {
		t.Errorf("got %v", err)
	}
}

func TestTooMuchOutputIsAnError(t *testing.T) {
	r := script(t, "head -c 17000000 /dev/zero\n")
	if _, err := r.Run(t.Context(), gitcmd.Cmd{Args: []string{"log"}}); err == nil || !strings.Contains(err.Error(), "bytes of output") {
		t.Errorf("got %v", err)
	}
}
