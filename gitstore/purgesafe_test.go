package gitstore

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"satchel/internal/fault"
	"satchel/internal/space"
)

// TestPurgeLeavesNothingInCaches checks that no checkout, git view, loose object, leftover or
// cached object contains the secret, and searches the whole directory.
func TestPurgeLeavesNothingInCaches(t *testing.T) {
	s := newStore(t)
	id := newSpace(t, s, map[string]string{"a": "a"})
	c := commit(t, s, id, writes(map[string]string{"k": secret, "b": "b"}))
	if err := s.Warm(t.Context(), id); err != nil {
		t.Fatal(err)
	}
	dir := s.repoDir(id)
	gitStdin(t, dir, "loose "+secret, "hash-object", "-w", "--stdin")
	overwrite(t, filepath.Join(dir, "objects/pack/tmp_pack_left"), secret)
	overwrite(t, filepath.Join(dir, "objects/info/packs"), "P pack-x.pack")
	old, _, err := s.Open(t.Context(), id, c.ID, "k")
	if err != nil {
		t.Fatal(err)
	}
	res, err := s.Purge(t.Context(), id, "", leaveOut, space.Meta{Author: ada})
	if err != nil || len(res.Files) != 1 {
		t.Fatalf("%+v %v", res, err)
	}
	assertGone(t, s.o.Dir)
	if _, err := s.ReadBlob(t.Context(), id, old.Blob); fault.CodeOf(err) != fault.NotFound {
		t.Errorf("the blob can still be read: %v", err)
	}
	if _, _, err := s.Open(t.Context(), id, c.ID, "k"); fault.CodeOf(err) != fault.NotFound {
		t.Errorf("the commit can still be read: %v", err)
	}
	seed, err := s.Checkout(t.Context(), id)
	if err != nil {
		t.Fatal(err)
	}
	defer seed.Release()
	if got := git(t, seed.GitView, "--work-tree="+seed.Dir, "status", "--porcelain"); got != "" {
		t.Errorf("a new sandbox starts with %s", got)
	}
	assertGone(t, s.o.Dir)
	fsck(t, s, id)
}

// TestPurgeIsRefused checks that a refused purge changes nothing.
func TestPurgeIsRefused(t *testing.T) {
	s := newStore(t)
	id := newSpace(t, s, map[string]string{"k": secret})
	head, _ := s.Head(t.Context(), id)
	purge := func(ctx context.Context, since space.CommitID) error {
		_, err := s.Purge(ctx, id, since, redact, space.Meta{Author: ada})
		return err
	}
	seed, err := s.Checkout(t.Context(), id)
	if err != nil {
		t.Fatal(err)
	}
	if err := purge(t.Context(), ""); fault.CodeOf(err) != fault.Conflict || !strings.Contains(fault.PublicOf(err), "Stop it") {
		t.Errorf("with a live sandbox: %v", err)
	}
	seed.Release()
	if err := purge(t.Context(), space.CommitID(strings.Repeat("ab", 20))); fault.CodeOf(err) != fault.NotFound {
		t.Errorf("since an unknown commit: %v", err)
	}
	r, release, err := s.acquire(t.Context(), id)
	if err != nil {
		t.Fatal(err)
	}
	defer release()
	r.unreached.RLock()
	if err := purge(t.Context(), ""); fault.CodeOf(err) != fault.Conflict {
		t.Errorf("during an import: %v", err)
	}
	r.unreached.RUnlock()
	packs, _ := filepath.Glob(filepath.Join(s.repoDir(id), "objects/pack/*"))
	ctx, cancel := context.WithCancel(t.Context())
	_, err = s.Purge(ctx, id, "", func(p space.Path, b []byte) ([]byte, bool) { cancel(); return redact(p, b) }, space.Meta{})
	if err == nil {
		t.Error("a purge that was cancelled went on")
	}
	if left, _ := filepath.Glob(filepath.Join(s.repoDir(id), "objects/pack/*")); len(left) != len(packs) {
		t.Errorf("left behind: %v", left)
	}
	if h, _ := s.Head(t.Context(), id); h != head {
		t.Error("the head moved")
	}
	if err := purge(t.Context(), ""); err != nil {
		t.Error(err)
	}
	assertGone(t, s.o.Dir)
}

// TestPurgeBesideReadsAndCommits checks that readers don't notice a purge, and that waiting
// commits are made on the new history.
func TestPurgeBesideReadsAndCommits(t *testing.T) {
	s := newStore(t)
	id := newSpace(t, s, map[string]string{"a": "stays"})
	for i := range 20 {
		commit(t, s, id, writes(map[string]string{fmt.Sprint("k", i): secret}))
	}
	var work sync.WaitGroup
	done := make(chan struct{})
	work.Go(func() {
		for i := 0; ; i++ {
			select {
			case <-done:
				return
			default:
			}
			if _, data, err := s.Open(context.Background(), id, "", "a"); err != nil || string(data) != "stays" {
				t.Errorf("read: %q, %v", data, err)
				return
			}
			if _, err := s.Children(context.Background(), id, "", ""); err != nil {
				t.Errorf("list: %v", err)
				return
			}
		}
	})
	var commits int
	work.Go(func() {
		for ; ; commits++ {
			select {
			case <-done:
				return
			default:
			}
			if _, err := s.Commit(context.Background(), id, writes(map[string]string{fmt.Sprint("n", commits): "x"}), space.Meta{Author: ada}); err != nil {
				t.Errorf("commit: %v", err)
				return
			}
		}
	})
	for i := range 3 {
		if _, err := s.Purge(t.Context(), id, "", redact, space.Meta{Author: ada}); err != nil {
			t.Error(err)
		}
		commit(t, s, id, writes(map[string]string{fmt.Sprint("again", i): secret}))
	}
	if _, err := s.Purge(t.Context(), id, "", redact, space.Meta{Author: ada}); err != nil {
		t.Error(err)
	}
	close(done)
	work.Wait()
	assertGone(t, s.o.Dir)
	fsck(t, s, id)
	files, err := s.Files(t.Context(), id, "", "")
	if err != nil || len(files) != 1+20+3+commits {
		t.Errorf("%d files with %d commits meanwhile, %v", len(files), commits, err)
	}
}
