package gitstore

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"satchel/internal/space"
)

// These tests check that any sequence of change sets creates the tree that git creates from the
// same edits in a directory.

// modelFile is a file of a directory.
type modelFile struct {
	mode    space.Mode
	content string
}

// model maps the paths of a directory to files.
type model map[string]modelFile

// sequenceNames collide in case, in Unicode normal form, as a file and a directory, and in
// git's order of names.
var sequenceNames = []string{"a", "A", "b", "a.b", "a-b", "a0", "a b", "\u00e9", "e\u0301", "日本語.md", ".x", "-rf", "c.md", "\U0001f600", "~", "a\\b"}

// chooser makes decisions from a seed.
type chooser func(n int) int

// edit makes a few edits, as a person does in a directory. A new file replaces everything that
// is in its way.
func (m model) edit(choose chooser) {
	name := func() string {
		p := sequenceNames[choose(len(sequenceNames))]
		for range choose(3) {
			p += "/" + sequenceNames[choose(len(sequenceNames))]
		}
		return p
	}
	any := func() (string, bool) {
		if len(m) == 0 {
			return "", false
		}
		return slices.Sorted(maps.Keys(m))[choose(len(m))], true
	}
	write := func(p string, f modelFile) {
		for q := range m {
			if under(q, p) || under(p, q) {
				delete(m, q)
			}
		}
		m[p] = f
	}
	for range 1 + choose(6) {
		p, there := any()
		switch what := choose(12); {
		case what < 4 || !there:
			write(name(), modelFile{space.Mode(choose(2)), fmt.Sprint(choose(20))})
		case what == 4: // a link, perhaps to nothing
			write(name(), modelFile{space.Symlink, sequenceNames[choose(len(sequenceNames))]})
		case what == 5: // only the mode
			if f := m[p]; f.mode != space.Symlink {
				f.mode = 1 - f.mode
				m[p] = f
			}
		case what == 6: // only the content
			f := m[p]
			f.content = sequenceNames[choose(len(sequenceNames))]
			m[p] = f
		case what == 7:
			delete(m, p)
		case what == 8: // a directory with everything in it
			top, _, _ := strings.Cut(p, "/")
			maps.DeleteFunc(m, func(q string, _ modelFile) bool { return under(q, top) })
		case what == 9: // a rename, perhaps to a path below or above
			f := m[p]
			delete(m, p)
			write(name(), f)
		case what == 10: // a copy
			write(name(), m[p])
		default: // an empty file
			write(name(), modelFile{})
		}
	}
}

// changes returns a change set that turns one model into another. The order is random, and
// later entries replace some entries.
func (m model) changes(from model, base func(path string) space.BlobID, choose chooser) (cs space.ChangeSet) {
	cs.Policy = space.Policy(choose(2))
	for _, p := range slices.Sorted(maps.Keys(from)) {
		if _, ok := m[p]; !ok {
			cs.Changes = append(cs.Changes, space.Change{Path: p, Op: space.Delete, Base: base(p), BaseMode: from[p].mode})
		}
	}
	for _, p := range slices.Sorted(maps.Keys(m)) {
		f, was := m[p], from[p]
		old := base(p)
		if old != "" && f == was && choose(10) > 0 {
			continue // usually, unchanged files are not sent
		}
		cs.Changes = append(cs.Changes, space.Change{Path: p, Mode: f.mode, Content: []byte(f.content), Base: old, BaseMode: was.mode})
	}
	for i := len(cs.Changes) - 1; i > 0; i-- {
		j := choose(i + 1)
		cs.Changes[i], cs.Changes[j] = cs.Changes[j], cs.Changes[i]
	}
	if n := len(cs.Changes); n > 0 && choose(3) == 0 {
		c := cs.Changes[choose(n)]
		c.Content, c.Op, c.Mode = []byte("not the last word"), space.Write, space.Regular
		cs.Changes = slices.Insert(cs.Changes, 0, c)
	}
	return cs
}

// apply changes a directory from one model to another.
func (m model) apply(t testing.TB, dir string, from model) {
	t.Helper()
	for p, f := range from {
		if now, ok := m[p]; ok && now == f {
			continue
		}
		if err := os.Remove(filepath.Join(dir, p)); err != nil {
			t.Fatal(err)
		}
		for d := path.Dir(p); d != "."; d = path.Dir(d) {
			if os.Remove(filepath.Join(dir, d)) != nil {
				break // the directory is not empty
			}
		}
	}
	for p, f := range m {
		if was, ok := from[p]; ok && was == f {
			continue
		}
		name := filepath.Join(dir, p)
		err := os.MkdirAll(filepath.Dir(name), 0o755)
		switch {
		case err != nil:
		case f.mode == space.Symlink:
			err = os.Symlink(f.content, name)
		case f.mode == space.Executable:
			err = os.WriteFile(name, []byte(f.content), 0o755)
		default:
			err = os.WriteFile(name, []byte(f.content), 0o644)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
}

// step commits an edit of the model and checks the result.
func (m model) step(t testing.TB, s *Store, id space.SpaceID, choose chooser) (next model, cs space.ChangeSet) {
	t.Helper()
	next = maps.Clone(m)
	next.edit(choose)
	cs = next.changes(m, func(p string) space.BlobID {
		b, _, _, err := s.Blob(t.Context(), id, "", space.Path(p))
		if err != nil {
			t.Fatal(err)
		}
		return b
	}, choose)
	c, err := s.Commit(t.Context(), id, cs, space.Meta{Author: ada})
	if err != nil {
		t.Fatalf("%v: %+v", err, cs)
	}
	if len(c.Rejected) > 0 || len(c.Conflicts) > 0 || c.Changed != !maps.Equal(m, next) {
		t.Fatalf("%+v: %+v", c, cs)
	}
	return next, cs
}

// TestChangeSetsAreWhatADirectoryWouldBe checks that any sequence of change sets with fresh
// bases gives the tree that git add -A and git write-tree create from the same edits in a
// directory.
func TestChangeSetsAreWhatADirectoryWouldBe(t *testing.T) {
	s := newStore(t)
	for seed := range uint64(8) {
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) {
			r := rand.New(rand.NewPCG(seed, 7))
			choose := func(n int) int { return r.IntN(n) }
			id := newSpace(t, s, nil)
			dir := t.TempDir()
			git(t, dir, "init", "-q")
			m := model{}
			for round := range 25 {
				next, cs := m.step(t, s, id, choose)
				next.apply(t, dir, m)
				m = next
				git(t, dir, "add", "-A")
				want := git(t, dir, "write-tree")
				if got := git(t, s.repoDir(id), "rev-parse", "main^{tree}"); got != want {
					t.Fatalf("round %d: tree %s, git's is %s: %v after %+v", round, got, want, m, cs)
				}
			}
			fsck(t, s, id)
		})
	}
}
