package gitstore

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"satchel/internal/space"
)

// TestCrash kills a process with SIGKILL at every step of a commit, and then opens the space.
// The space must have everything that was acknowledged, and git must find the repository whole.
func TestCrash(t *testing.T) {
	t.Run("commits", func(t *testing.T) { crash(t, "", 24, 24) })
	t.Run("commits, each followed by GC", func(t *testing.T) { crash(t, "tidy", 40, 6) })
}

func crash(t *testing.T, mode string, steps, atLeast int) {
	dir := t.TempDir()
	s, err := Open(Options{Dir: dir})
	if err != nil {
		t.Fatal(err)
	}
	id := newSpace(t, s, map[string]string{"start": "x"})
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	acked := map[string]bool{"start": true}
	for step := 1; step <= steps; step++ {
		cmd := exec.Command(os.Args[0], "-test.run=^TestCrashChild$")
		cmd.Env = append(os.Environ(), "SATCHEL_CRASH_DIR="+dir, "SATCHEL_CRASH_SPACE="+string(id),
			"SATCHEL_CRASH_STEP="+strconv.Itoa(step), "SATCHEL_CRASH_NAME="+strconv.Itoa(step), "SATCHEL_CRASH_MODE="+mode)
		out, err := cmd.Output()
		if err == nil {
			t.Fatalf("step %d: the child was to be killed:\n%s", step, out)
		}
		for line := range strings.Lines(string(out)) {
			if name, ok := strings.CutPrefix(strings.TrimSpace(line), "acked "); ok {
				acked[name] = true
			}
		}
		s, err := Open(Options{Dir: dir})
		if err != nil {
			t.Fatal(err)
		}
		files, err := s.Files(t.Context(), id, "", "")
		if err != nil {
			t.Fatalf("step %d: %v", step, err)
		}
		have := map[string]bool{}
		for _, f := range files {
			have[string(f.Path)] = true
		}
		for name := range acked {
			if !have[name] {
				t.Errorf("step %d: %s was acknowledged and is lost", step, name)
			}
		}
		fsck(t, s, id)
		if h, _ := s.Head(t.Context(), id); string(h) != git(t, s.repoDir(id), "rev-parse", "main") {
			t.Errorf("step %d: the branch's file is not at head", step)
		}
		left, _ := filepath.Glob(filepath.Join(s.repoDir(id), "objects", "pack", "*tmp[-_]*"))
		if len(left) > 0 {
			t.Errorf("step %d: left %v", step, left)
		}
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
	}
	if len(acked) < atLeast {
		t.Errorf("only %d commits were acknowledged: the test shows little", len(acked))
	}
}

// TestCrashChild is the process that TestCrash kills.
func TestCrashChild(t *testing.T) {
	dir := os.Getenv("SATCHEL_CRASH_DIR")
	if dir == "" {
		t.Skip("only runs as a child of TestCrash")
	}
	last, _ := strconv.Atoi(os.Getenv("SATCHEL_CRASH_STEP"))
	steps := 0
	s, err := Open(Options{Dir: dir, IdlePacks: 3, Limits: Limits{Reflog: 600}, probe: func(string) {
		if steps++; steps == last {
			p, _ := os.FindProcess(os.Getpid())
			p.Kill()
			select {}
		}
	}})
	if err != nil {
		t.Fatal(err)
	}
	out := bufio.NewWriterSize(os.Stdout, 1)
	for i := 0; ; i++ {
		name := fmt.Sprintf("f%s-%d", os.Getenv("SATCHEL_CRASH_NAME"), i)
		commit(t, s, space.SpaceID(os.Getenv("SATCHEL_CRASH_SPACE")), writes(map[string]string{name: name}))
		fmt.Fprintln(out, "acked", name)
		out.Flush()
		if os.Getenv("SATCHEL_CRASH_MODE") == "tidy" {
			if _, err := s.GC(t.Context(), space.SpaceID(os.Getenv("SATCHEL_CRASH_SPACE"))); err != nil {
				t.Fatal(err)
			}
		}
	}
}

// TestPowerLoss creates the states of the disk that are possible after a power loss: everything
// that was synced, and any part of the rest.
func TestPowerLoss(t *testing.T) {
	for name, damage := range map[string]func(t *testing.T, dir string){
		"the index is empty":   func(t *testing.T, d string) { each(t, d, "*.idx", func(p string) error { return os.Truncate(p, 0) }) },
		"the index is missing": func(t *testing.T, d string) { each(t, d, "*.idx", os.Remove) },
		"the index is half there": func(t *testing.T, d string) {
			each(t, d, "*.idx", func(p string) error { return os.Truncate(p, 1060) })
		},
		"the ref is empty":   func(t *testing.T, d string) { truncate(t, filepath.Join(d, "refs/heads/main"), 0) },
		"the ref is missing": func(t *testing.T, d string) { remove(t, filepath.Join(d, "refs/heads/main")) },
		"the ref is old": func(t *testing.T, d string) {
			old := git(t, d, "rev-parse", "main~2")
			overwrite(t, filepath.Join(d, "refs/heads/main"), old+"\n")
		},
		"half a line follows in the log": func(t *testing.T, d string) {
			p := filepath.Join(d, "logs/refs/heads/main")
			b, err := os.ReadFile(p)
			if err != nil {
				t.Fatal(err)
			}
			overwrite(t, p, string(b)+string(b[:60]))
		},
		"git's lock is left": func(t *testing.T, d string) { overwrite(t, filepath.Join(d, "refs/heads/main.lock"), "") },
		"the log is gone":    func(t *testing.T, d string) { remove(t, filepath.Join(d, "logs/refs/heads/main")) },
		"an operator packed everything": func(t *testing.T, d string) {
			git(t, d, "repack", "-adq")
			git(t, d, "pack-refs", "--all")
			each(t, d, "*.idx", os.Remove)
		},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			s, err := Open(Options{Dir: dir})
			if err != nil {
				t.Fatal(err)
			}
			id := newSpace(t, s, map[string]string{"start": "x"})
			var last space.Commit
			for i := range 3 {
				last = commit(t, s, id, writes(map[string]string{fmt.Sprint(i): strings.Repeat("content ", i*100)}))
			}
			if err := s.Close(); err != nil {
				t.Fatal(err)
			}
			damage(t, filepath.Join(dir, string(id)+".git"))
			s = newStore(t, func(o *Options) { o.Dir = dir })
			if h, err := s.Head(t.Context(), id); err != nil || h != last.ID {
				t.Fatalf("head %s, want %s: %v", h, last.ID, err)
			}
			commit(t, s, id, writes(map[string]string{"after": "x"}))
			if n := len(tree(t, s, id)); n != 5 {
				t.Errorf("%d files", n)
			}
			fsck(t, s, id)
		})
	}
}

func each(t testing.TB, dir, glob string, f func(string) error) {
	t.Helper()
	ps, err := filepath.Glob(filepath.Join(dir, "objects/pack", glob))
	if err != nil || len(ps) == 0 {
		t.Fatalf("%s: %v %v", glob, ps, err)
	}
	for _, p := range ps {
		os.Chmod(p, 0o600)
		if err := f(p); err != nil {
			t.Fatal(err)
		}
	}
}

func truncate(t testing.TB, p string, n int64) {
	t.Helper()
	if err := os.Truncate(p, n); err != nil {
		t.Fatal(err)
	}
}

func remove(t testing.TB, p string) {
	t.Helper()
	if err := os.Remove(p); err != nil {
		t.Fatal(err)
	}
}

func overwrite(t testing.TB, p, data string) {
	t.Helper()
	if err := os.WriteFile(p, []byte(data), 0o600); err != nil {
		t.Fatal(err)
	}
}
