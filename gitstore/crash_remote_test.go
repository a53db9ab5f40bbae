package gitstore

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"satchel/gitstore/transport"
	"satchel/internal/space"
	"satchel/internal/testenv"
)

// The environment variables for the process that TestCrashRemote kills.
const (
	crashRemoteDir   = "SATCHEL_CRASH_REMOTE_DIR"
	crashRemoteSpace = "SATCHEL_CRASH_REMOTE_SPACE"
	crashRemoteURL   = "SATCHEL_CRASH_REMOTE_URL"
	crashRemoteStep  = "SATCHEL_CRASH_REMOTE_STEP"
)

// TestCrashRemote kills a process with SIGKILL at every step of a sequence of commits, fetches,
// integrations of every kind, follows and pushes, and then opens the space. The space must be
// whole, at its old head or at the new one, and have everything that was acknowledged. It must
// not expect more of the remote than the remote has. Outside of "just soak", the test kills at
// every eighth step.
func TestCrashRemote(t *testing.T) {
	for step := 1; ; step += testenv.Stride(8) {
		done := false
		t.Run(fmt.Sprint("step ", step), func(t *testing.T) { done = crashRemote(t, step) })
		if done || t.Failed() {
			if step < 40 {
				t.Errorf("only %d steps: the test shows little", step)
			}
			return
		}
	}
}

// crashRemote reports whether the process reached its end before the step.
func crashRemote(t *testing.T, step int) (done bool) {
	o := newOrigin(t)
	base := o.commit("", "main", "echo 1 > a.md")
	o.commit(string(base), "ff", "echo 2 > a.md")
	o.commit(string(base), "diverged", "echo t > t.md; echo t > o.md")
	dir := t.TempDir()
	s, err := Open(Options{Dir: dir})
	if err != nil {
		t.Fatal(err)
	}
	id := newSpace(t, s, nil)
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(os.Args[0], "-test.run=^TestCrashRemoteChild$")
	cmd.Env = append(os.Environ(), crashRemoteDir+"="+dir, crashRemoteSpace+"="+string(id), crashRemoteURL+"="+o.dir, crashRemoteStep+"="+strconv.Itoa(step))
	out, err := cmd.Output()
	done = err == nil
	acked := []string{}
	last := ""
	for line := range strings.Lines(string(out)) {
		what, commit, ok := strings.Cut(strings.TrimSpace(line), " acked ")
		if ok {
			acked, last = append(acked, commit), what
		}
	}
	s = newStore(t, withTransport(t), func(op *Options) { op.Dir = dir })
	head, err := s.Head(t.Context(), id)
	if err != nil {
		t.Fatal(err)
	}
	repo := s.repoDir(id)
	if string(head) != git(t, repo, "rev-parse", "main") {
		t.Error("the branch's file is not at head")
	}
	reached := git(t, repo, "rev-list", "--all")
	for _, c := range acked {
		if !strings.Contains(reached, c) {
			t.Errorf("%s was acknowledged before %q ended, and is reached by no ref", c, last)
		}
	}
	fsck(t, s, id)
	for ref := range strings.Lines(git(t, repo, "for-each-ref", "--format=%(refname:lstrip=3) %(objectname)", "refs/remotes/origin")) {
		name, known, _ := strings.Cut(strings.TrimSpace(ref), " ")
		git(t, o.dir, "merge-base", "--is-ancestor", known, "refs/heads/"+name)
	}
	if left, _ := filepath.Glob(filepath.Join(dir, quarantineDir, "*")); len(left) > 0 {
		t.Errorf("left %v", left)
	}
	if left, _ := filepath.Glob(filepath.Join(repo, "refs", ".tmp-*")); len(left) > 0 {
		t.Errorf("left %v", left)
	}
	// The space works afterwards.
	commit(t, s, id, writes(map[string]string{"after.md": "x"}))
	receive(t, s, id, o, "main")
	if _, err := s.Push(t.Context(), id, o.endpoint(), "main", nil); err != nil {
		t.Error(err)
	}
	return done
}

// TestCrashRemoteChild is the process that TestCrashRemote kills.
func TestCrashRemoteChild(t *testing.T) {
	dir := os.Getenv(crashRemoteDir)
	if dir == "" {
		t.Skip("only runs as a child of TestCrashRemote")
	}
	at, _ := strconv.Atoi(os.Getenv(crashRemoteStep))
	steps := 0
	s := newStore(t, withTransport(t), func(op *Options) {
		op.Dir = dir
		op.probe = func(string) {
			if steps++; steps == at {
				p, _ := os.FindProcess(os.Getpid())
				p.Kill()
				select {}
			}
		}
	})
	ctx, id := context.Background(), space.SpaceID(os.Getenv(crashRemoteSpace))
	e := transport.Endpoint{URL: os.Getenv(crashRemoteURL), Trusted: true}
	out := bufio.NewWriterSize(os.Stdout, 1)
	ack := func(what string, c space.CommitID, err error) {
		if err != nil {
			t.Fatalf("%s: %v", what, err)
		}
		fmt.Fprintf(out, "%s acked %s\n", what, c)
		out.Flush()
	}
	m := space.Meta{Author: ada}
	take := func(branch string) space.CommitID {
		f, err := s.Fetch(ctx, id, e, branch, nil)
		ack("fetch "+branch, f.Tip, err)
		return f.Tip
	}
	bring := func(branch string) {
		res, err := s.Integrate(ctx, id, take(branch), m)
		ack("integrate "+branch, res.Head, err)
	}
	bring("main") // an adoption
	bring("ff")
	c, err := s.Commit(ctx, id, writes(map[string]string{"o.md": "o"}), m)
	ack("commit", c.ID, err)
	bring("diverged") // a merge
	pushed, err := s.Push(ctx, id, e, "main", nil)
	ack("push", pushed, err)
	c, err = s.ResetToRemote(ctx, id, take("ff"), m)
	ack("follow", c.ID, err)
}
