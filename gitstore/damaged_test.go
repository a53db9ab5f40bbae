//go:build unix

package gitstore

import (
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

// flip damages an object in every pack that contains it: its content or its header.
func flip(t testing.TB, s *Store, id space.SpaceID, h packfile.Hash, content bool) {
	t.Helper()
	if err := damagetest.TurnObject(s.repoDir(id), h.String(), content); err != nil {
		t.Fatal(err)
	}
}

// damagedStore returns a store with one space, in which one object is damaged: the blob of a
// file, or the tree of a directory.
func damagedStore(t *testing.T, files map[string]string, path string, content bool) (*Store, space.SpaceID, packfile.Hash) {
	t.Helper()
	dir := t.TempDir()
	s, err := Open(Options{Dir: dir})
	if err != nil {
		t.Fatal(err)
	}
	id := newSpace(t, s, files)
	h, err := packfile.HashFrom(git(t, s.repoDir(id), "rev-parse", "main:"+path))
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	s = newStore(t, func(o *Options) { o.Dir = dir })
	flip(t, s, id, h, content)
	return s, id, h
}

var damageFiles = map[string]string{"a.md": "a\n", "dir/bad.md": strings.Repeat("bad\n", 20), "dir/good.md": "good\n", "z.md": "z\n"}

func kinds(t *testing.T, f func(t *testing.T, content bool)) {
	t.Run("in its header", func(t *testing.T) { f(t, false) })
	t.Run("in its content", func(t *testing.T) { f(t, true) })
}

// TestADamagedFileIsLeftOutOfCheckouts checks that the checkout reports the file, and that
// everything else works.
func TestADamagedFileIsLeftOutOfCheckouts(t *testing.T) {
	kinds(t, func(t *testing.T, content bool) {
		s, id, _ := damagedStore(t, damageFiles, "dir/bad.md", content)
		if _, _, err := s.Open(t.Context(), id, "", "dir/bad.md"); fault.CodeOf(err) != fault.Damaged || !strings.Contains(fault.PublicOf(err), "dir/bad.md") {
			t.Errorf("open: %v", err)
		}
		if _, _, err := s.Open(t.Context(), id, "", "dir/good.md"); err != nil {
			t.Error(err)
		}
		for _, dir := range []space.Path{"", "dir"} {
			if _, err := s.Children(t.Context(), id, "", dir); err != nil {
				t.Errorf("list %q: %v", dir, err)
			}
		}
		if list, err := s.Files(t.Context(), id, "", ""); err != nil || len(list) < len(damageFiles) {
			t.Errorf("%d files, %v", len(list), err)
		}
		sd := seed(t, s, id)
		if !slices.Equal(sd.Damaged, []space.Path{"dir/bad.md"}) {
			t.Errorf("damaged is %q", sd.Damaged)
		}
		if _, err := os.Lstat(filepath.Join(sd.Dir, "dir/bad.md")); !os.IsNotExist(err) {
			t.Errorf("the checkout has it: %v", err)
		}
		if b, err := os.ReadFile(filepath.Join(sd.Dir, "dir/good.md")); err != nil || string(b) != "good\n" {
			t.Errorf("%q, %v", b, err)
		}
		sd.Release()
		// Another commit is possible on top.
		commit(t, s, id, writes(map[string]string{"dir/new.md": "new\n"}))
		sd = seed(t, s, id)
		defer sd.Release()
		if b, err := os.ReadFile(filepath.Join(sd.Dir, "dir/new.md")); err != nil || string(b) != "new\n" || len(sd.Damaged) != 1 {
			t.Errorf("%q, %v, damaged %q", b, err, sd.Damaged)
		}
		if got := git(t, s.repoDir(id), "ls-tree", "-r", "--name-only", "main", "dir"); got != "dir/bad.md\ndir/good.md\ndir/new.md" {
			t.Errorf("head has %q", got)
		}
	})
}

// TestWritingADamagedFileHealsIt writes the same content and another content. The file stays
// healed after packs are consolidated and the store is opened again.
func TestWritingADamagedFileHealsIt(t *testing.T) {
	for name, text := range map[string]string{"the same content": damageFiles["dir/bad.md"], "other content": "new\n"} {
		t.Run(name, func(t *testing.T) {
			kinds(t, func(t *testing.T, content bool) {
				s, id, h := damagedStore(t, damageFiles, "dir/bad.md", content)
				sd := seed(t, s, id)
				b, m, _, err := s.Blob(t.Context(), id, "", "dir/bad.md")
				if err != nil {
					t.Fatal(err)
				}
				c := commit(t, s, id, space.ChangeSet{Policy: space.KeepBoth, Changes: []space.Change{{Path: "dir/bad.md", Content: []byte(text), Base: b, BaseMode: m}}})
				if len(c.Rejected)+len(c.Conflicts) > 0 {
					t.Errorf("%+v", c)
				}
				healed := func() {
					t.Helper()
					if _, got, err := s.Open(t.Context(), id, "", "dir/bad.md"); err != nil || string(got) != text {
						t.Errorf("%q, %v", got, err)
					}
				}
				healed()
				sd2 := seed(t, s, id) // while the first is still used
				if got, err := os.ReadFile(filepath.Join(sd2.Dir, "dir/bad.md")); err != nil || string(got) != text || len(sd2.Damaged) > 0 {
					t.Errorf("checkout: %q, %v, damaged %q", got, err, sd2.Damaged)
				}
				sd.Release()
				sd2.Release()
				if text == damageFiles["dir/bad.md"] {
					fromEachPack(t, s, id, h)
				}
				if err := s.Maintain(t.Context(), id); err != nil && text == damageFiles["dir/bad.md"] {
					t.Error(err)
				}
				dir := s.o.Dir
				if err := s.Close(); err != nil {
					t.Fatal(err)
				}
				s = newStore(t, func(o *Options) { o.Dir = dir })
				healed()
				if _, err := s.ReadBlob(t.Context(), id, packfile.BlobID(h)); (err == nil) != (text == damageFiles["dir/bad.md"]) {
					t.Errorf("the old content: %v", err)
				}
			})
		})
	}
}

// TestContentThatADamagedFileHasIsStored checks that writing the content to another path stores
// the content again.
func TestContentThatADamagedFileHasIsStored(t *testing.T) {
	s, id, _ := damagedStore(t, damageFiles, "dir/bad.md", true)
	commit(t, s, id, writes(map[string]string{"copy.md": damageFiles["dir/bad.md"]}))
	if _, got, err := s.Open(t.Context(), id, "", "copy.md"); err != nil || string(got) != damageFiles["dir/bad.md"] {
		t.Errorf("%q, %v", got, err)
	}
}

// TestADamagedDirectoryIsLeftOut checks that checkouts and lists leave out the directory and
// that it refuses changes, and that everything else works.
func TestADamagedDirectoryIsLeftOut(t *testing.T) {
	kinds(t, func(t *testing.T, content bool) {
		s, id, _ := damagedStore(t, damageFiles, "dir", content)
		if _, _, err := s.Open(t.Context(), id, "", "dir/good.md"); fault.CodeOf(err) != fault.Damaged || !strings.Contains(fault.PublicOf(err), `"dir"`) {
			t.Errorf("open: %v", err)
		}
		if _, err := s.Children(t.Context(), id, "", "dir"); fault.CodeOf(err) != fault.Damaged {
			t.Errorf("list: %v", err)
		}
		if list, err := s.Files(t.Context(), id, "", ""); fault.CodeOf(err) != fault.Damaged || len(list) < 2 {
			t.Errorf("%d files, %v", len(list), err)
		}
		cs := writes(map[string]string{"dir/new.md": "new\n", "new.md": "new\n"})
		cs.Policy = space.KeepBoth
		c := commit(t, s, id, cs)
		if len(c.Rejected) != 1 || c.Rejected[0].Path != "dir/new.md" || fault.CodeOf(c.Rejected[0].Err) != fault.Damaged || len(c.Files) != 1 {
			t.Errorf("%+v", c)
		}
		for range 2 {
			sd := seed(t, s, id)
			if !slices.Equal(sd.Damaged, []space.Path{"dir"}) {
				t.Errorf("damaged is %q", sd.Damaged)
			}
			if b, err := os.ReadFile(filepath.Join(sd.Dir, "new.md")); err != nil || string(b) != "new\n" {
				t.Errorf("%q, %v", b, err)
			}
			sd.Release()
		}
	})
}

// fromEachPack reads an object that several packs contain from each of these packs first.
func fromEachPack(t *testing.T, s *Store, id space.SpaceID, h packfile.Hash) {
	t.Helper()
	r, release, err := s.acquire(t.Context(), id)
	if err != nil {
		t.Fatal(err)
	}
	defer release()
	copies := 0
	for _, p := range r.db.Packs {
		off, ok := p.Find(h)
		if !ok {
			continue
		}
		copies++
		r.db.Small[h] = packfile.Location{Pack: p, Offset: off}
		r.db.Cache.Drop(r.db)
		if _, err := r.db.Read(h); err != nil {
			t.Error(err)
		}
	}
	if copies < 2 {
		t.Errorf("%d packs have it", copies)
	}
}

// TestPacksOfACloneRepairASpace checks that packs of a clone repair a space when they are put
// beside the damaged packs.
func TestPacksOfACloneRepairASpace(t *testing.T) {
	for _, path := range []string{"dir", "dir/bad.md"} {
		t.Run(path, func(t *testing.T) {
			dir := t.TempDir()
			s, err := Open(Options{Dir: dir})
			if err != nil {
				t.Fatal(err)
			}
			id := newSpace(t, s, damageFiles)
			commit(t, s, id, writes(map[string]string{"more.md": "more\n"}))
			h, err := packfile.HashFrom(git(t, s.repoDir(id), "rev-parse", "main:"+path))
			if err != nil {
				t.Fatal(err)
			}
			if err := s.Close(); err != nil {
				t.Fatal(err)
			}
			mirror := filepath.Join(t.TempDir(), "mirror.git")
			git(t, dir, "clone", "-q", "--mirror", "file://"+s.repoDir(id), mirror)
			flip(t, s, id, h, true)
			if err := os.CopyFS(filepath.Join(s.repoDir(id), "objects", "pack"), os.DirFS(filepath.Join(mirror, "objects", "pack"))); err != nil {
				t.Fatal(err)
			}
			s = newStore(t, func(o *Options) { o.Dir = dir })
			sd := seed(t, s, id)
			defer sd.Release()
			if len(sd.Damaged) > 0 {
				t.Errorf("damaged is %q", sd.Damaged)
			}
			if _, got, err := s.Open(t.Context(), id, "", "dir/bad.md"); err != nil || string(got) != damageFiles["dir/bad.md"] {
				t.Errorf("%q, %v", got, err)
			}
		})
	}
}

// The error for a space whose newest commit is damaged says how to repair the space.
func TestADamagedNewestCommit(t *testing.T) {
	kinds(t, func(t *testing.T, content bool) {
		s := newStore(t)
		id := newSpace(t, s, map[string]string{"a": "a"})
		commit(t, s, id, writes(map[string]string{"b": "b"}))
		copied := backup(t, s, id)
		head, err := packfile.HashFrom(git(t, s.repoDir(id), "rev-parse", "main"))
		if err != nil {
			t.Fatal(err)
		}
		flip(t, s, id, head, content)
		s = again(t, s)
		_, _, err = s.Open(t.Context(), id, "", "a")
		if said := fault.PublicOf(err); fault.CodeOf(err) != fault.Damaged || !strings.Contains(said, "satchel space repair "+string(id)) {
			t.Errorf("open: %v", err)
		}
		if got, err := s.Repair(t.Context(), id, Copies{Dir: copied}, func(string) {}); err != nil || !got.Left.Whole() {
			t.Errorf("%+v, %v", got, err)
		}
		if _, b, err := s.Open(t.Context(), id, "", "b"); err != nil || string(b) != "b" {
			t.Errorf("after the repair: %q, %v", b, err)
		}
	})
}
