package gitstore

import (
	"context"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"

	"satchel/internal/fault"
	"satchel/internal/space"
)

// leftOf lists the files of a space that are left in a store's directory.
func leftOf(t *testing.T, dir string, id space.SpaceID) []string {
	t.Helper()
	var left []string
	err := filepath.WalkDir(dir, func(p string, _ os.DirEntry, err error) error {
		if strings.Contains(filepath.Base(p), string(id)) {
			left = append(left, p)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return left
}

func TestDelete(t *testing.T) {
	s := newStore(t)
	id, other := newSpace(t, s, map[string]string{"a": "x"}), newSpace(t, s, map[string]string{"a": "x"})
	if err := s.Warm(t.Context(), id); err != nil {
		t.Fatal(err)
	}
	head, err := s.Head(t.Context(), id)
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Delete(t.Context(), id); err != nil {
		t.Fatal(err)
	}
	if left := leftOf(t, s.o.Dir, id); len(left) > 0 {
		t.Errorf("left %v", left)
	}
	s.cache.Mu.Lock()
	for _, k := range s.cache.Items.Keys() {
		if k.DB.Dir == filepath.Join(s.repoDir(id), "objects") {
			t.Errorf("an object of it is in memory: %s", k.Hash)
		}
	}
	s.cache.Mu.Unlock()
	for what, do := range map[string]func() error{
		"head":  func() error { _, err := s.Head(t.Context(), id); return err },
		"files": func() error { _, err := s.Files(t.Context(), id, head, ""); return err },
		"commit": func() error {
			_, err := s.Commit(t.Context(), id, writes(map[string]string{"b": "y"}), space.Meta{Author: ada})
			return err
		},
		"seed":   func() error { _, err := s.Checkout(t.Context(), id); return err },
		"bundle": func() error { return s.Bundle(t.Context(), id, io.Discard) },
		"tidy":   func() error { _, err := s.GC(t.Context(), id); return err },
		"forget": func() error { return s.ForgetRemote(t.Context(), id) },
	} {
		if err := do(); fault.CodeOf(err) != fault.NotFound {
			t.Errorf("%s: %v", what, err)
		}
	}
	if ids, err := s.Spaces(); err != nil || len(ids) != 1 || ids[0] != other {
		t.Errorf("there are %v, %v", ids, err)
	}
	if _, err := s.Create(t.Context(), id, space.ChangeSet{}, space.Meta{Author: ada}); fault.CodeOf(err) != fault.Conflict {
		t.Errorf("another space of its id: %v", err)
	}
	for what, id := range map[string]space.SpaceID{"again": id, "one that never was": space.NewSpaceID()} {
		if err := s.Delete(t.Context(), id); err != nil {
			t.Errorf("%s: %v", what, err)
		}
	}
	if err := s.Delete(t.Context(), "../x"); fault.CodeOf(err) != fault.Invalid {
		t.Errorf("ATTACK: a path for an id: %v", err)
	}
	commit(t, s, other, writes(map[string]string{"b": "y"}))
}

// A damaged space can be deleted too.
func TestDeleteOfADamagedSpace(t *testing.T) {
	s := newStore(t)
	id := newSpace(t, s, map[string]string{"a": "x"})
	if err := os.RemoveAll(filepath.Join(s.repoDir(id), "objects")); err != nil {
		t.Fatal(err)
	}
	if err := s.Delete(t.Context(), id); err != nil {
		t.Error(err)
	}
	if left := leftOf(t, s.o.Dir, id); len(left) > 0 {
		t.Errorf("left %v", left)
	}
}

// A sandbox of the space keeps its files until it releases them. Meanwhile, no other caller
// gets files of the space.
func TestDeleteWaitsForSeeds(t *testing.T) {
	s := newStore(t)
	id := newSpace(t, s, map[string]string{"a": "x"})
	seed, err := s.Checkout(t.Context(), id)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := s.Delete(ctx, id); fault.CodeOf(err) != fault.Unavailable {
		t.Errorf("while a sandbox has it: %v", err)
	}
	if b, err := os.ReadFile(filepath.Join(seed.Dir, "a")); err != nil || string(b) != "x" {
		t.Errorf("the sandbox reads %q, %v", b, err)
	}
	if _, err := s.Commit(t.Context(), id, writes(map[string]string{"b": "y"}), space.Meta{Author: ada}); fault.CodeOf(err) != fault.NotFound {
		t.Errorf("what the sandbox commits: %v", err)
	}
	done := make(chan error)
	go func() { done <- s.Delete(t.Context(), id) }()
	seed.Release()
	if err := <-done; err != nil {
		t.Error(err)
	}
	if left := leftOf(t, s.o.Dir, id); len(left) > 0 {
		t.Errorf("left %v", left)
	}
}

// stuck is a writer that blocks in each write until on is closed.
type stuck struct{ began, on chan struct{} }

func (w *stuck) Write(p []byte) (int, error) {
	select {
	case <-w.began:
	default:
		close(w.began)
	}
	<-w.on
	return len(p), nil
}

// A running download ends as if the space had never existed.
func TestDeleteEndsBundles(t *testing.T) {
	s := newStore(t)
	id := newSpace(t, s, map[string]string{"a": strings.Repeat("x", 1<<20)})
	w := &stuck{make(chan struct{}), make(chan struct{})}
	ended, deleted := make(chan error, 1), make(chan error, 1)
	go func() { ended <- s.Bundle(t.Context(), id, w) }()
	<-w.began
	go func() { deleted <- s.Delete(t.Context(), id) }()
	close(w.on)
	if err := <-ended; err != nil && fault.CodeOf(err) != fault.NotFound {
		t.Errorf("the bundle: %v", err)
	}
	if err := <-deleted; err != nil {
		t.Errorf("the deletion: %v", err)
	}
}

// Commits, reads and sandboxes that begin during a deletion either end before it or find no
// space.
func TestDeleteBesideEverything(t *testing.T) {
	s := newStore(t)
	for range 5 {
		id := newSpace(t, s, map[string]string{"a": "x"})
		var wg sync.WaitGroup
		begun := make(chan struct{}, 100)
		check := func(what string, do func(i int) error) {
			wg.Go(func() {
				for i := 0; ; i++ {
					err := do(i)
					select {
					case begun <- struct{}{}:
					default:
					}
					if fault.CodeOf(err) == fault.NotFound {
						return
					}
					if err != nil {
						t.Errorf("%s: %v", what, err)
						return
					}
				}
			})
		}
		for w := range 2 {
			check("commit", func(i int) error {
				_, err := s.Commit(t.Context(), id, writes(map[string]string{"f" + strconv.Itoa(w) + "-" + strconv.Itoa(i): "y"}), space.Meta{Author: ada})
				return err
			})
		}
		check("read", func(int) error {
			head, err := s.Head(t.Context(), id)
			if err == nil {
				_, _, err = s.Open(t.Context(), id, head, "a")
			}
			return err
		})
		check("sandbox", func(int) error { return s.Warm(t.Context(), id) })
		check("log", func(int) error { _, err := s.Log(t.Context(), id, space.LogQuery{Limit: 3}); return err })
		for range 20 {
			<-begun
		}
		if err := s.Delete(t.Context(), id); err != nil {
			t.Error(err)
		}
		wg.Wait()
		if left := leftOf(t, s.o.Dir, id); len(left) > 0 {
			t.Errorf("left %v", left)
		}
	}
}

// TestDeleteCrash kills a process at every step of a deletion. The space must then be whole or
// gone, and the deletion can be continued.
func TestDeleteCrash(t *testing.T) {
	whole, none := 0, 0
	for step := 1; step <= 3; step++ {
		dir := t.TempDir()
		s, err := Open(Options{Dir: dir})
		if err != nil {
			t.Fatal(err)
		}
		id := newSpace(t, s, map[string]string{"a": "x"})
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
		cmd := exec.Command(os.Args[0], "-test.run=^TestDeleteCrashChild$")
		cmd.Env = append(os.Environ(), "SATCHEL_CRASH_DIR="+dir, "SATCHEL_CRASH_SPACE="+string(id), "SATCHEL_CRASH_STEP="+strconv.Itoa(step))
		out, err := cmd.CombinedOutput()
		var exit *exec.ExitError
		if !errors.As(err, &exit) || exit.ExitCode() != -1 {
			t.Fatalf("step %d: the child was to be killed: %v\n%s", step, err, out)
		}
		if s, err = Open(Options{Dir: dir}); err != nil {
			t.Fatal(err)
		}
		_, err = s.Head(t.Context(), id)
		switch fault.CodeOf(err) {
		case "":
			whole++
			fsck(t, s, id)
		case fault.NotFound:
			none++
			if left := leftOf(t, dir, id); len(left) > 0 {
				t.Errorf("step %d: left %v", step, left)
			}
		default:
			t.Errorf("step %d: %v", step, err)
		}
		if err := s.Delete(t.Context(), id); err != nil {
			t.Errorf("step %d: taken up: %v", step, err)
		}
		if left := leftOf(t, dir, id); len(left) > 0 {
			t.Errorf("step %d: left %v", step, left)
		}
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
	}
	if whole == 0 || none == 0 {
		t.Errorf("%d whole and %d gone: the test shows little", whole, none)
	}
}

// TestDeleteCrashChild is the process that TestDeleteCrash kills.
func TestDeleteCrashChild(t *testing.T) {
	dir := os.Getenv("SATCHEL_CRASH_DIR")
	if dir == "" || os.Getenv("SATCHEL_CRASH_MODE") != "" {
		t.Skip("only runs as a child of TestDeleteCrash")
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
	if err := s.Delete(t.Context(), space.SpaceID(os.Getenv("SATCHEL_CRASH_SPACE"))); err != nil {
		t.Fatal(err)
	}
}
