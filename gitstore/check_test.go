package gitstore

import (
	"crypto/rand"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"satchel/gitstore/damagetest"
	"satchel/gitstore/packfile"
	"satchel/internal/fault"
	"satchel/internal/space"
)

func randomText(lines int) string {
	var b strings.Builder
	for range lines {
		b.WriteString(rand.Text() + "\n")
	}
	return b.String()
}

// letGo closes a space that is open.
func letGo(s *Store, id space.SpaceID) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if r := s.open[id]; r != nil {
		r.db.Close()
		delete(s.open, id)
	}
}

// backup copies a space's repository.
func backup(t *testing.T, s *Store, id space.SpaceID) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "copy.git")
	if err := os.CopyFS(dir, os.DirFS(s.repoDir(id))); err != nil {
		t.Fatal(err)
	}
	return dir
}

func turnFile(t *testing.T, name string, at int64) {
	t.Helper()
	if err := damagetest.TurnFile(name, at); err != nil {
		t.Fatal(err)
	}
}

// again opens a copy of a store, which has read nothing yet.
func again(t *testing.T, s *Store) *Store {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "again")
	if err := os.CopyFS(dir, os.DirFS(s.o.Dir)); err != nil {
		t.Fatal(err)
	}
	return newStore(t, func(o *Options) { o.Dir = dir })
}

func packsOf(t *testing.T, s *Store, id space.SpaceID) []string {
	t.Helper()
	packs, err := filepath.Glob(filepath.Join(s.repoDir(id), "objects", "pack", "*.pack"))
	if err != nil {
		t.Fatal(err)
	}
	return packs
}

func check(t *testing.T, s *Store, id space.SpaceID) Checkup {
	t.Helper()
	c, err := s.Check(t.Context(), id)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// A changed byte anywhere in a pack is noticed, and good copies from a backup restore
// the space, even if it cannot be opened.
func TestRepairOfAnyByte(t *testing.T) {
	s := newStore(t)
	files := map[string]string{"notes/a.md": randomText(30) + "a", "b": "b"}
	id := newSpace(t, s, files)
	for i := range 3 { // with deltas
		files["notes/a.md"] += fmt.Sprintf("\nline %d", i)
		cs := writes(map[string]string{"notes/a.md": files["notes/a.md"]})
		base, _, _, err := s.Blob(t.Context(), id, "", "notes/a.md")
		if err != nil {
			t.Fatal(err)
		}
		cs.Changes[0].Base = base
		commit(t, s, id, cs)
	}
	if err := s.Maintain(t.Context(), id); err != nil {
		t.Fatal(err)
	}
	files["c"] = "c"
	head := commit(t, s, id, writes(map[string]string{"c": "c"})).ID
	if c := check(t, s, id); !c.Whole() || c.Packs != 2 {
		t.Fatalf("before any damage: %+v", c)
	}
	copied := backup(t, s, id)
	repo := s.repoDir(id)
	try := func(name string, damage func()) {
		t.Run(name, func(t *testing.T) {
			damage()
			letGo(s, id)
			if _, err := s.Head(t.Context(), id); err != nil && (fault.CodeOf(err) != fault.Damaged || !strings.Contains(fault.PublicOf(err), "satchel space repair "+string(id))) {
				t.Errorf("a space that cannot be opened: %v", err)
			}
			if c := check(t, s, id); c.Whole() {
				t.Error("the damage was not noticed")
			}
			got, err := s.Repair(t.Context(), id, Copies{Dir: copied}, func(string) {})
			if err != nil || !got.Left.Whole() {
				t.Errorf("%+v, %v", got, err)
			}
			if now, err := s.Head(t.Context(), id); err != nil || now != head {
				t.Errorf("head %s: %v", now, err)
			}
			if got := tree(t, s, id); !maps.Equal(got, files) {
				t.Errorf("%d files, not as they were", len(got))
			}
			fsck(t, s, id)
			commit(t, s, id, writes(map[string]string{"d": name}))
			letGo(s, id)
			if err := os.RemoveAll(repo); err != nil {
				t.Fatal(err)
			}
			if err := os.CopyFS(repo, os.DirFS(copied)); err != nil {
				t.Fatal(err)
			}
		})
	}
	for i, pack := range packsOf(t, s, id) {
		st, err := os.Stat(pack)
		if err != nil {
			t.Fatal(err)
		}
		for _, at := range []int64{5, 12, 14, st.Size() / 3, st.Size() / 2, -30, -1} {
			try(fmt.Sprintf("pack %d at %d", i, at), func() { turnFile(t, pack, at) })
		}
		try(fmt.Sprintf("pack %d and its index", i), func() {
			turnFile(t, pack, 14)
			turnFile(t, strings.TrimSuffix(pack, ".pack")+".idx", 1100)
		})
		try(fmt.Sprintf("without pack %d", i), func() {
			for _, ext := range []string{".pack", ".idx"} {
				if err := os.Remove(strings.TrimSuffix(pack, ".pack") + ext); err != nil {
					t.Fatal(err)
				}
			}
		})
	}
}

// Check names damaged objects with their paths in the newest commit. Repair restores
// the objects that a copy has, and leaves the others unchanged.
func TestRepairOfWhatACopyHas(t *testing.T) {
	s := newStore(t)
	one, two := randomText(200), randomText(200)
	id := newSpace(t, s, map[string]string{"whole": "x"})
	commit(t, s, id, writes(map[string]string{"dir/one": one, "two": two}))
	before := backup(t, s, id)
	for _, pack := range packsOf(t, s, id) {
		st, err := os.Stat(pack)
		if err != nil {
			t.Fatal(err)
		}
		if st.Size() > 1000 { // the pack contains both files, one after the other
			for _, part := range []int64{3, 1} {
				turnFile(t, pack, st.Size()*part/4)
			}
		}
	}
	letGo(s, id)
	paths := func(c Checkup) (out []string) {
		for _, d := range c.Damaged {
			out = append(out, d.Paths...)
		}
		slices.Sort(out)
		return out
	}
	if got := paths(check(t, s, id)); !slices.Equal(got, []string{"dir/one", "two"}) {
		t.Fatalf("damaged: %q", got)
	}
	half := filepath.Join(t.TempDir(), "half.git")
	git(t, ".", "init", "-q", "--bare", half)
	file := filepath.Join(t.TempDir(), "one")
	overwrite(t, file, one)
	git(t, half, "hash-object", "-w", file)

	got, err := s.Repair(t.Context(), id, Copies{Dir: half}, func(string) {})
	if err != nil || got.Restored != 1 || !slices.Equal(paths(got.Left), []string{"two"}) {
		t.Fatalf("%+v, %v", got, err)
	}
	_, b, err := s.Open(t.Context(), id, "", "dir/one")
	if err != nil || string(b) != one {
		t.Errorf("the file that a copy had: %v", err)
	}
	if got, err = s.Repair(t.Context(), id, Copies{Dir: before}, func(string) {}); err != nil || !got.Left.Whole() {
		t.Fatalf("%+v, %v", got, err)
	}
	fsck(t, s, id)
	reopened(t, s, id)
}

// A changed letter in the log does not close the space, because the branch has the commit.
func TestADamagedNameInTheLog(t *testing.T) {
	s := newStore(t)
	id := newSpace(t, s, map[string]string{"a": "a"})
	commit(t, s, id, writes(map[string]string{"b": "b"}))
	head := commit(t, s, id, writes(map[string]string{"c": "c"})).ID
	log := s.unopened(id).logFile()
	letGo(s, id)
	b, err := os.ReadFile(log)
	if err != nil {
		t.Fatal(err)
	}
	overwrite(t, log, strings.ReplaceAll(string(b), string(head), strings.Repeat("5", 40)))
	if now, err := s.Head(t.Context(), id); err != nil || now != head {
		t.Fatalf("head %s: %v", now, err)
	}
	if c := check(t, s, id); !c.Whole() {
		t.Errorf("%+v", c)
	}
	commit(t, s, id, writes(map[string]string{"d": "d"}))
	letGo(s, id)
	if got := tree(t, s, id); len(got) != 4 {
		t.Errorf("%d files", len(got))
	}
}

// Commits continue if the branch's file is damaged or removed while the space is open.
func TestADamagedBranchOfAnOpenSpace(t *testing.T) {
	s := newStore(t)
	id := newSpace(t, s, map[string]string{"a": "a"})
	ref := s.unopened(id).refFile()
	overwrite(t, ref, strings.Repeat("\x00", 41))
	head := commit(t, s, id, writes(map[string]string{"b": "b"})).ID
	if got := git(t, s.repoDir(id), "rev-parse", "main"); got != string(head) {
		t.Errorf("the branch is at %s", got)
	}
	if err := os.Remove(ref); err != nil {
		t.Fatal(err)
	}
	head = commit(t, s, id, writes(map[string]string{"c": "c"})).ID
	letGo(s, id)
	if now, err := s.Head(t.Context(), id); err != nil || now != head {
		t.Errorf("head %s: %v", now, err)
	}
	fsck(t, s, id)
}

// Neither a check nor a repair finds a space whole that cannot be opened.
func TestASpaceThatCannotBeOpenedIsNotWhole(t *testing.T) {
	s := newStore(t)
	id := newSpace(t, s, map[string]string{"a": "a"})
	commit(t, s, id, writes(map[string]string{"b": "b"}))
	copied := backup(t, s, id)
	letGo(s, id)
	// The log names a newer commit, whose objects are completely gone.
	log := s.unopened(id).logFile()
	b, err := os.ReadFile(log)
	if err != nil {
		t.Fatal(err)
	}
	head := git(t, s.repoDir(id), "rev-parse", "main")
	overwrite(t, log, string(b)+head+" "+strings.Repeat("5", 40)+" a <a> 1 +0000\tcommit\n")
	if c := check(t, s, id); c.Whole() || !strings.Contains(c.Said, "cannot be opened") {
		t.Errorf("check: %+v", c)
	}
	if got, err := s.Repair(t.Context(), id, Copies{Dir: copied}, func(string) {}); err != nil || got.Left.Whole() {
		t.Errorf("repair: %+v, %v", got, err)
	}
}

// A file whose content is gone is damaged, and not missing.
func TestTheContentOfAFileThatIsGone(t *testing.T) {
	s := newStore(t)
	id := newSpace(t, s, map[string]string{"a": "a"})
	commit(t, s, id, writes(map[string]string{"dir/b": "b"}))
	blob, _, _, err := s.Blob(t.Context(), id, "", "dir/b")
	if err != nil {
		t.Fatal(err)
	}
	// A newer commit has its own pack, so that the older pack can be removed.
	commit(t, s, id, writes(map[string]string{"dir/c": "c"}))
	h, err := packfile.HashFrom(string(blob))
	if err != nil {
		t.Fatal(err)
	}
	letGo(s, id)
	for _, pack := range packsOf(t, s, id) {
		base := strings.TrimSuffix(pack, ".pack")
		p, err := packfile.Load(base)
		if err != nil {
			t.Fatal(err)
		}
		_, has := p.Find(h)
		p.Close()
		if has {
			if err := errors.Join(os.Remove(base+".pack"), os.Remove(base+".idx")); err != nil {
				t.Fatal(err)
			}
		}
	}
	s = again(t, s)
	if _, err := s.ReadBlob(t.Context(), id, blob); fault.CodeOf(err) != fault.Damaged {
		t.Errorf("what head has: %v", err)
	}
	if _, err := s.ReadBlob(t.Context(), id, space.BlobID(strings.Repeat("5", 40))); fault.CodeOf(err) != fault.NotFound {
		t.Errorf("what was never there: %v", err)
	}
}
