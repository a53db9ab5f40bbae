package gitstore

import (
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"testing"

	"satchel/internal/space"
	"satchel/internal/testenv"
)

// TestPurgeCrash kills a process with SIGKILL at every step of a purge. The space must then
// have its whole old history, or the new one and nothing of the old.
func TestPurgeCrash(t *testing.T) {
	dir := t.TempDir()
	s, err := Open(Options{Dir: dir})
	if err != nil {
		t.Fatal(err)
	}
	id := imported(t, s, `echo a >a; c -m first; git checkout -qb side; echo SECRET >k; c -m leak
		git checkout -q main; echo b >b; c -m ours; git merge -q --no-commit side; c -m merge; echo "SECRET again" >k; c -m worse`)
	leak := string(named(t, s, id, "leak"))
	git(t, s.repoDir(id), "tag", "-a", "-m", "x", "v1", leak)
	git(t, s.repoDir(id), "update-ref", "refs/remotes/origin/main", leak)
	commit(t, s, id, writes(map[string]string{"last": "x"}))
	before, head := history(t, s, id), git(t, s.repoDir(id), "rev-parse", "main")
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	purge := func(s *Store) space.CommitID {
		t.Helper()
		res, err := s.Purge(t.Context(), id, "", redact, space.Meta{Author: ada})
		if err != nil {
			t.Fatal(err)
		}
		return res.Head
	}
	copyOf := func() (to string, open func() *Store) {
		to = filepath.Join(t.TempDir(), "data")
		if out, err := exec.Command("cp", "-a", dir, to).CombinedOutput(); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
		return to, func() *Store { return newStore(t, func(o *Options) { o.Dir = to }) }
	}
	_, open := copyOf()
	s = open()
	want := purge(s)
	after := history(t, s, id)
	assertGone(t, s.o.Dir)

	olds, news := 0, 0
	for step := 1; ; step += testenv.Stride(3) {
		to, open := copyOf()
		cmd := exec.Command(os.Args[0], "-test.run=^TestPurgeCrashChild$")
		cmd.Env = append(os.Environ(), "SATCHEL_PURGE_DIR="+to, "SATCHEL_CRASH_SPACE="+string(id), "SATCHEL_CRASH_STEP="+strconv.Itoa(step))
		if out, err := cmd.CombinedOutput(); err == nil {
			break // there are no more steps
		} else if cmd.ProcessState.Exited() {
			t.Fatalf("step %d: the child was to be killed:\n%s", step, out)
		}
		s := open()
		switch h, err := s.Head(t.Context(), id); {
		case err != nil:
			t.Fatalf("step %d: %v", step, err)
		case string(h) == head:
			olds++
			if got := history(t, s, id); got != before || git(t, s.repoDir(id), "rev-parse", "v1^{commit}") != leak {
				t.Errorf("step %d: half of the old history:\n%s", step, got)
			}
			fsck(t, s, id)
			if h := purge(s); h != want {
				t.Errorf("step %d: the second try made %s, not %s", step, h, want)
			}
		case h == want:
			news++
		default:
			t.Errorf("step %d: head is %s", step, h)
		}
		if got := history(t, s, id); got != after {
			t.Errorf("step %d: half of the new history:\n%s", step, got)
		}
		if _, err := os.Stat(filepath.Join(s.repoDir(id), journalFile)); err == nil {
			t.Errorf("step %d: the journal is left", step)
		}
		if got := git(t, s.repoDir(id), "for-each-ref", "--format=%(refname)"); got != branch+"\nrefs/tags/v1" {
			t.Errorf("step %d: refs %s", step, got)
		}
		assertGone(t, to)
		fsck(t, s, id)
		commit(t, s, id, writes(map[string]string{"later": "x"}))
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
	}
	if olds < 2 || news < 2 {
		t.Errorf("%d steps left the old history, %d the new one: the test shows little", olds, news)
	}
}

// TestPurgeCrashChild is the process that TestPurgeCrash kills.
func TestPurgeCrashChild(t *testing.T) {
	dir := os.Getenv("SATCHEL_PURGE_DIR")
	if dir == "" {
		t.Skip("only runs as a child of TestPurgeCrash")
	}
	last, _ := strconv.Atoi(os.Getenv("SATCHEL_CRASH_STEP"))
	steps := 0
	s, err := Open(Options{Dir: dir, probe: func(string) {
		if steps++; steps == last {
			p, _ := os.FindProcess(os.Getpid())
			p.Kill()
			select {}
		}
	}})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.Purge(t.Context(), space.SpaceID(os.Getenv("SATCHEL_CRASH_SPACE")), "", redact, space.Meta{Author: ada}); err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
}
