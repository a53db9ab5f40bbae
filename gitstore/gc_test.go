package gitstore

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"satchel/internal/fault"
	"satchel/internal/space"
	"satchel/internal/testenv"
)

// TestTidy checks that everything that accumulates has a limit, and that nothing that is needed
// is removed.
func TestTidy(t *testing.T) {
	s := newStore(t, func(o *Options) { o.IdlePacks = 10; o.Limits.Reflog = 2000 })
	id := newSpace(t, s, map[string]string{"a": "a"})
	dir := s.repoDir(id)
	if err := s.Warm(t.Context(), id); err != nil {
		t.Fatal(err)
	}
	for i := range 8 {
		commit(t, s, id, writes(map[string]string{fmt.Sprint(i): fmt.Sprint("content ", i)}))
	}
	done, err := s.GC(t.Context(), id)
	if err != nil || done != (GCResult{}) {
		t.Errorf("with little to do: %+v, %v", done, err)
	}
	for i := range 40 {
		commit(t, s, id, writes(map[string]string{fmt.Sprint("later-", i): fmt.Sprint("other content ", i)}))
	}
	// Leftovers: a day old, and new.
	old := time.Now().Add(-25 * time.Hour)
	var stale, fresh []string
	for _, name := range []string{"objects/pack/tmp_pack_abc", "objects/pack/.tmp-77-pack-x.pack", "objects/tmp_objdir-incoming-x/pack/y", "objects/ab/tmp_obj_x",
		"refs/.tmp-1", "refs/heads/other.lock", "packed-refs.lock", "logs/refs/heads/main.tmp"} {
		for _, suffix := range []string{"-old", "-new"} {
			p := filepath.Join(dir, strings.Replace(name, "x", suffix, 1))
			if !strings.Contains(name, "x") {
				p = filepath.Join(dir, name)
			}
			if err := os.MkdirAll(filepath.Dir(p), 0o700); err != nil {
				t.Fatal(err)
			}
			overwrite(t, p, "x")
			if suffix == "-old" || !strings.Contains(name, "x") {
				os.Chtimes(p, old, old)
				os.Chtimes(filepath.Dir(p), old, old)
				os.Chtimes(filepath.Dir(filepath.Dir(p)), old, old)
				stale = append(stale, p)
			} else {
				fresh = append(fresh, p)
			}
		}
	}
	loose := strings.TrimSpace(gitStdin(t, dir, "an operator's", "hash-object", "-w", "--stdin"))
	head := git(t, dir, "rev-parse", "main")
	log, err := os.ReadFile(filepath.Join(dir, "logs/refs/heads/main"))
	if err != nil {
		t.Fatal(err)
	}
	done, err = s.GC(t.Context(), id)
	if err != nil || !done.Packed || done.Leftovers < 6 || done.LogBytes == 0 {
		t.Fatalf("%+v, %v", done, err)
	}
	if st, err := s.Stats(t.Context(), id); err != nil || st.Packs > 2 {
		t.Errorf("%+v %v", st, err)
	}
	for _, p := range stale {
		if _, err := os.Stat(p); err == nil {
			t.Errorf("%s is left", p)
		}
	}
	for _, p := range fresh {
		if _, err := os.Stat(p); err != nil {
			t.Errorf("%s may still be written to: %v", p, err)
		}
	}
	if _, err := os.Stat(filepath.Join(dir, "objects", loose[:2], loose[2:])); err == nil {
		t.Error("the loose object is loose still")
	}
	if got := git(t, dir, "cat-file", "blob", loose); got != "an operator's" {
		t.Errorf("the loose object says %q", got)
	}
	short, err := os.ReadFile(filepath.Join(dir, "logs/refs/heads/main"))
	if err != nil || len(short) > 1000 || !strings.HasSuffix(string(log), string(short)) || int64(len(log)-len(short)) != done.LogBytes {
		t.Errorf("log of %d bytes became one of %d (%+v): %v", len(log), len(short), done, err)
	}
	if got := git(t, dir, "rev-parse", "main@{0}"); got != head {
		t.Errorf("the log ends at %s", got)
	}
	for _, p := range fresh {
		os.Remove(p)
	}
	fsck(t, s, id)
	seed, err := s.Checkout(t.Context(), id)
	if err != nil {
		t.Fatal(err)
	}
	defer seed.Release()
	if got := git(t, seed.GitView, "--work-tree="+seed.Dir, "status", "--porcelain"); got != "" {
		t.Errorf("status in a sandbox: %s", got)
	}
	commit(t, s, id, writes(map[string]string{"later": "x"}))
	reopened(t, s, id)
	if n := len(tree(t, s, id)); n != 50 {
		t.Errorf("%d files", n)
	}
}

// TestSweep removes old directories that belong to no space.
func TestSweep(t *testing.T) {
	s := newStore(t)
	old := time.Now().Add(-25 * time.Hour)
	make := func(name string, when time.Time) string {
		p := filepath.Join(s.o.Dir, name)
		if err := os.MkdirAll(filepath.Join(p, "repo.git"), 0o700); err != nil {
			t.Fatal(err)
		}
		overwrite(t, filepath.Join(p, "repo.git", "f"), "x")
		os.Chtimes(filepath.Join(p, "repo.git", "f"), when, when)
		os.Chtimes(filepath.Join(p, "repo.git"), old, old)
		os.Chtimes(p, old, old)
		return p
	}
	stale := []string{make(".quarantine/import-1", old), make(".new-1", old)}
	fresh := []string{make(".quarantine/import-2", time.Now()), make(".new-2", time.Now())}
	if n, err := s.Sweep(t.Context()); n != 2 || err != nil {
		t.Errorf("%d, %v", n, err)
	}
	for _, p := range stale {
		if _, err := os.Stat(p); err == nil {
			t.Errorf("%s is left", p)
		}
	}
	for _, p := range fresh {
		if _, err := os.Stat(p); err != nil {
			t.Error(err)
		}
	}
}

// TestAPurgeThatCannotRemoveIsFinishedLater checks that the new history stays, that the error
// says so, and that GC or opening the space finishes the purge.
func TestAPurgeThatCannotRemoveIsFinishedLater(t *testing.T) {
	real := testenv.NeedProgram(t, "git")
	for _, how := range []string{"GC", "opening the space"} {
		t.Run(how, func(t *testing.T) {
			dir := t.TempDir()
			script, flag := filepath.Join(dir, "git"), filepath.Join(dir, "no-room")
			overwrite(t, script, "#!/bin/sh\nif [ -e '"+flag+"' ]; then case \"$*\" in *pack-objects*) echo 'fatal: write error: No space left on device' >&2; exit 128;; esac; fi\nexec '"+real+"' \"$@\"\n")
			if err := os.Chmod(script, 0o700); err != nil {
				t.Fatal(err)
			}
			s := newStore(t, func(o *Options) { o.Git = script })
			id := newSpace(t, s, map[string]string{"a": "a"})
			commit(t, s, id, writes(map[string]string{"k": secret}))
			overwrite(t, flag, "")
			res, err := s.Purge(t.Context(), id, "", redact, space.Meta{Author: ada})
			if fault.CodeOf(err) != fault.Unavailable || !strings.Contains(fault.PublicOf(err), "tried again") {
				t.Fatalf("%v", err)
			}
			if h, _ := s.Head(t.Context(), id); h != res.Head || !res.Commit.Changed || tree(t, s, id)["k"] != "REDACTED" {
				t.Errorf("head %s, %+v", h, res)
			}
			if _, err := s.GC(t.Context(), id); fault.CodeOf(err) != fault.Unavailable {
				t.Errorf("tidy with a full disk: %v", err)
			}
			commit(t, s, id, writes(map[string]string{"later": "x"}))
			remove(t, flag)
			if how == "GC" {
				if done, err := s.GC(t.Context(), id); err != nil || !done.Purged {
					t.Fatalf("%+v, %v", done, err)
				}
			} else {
				reopened(t, s, id)
			}
			assertGone(t, s.o.Dir)
			fsck(t, s, id)
			if n := len(tree(t, s, id)); n != 3 {
				t.Errorf("%d files", n)
			}
		})
	}
}

// TestTidyDropsWhatNothingReaches checks that unreachable objects are removed once they fill
// half of the repository, and that objects stay if a ref or the reflog names them.
func TestTidyDropsWhatNothingReaches(t *testing.T) {
	s := newStore(t, func(o *Options) { o.Limits.Repository = 200 << 10 })
	id := newSpace(t, s, map[string]string{"a": "a"})
	dir := s.repoDir(id)
	if err := s.Warm(t.Context(), id); err != nil {
		t.Fatal(err)
	}
	r := rand.New(rand.NewPCG(1, 9))
	garbage := strings.TrimSpace(gitStdin(t, dir, noise(r, 60<<10), "hash-object", "-w", "--stdin"))
	// A commit that a ref keeps, and an old head that only the reflog names.
	kept := git(t, dir, "commit-tree", "-m", "kept", git(t, dir, "rev-parse", "main^{tree}"))
	git(t, dir, "update-ref", keptRefs+kept, kept)
	tip := git(t, dir, "commit-tree", "-m", "theirs", git(t, dir, "rev-parse", "main^{tree}"))
	git(t, dir, "update-ref", "refs/remotes/origin/main", tip)
	c := commit(t, s, id, writes(map[string]string{"b": noise(r, 5000)}))
	if _, err := s.ResetToRemote(t.Context(), id, space.CommitID(tip), space.Meta{Author: ada}); err != nil {
		t.Fatal(err)
	}
	git(t, dir, "update-ref", "-d", keptRefs+string(c.ID)) // now only the reflog names it
	seed, err := s.Checkout(t.Context(), id)
	if err != nil {
		t.Fatal(err)
	}
	if done, err := s.GC(t.Context(), id); err != nil || done.Collected {
		t.Errorf("far from full: %+v, %v", done, err)
	}
	big := strings.TrimSpace(gitStdin(t, dir, noise(r, 60<<10), "hash-object", "-w", "--stdin"))
	if done, err := s.GC(t.Context(), id); err != nil || done.Collected || !done.Packed {
		t.Errorf("with a live sandbox: %+v, %v", done, err)
	}
	seed.Release()
	if done, err := s.GC(t.Context(), id); err != nil || !done.Collected {
		t.Fatalf("%+v, %v", done, err)
	}
	for _, h := range []string{garbage, big} {
		if _, err := s.ReadBlob(t.Context(), id, space.BlobID(h)); fault.CodeOf(err) != fault.NotFound {
			t.Errorf("%s is there still: %v", h, err)
		}
	}
	for _, h := range []string{kept, tip, string(c.ID)} {
		if _, err := s.Show(t.Context(), id, space.CommitID(h)); err != nil {
			t.Errorf("%s is lost: %v", h, err)
		}
	}
	if st, err := s.Stats(t.Context(), id); err != nil || st.PackBytes > 20<<10 || st.Packs != 1 {
		t.Errorf("%+v %v", st, err)
	}
	if done, err := s.GC(t.Context(), id); err != nil || done != (GCResult{}) {
		t.Errorf("again: %+v, %v", done, err)
	}
	fsck(t, s, id)
	if seed, err = s.Checkout(t.Context(), id); err != nil {
		t.Fatal(err)
	}
	defer seed.Release()
	if got := git(t, seed.GitView, "--work-tree="+seed.Dir, "status", "--porcelain"); got != "" {
		t.Errorf("status in a sandbox: %s", got)
	}
	git(t, seed.GitView, "fsck", "--full", "--strict")
}
