package sources_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"satchel/gitstore/sources"
	"satchel/internal/fault"
	"satchel/internal/space"
)

func TestAttackLinksThatLeaveTheSnapshot(t *testing.T) {
	w := newWorld(t, sqlite(t), map[string]string{
		"knowledge/in.md": "inside", "knowledge/ok": "-> in.md", "knowledge/sub/up": "-> ../in.md",
		"knowledge/out": "-> ../secret.txt", "knowledge/sub/far": "-> ../../secret.txt", "knowledge/round": "-> ../knowledge/in.md",
		"secret.txt": "hidden",
	})
	s := w.add()
	if got, want := w.paths(s), "in.md ok sub/up"; got != want {
		t.Errorf("the snapshot has %q, want %q", got, want)
	}
	dir, release, err := w.Library(t.Context(), bob)
	must(t, err)
	defer release()
	if got, want := tree(t, dir), "docs/team-notes/in.md=inside docs/team-notes/ok -> in.md docs/team-notes/sub/up -> ../in.md"; got != want {
		t.Errorf("a sandbox has %q, want %q", got, want)
	}
}

func TestAttackPathsOutOfTheDirectory(t *testing.T) {
	w := newWorld(t, sqlite(t), files)
	s := w.add()
	for _, p := range []space.Path{
		"../secret.txt", "..", "../knowledge2/c.md", "deep/../../secret.txt", "/secret.txt", "secret.txt", "memory/person/name.md",
		"A.md", "a.md/", "./a.md", "deep//b.md", "knowledge/a.md", "a.md\x00", ".git", "deep/",
	} {
		_, err := w.Lookup(t.Context(), s.Collection, s.Commit, p)
		wantCode(t, "a file at "+string(p), err, fault.NotFound)
		_, err = w.Children(t.Context(), s.Collection, s.Commit, p)
		wantCode(t, "a directory at "+string(p), err, fault.NotFound)
		if list, err := w.Files(t.Context(), s.Collection, s.Commit, p); err != nil || len(list) > 0 {
			t.Errorf("below %q are %v, %v", p, list, err)
		}
	}
	b, _, ok, err := w.git.Blob(t.Context(), w.id, "", "secret.txt")
	if err != nil || !ok {
		t.Fatal(err)
	}
	_, err = w.ReadBlob(t.Context(), s.Collection, b)
	wantCode(t, "a blob of another file of the space", err, fault.NotFound)
	_, err = w.ReadBlob(t.Context(), w.id, b)
	wantCode(t, "the space as if it were a source", err, fault.NotFound)
	_, err = w.Lookup(t.Context(), w.id, s.Commit, "secret.txt")
	wantCode(t, "a file of the space as if it were a source", err, fault.NotFound)
}

func TestAttackAUserWithoutAName(t *testing.T) {
	w := newWorld(t, sqlite(t), files)
	w.add()
	if got := w.sees(""); got != "" {
		t.Errorf("nobody sees %q", got)
	}
}

// The library contains nothing that a purge removed from a space's history.
func TestPurgedContentLeavesSnapshots(t *testing.T) {
	w := newWorld(t, sqlite(t), map[string]string{"knowledge/a.md": "alpha", "knowledge/key.md": "hunter2"})
	s := w.add()
	dir, release, err := w.Library(t.Context(), bob)
	must(t, err)
	defer release()
	// The secret is in an older snapshot and in the current one.
	w.write(map[string]string{"knowledge/b.md": "beta"})
	w.synced("team-notes")
	_, err = w.git.Purge(t.Context(), w.id, "", func(p space.Path, b []byte) ([]byte, bool) {
		return []byte(strings.ReplaceAll(string(b), "hunter2", "[removed]")), true
	}, meta)
	must(t, err)
	all, err := w.Purged(t.Context(), w.id)
	must(t, err)
	if len(all) != 1 || all[0] != s.Collection {
		t.Errorf("the indexes to be made anew are %v", all)
	}
	if got, want := tree(t, dir), "docs/team-notes/a.md=alpha docs/team-notes/b.md=beta docs/team-notes/key.md=[removed]"; got != want {
		t.Errorf("the running sandbox has %q, want %q", got, want)
	}
	must(t, filepath.WalkDir(w.dir, func(p string, d os.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() {
			return err
		}
		if b, err := os.ReadFile(p); err != nil || strings.Contains(string(b), "hunter2") {
			t.Errorf("%s has %q, %v", p, b, err)
		}
		return nil
	}))
	if _, err := w.Files(t.Context(), s.Collection, s.Commit, ""); err == nil {
		t.Error("the snapshot of the old history can still be read")
	}
}

func TestSandboxesSeeFilesThatNobodyCanWrite(t *testing.T) {
	w := newWorld(t, sqlite(t), files)
	w.add()
	dir, release, err := w.Library(t.Context(), bob)
	must(t, err)
	must(t, filepath.WalkDir(dir, func(p string, d os.DirEntry, err error) error {
		if err != nil {
			return err
		}
		st, err := os.Lstat(p)
		if err == nil && st.Mode().Perm()&0o022 != 0 || err == nil && st.Mode().Perm()&0o004 == 0 {
			t.Errorf("%s has mode %v", p, st.Mode())
		}
		return err
	}))
	again, releaseAgain, err := w.Library(t.Context(), bob)
	must(t, err)
	if again != dir {
		t.Error("two sandboxes of a user have two libraries")
	}
	release()
	release() // a second call has no effect
	if tree(t, dir) == "" {
		t.Error("the library went with the first of two sandboxes")
	}
	releaseAgain()
	if _, err := os.Stat(dir); !os.IsNotExist(err) {
		t.Errorf("the library is left behind: %v", err)
	}
	other, releaseOther, err := w.Library(t.Context(), eve)
	must(t, err)
	defer releaseOther()
	if other == dir {
		t.Error("two users share a library")
	}
}

func TestCommitsAreFollowed(t *testing.T) {
	w := newWorld(t, sqlite(t), files)
	s := w.add()
	for len(w.changes) > 0 {
		<-w.changes
	}
	c := w.write(map[string]string{"knowledge/a.md": "changed"})
	w.Publish(space.Event{Space: w.id, Commit: c})
	if got := <-w.changes; got != s.Collection {
		t.Errorf("the index was told of %s", got)
	}
	if at, err := w.Head(t.Context(), s.Collection); err != nil || at != c.ID {
		t.Errorf("the snapshot shows %s, %v; want %s", at, err, c.ID)
	}
	d, err := w.Diff(t.Context(), s.Collection, s.Commit, c.ID)
	if err != nil || len(d) != 1 || d[0].Path != "a.md" || d[0].Status != space.Modified {
		t.Errorf("the difference is %v, %v", d, err)
	}
	var _ sources.Store = w.git
}
