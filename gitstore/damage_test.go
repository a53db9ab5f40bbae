package gitstore

import (
	"bytes"
	"crypto/rand"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"satchel/gitstore/packfile"
	"satchel/internal/fault"
	"satchel/internal/space"
)

// TestALogThatCannotBeSynced checks that a commit is refused and leaves no line if its line in
// the reflog may or may not be on disk. If the line cannot be removed, the space refuses
// changes until it can.
func TestALogThatCannotBeSynced(t *testing.T) {
	failures := 0
	s := newStore(t, func(o *Options) {
		o.Sync = func(f *os.File) error {
			if failures > 0 && strings.HasSuffix(filepath.ToSlash(f.Name()), "logs/"+branch) {
				failures--
				return errors.New("the disk has a bad sector")
			}
			return f.Sync()
		}
	})
	id := newSpace(t, s, map[string]string{"a": "a"})
	log := filepath.Join(s.repoDir(id), "logs", filepath.FromSlash(branch))
	try := func(name string) error {
		_, err := s.Commit(t.Context(), id, writes(map[string]string{name: "x"}), space.Meta{Author: ada})
		return err
	}
	for _, c := range []struct {
		name     string
		failures int // of syncs: of the line, and then of its removal
		refused  int
	}{
		{"taken back at once", 1, 1},
		{"taken back before the next commit", 2, 1},
		{"taken back later still", 4, 3},
	} {
		t.Run(c.name, func(t *testing.T) {
			head, _ := s.Head(t.Context(), id)
			before, err := os.ReadFile(log)
			if err != nil {
				t.Fatal(err)
			}
			failures = c.failures
			for i := range c.refused {
				err := try(c.name)
				if err == nil {
					t.Fatalf("try %d went through", i)
				}
				if i > 0 && fault.CodeOf(err) != fault.Unavailable {
					t.Errorf("try %d: %v", i, err)
				}
				if now, _ := s.Head(t.Context(), id); now != head {
					t.Fatalf("try %d moved the head", i)
				}
			}
			if err := try(c.name); err != nil {
				t.Fatalf("with the disk mended: %v", err)
			}
			after, err := os.ReadFile(log)
			if rest, ok := strings.CutPrefix(string(after), string(before)); err != nil || !ok || strings.Count(rest, "\n") != 1 {
				t.Errorf("the log went on with %q: %v", rest, err)
			}
			reopened(t, s, id)
			fsck(t, s, id)
		})
	}
}

// TestTheLastLineOfALogStays checks that the last line stays even under a tiny limit, because
// it makes head durable.
func TestTheLastLineOfALogStays(t *testing.T) {
	s := newStore(t, func(o *Options) { o.Limits.Reflog = 1 })
	id := newSpace(t, s, map[string]string{"a": "a"})
	c := commit(t, s, id, writes(map[string]string{"b": "b"}))
	for range 2 {
		if _, err := s.GC(t.Context(), id); err != nil {
			t.Fatal(err)
		}
		b, err := os.ReadFile(filepath.Join(s.repoDir(id), "logs", filepath.FromSlash(branch)))
		lines, size := parseLog(b)
		if err != nil || len(lines) != 1 || size != int64(len(b)) || packfile.CommitID(lines[0].now) != c.ID {
			t.Fatalf("%q, %v", b, err)
		}
	}
	overwrite(t, filepath.Join(s.repoDir(id), filepath.FromSlash(branch)), "")
	reopened(t, s, id)
}

// TestDamageIsNoticed checks that no object is read with wrong content, for a flipped bit
// anywhere in its pack.
func TestDamageIsNoticed(t *testing.T) {
	s := newStore(t)
	id := newSpace(t, s, map[string]string{"a": "a"})
	content := strings.Repeat(rand.Text()+"\n", 40) + rand.Text()
	commit(t, s, id, writes(map[string]string{"b": content}))
	objects := filepath.Join(s.repoDir(id), "objects")
	packs, err := filepath.Glob(filepath.Join(objects, "pack", "*.pack"))
	if err != nil || len(packs) != 2 {
		t.Fatalf("%q, %v", packs, err)
	}
	want := map[packfile.Hash]packfile.Object{}
	each := func(use func(db *packfile.DB, h packfile.Hash)) {
		db, err := packfile.Open(objects, packfile.NewCache(0))
		if err != nil {
			t.Fatal(err)
		}
		defer db.Close()
		for h := range db.Small {
			use(db, h)
		}
	}
	each(func(db *packfile.DB, h packfile.Hash) {
		o, err := db.Read(h)
		if err != nil {
			t.Fatal(err)
		}
		want[h] = o
	})
	noticed := 0
	for _, name := range packs {
		pack, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		for i := range pack {
			damaged := slices.Clone(pack)
			damaged[i] ^= 1 << (i % 8)
			overwrite(t, name, string(damaged))
			each(func(db *packfile.DB, h packfile.Hash) {
				if o, err := db.Read(h); err != nil {
					noticed++
				} else if o.Kind != want[h].Kind || !bytes.Equal(o.Data, want[h].Data) {
					t.Errorf("%s with bit %d of byte %d of %d turned over is read as %q", h, i%8, i, len(pack), o.Data)
				}
			})
		}
		overwrite(t, name, string(pack))
	}
	if noticed < 500 {
		t.Errorf("only %d damages were noticed", noticed)
	}
}
