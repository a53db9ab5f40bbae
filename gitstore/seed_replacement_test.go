package gitstore

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"satchel/internal/space"
)

// begun returns a space as people get it, with other starting files if seed is set, and with
// some commits of its owner.
func begun(t *testing.T, s *Store, seed map[string]string, tool string, commits ...map[string]string) space.SpaceID {
	t.Helper()
	id := space.NewSpaceID()
	first := StartingTree()
	if seed != nil {
		first = writes(seed)
	}
	must(s.Create(t.Context(), id, first, space.Meta{Author: ada, Message: "Start the space", Tool: tool}))(t)
	for _, c := range commits {
		cs := writes(c)
		for i := range cs.Changes {
			if f, _, err := s.Open(t.Context(), id, "", space.Path(cs.Changes[i].Path)); err == nil {
				cs.Changes[i].Base = f.Blob
			}
		}
		commit(t, s, id, cs)
	}
	return id
}

func seedOf(t *testing.T, path string) string {
	t.Helper()
	for _, c := range StartingTree().Changes {
		if c.Path == path {
			return string(c.Content)
		}
	}
	t.Fatalf("no space begins with %s", path)
	return ""
}

// TestWhatNobodyChangedGivesWay checks that an unchanged starting file makes no conflict with a
// file from elsewhere, because nobody's work is lost. A changed one is kept.
func TestWhatNobodyChangedGivesWay(t *testing.T) {
	for name, c := range map[string]struct {
		seed     map[string]string // nil: the files of StartingTree
		tool     string
		commits  []map[string]string
		replaced string
		copies   int
	}{
		"the README that every space begins with": {
			tool: "satchel", commits: []map[string]string{{"a.md": "1"}, {"b.md": "2"}}, replaced: "README.md"},
		"that of an older version": {
			seed: map[string]string{"README.md": "an older guide"}, tool: "satchel", commits: []map[string]string{{"a.md": "1"}, {"a.md": "2"}}, replaced: "README.md"},
		"changed": {
			tool: "satchel", commits: []map[string]string{{"README.md": "my own"}, {"a.md": "1"}}, copies: 1},
		"changed and changed back": {
			seed: map[string]string{"README.md": "guide"}, tool: "satchel", commits: []map[string]string{{"README.md": "my own"}, {"README.md": "guide"}}, replaced: "README.md"},
		"a first commit that somebody else made": {
			seed: map[string]string{"README.md": "theirs from the start"}, tool: "write", commits: []map[string]string{{"a.md": "1"}}, copies: 1},
		"added after the start": {
			seed: map[string]string{"x": "x"}, tool: "satchel", commits: []map[string]string{{"README.md": "my own"}}, copies: 1},
	} {
		check := func(t *testing.T, s *Store, id space.SpaceID, replaced []space.Path, conflicts []space.Conflict) {
			t.Helper()
			var got []string
			for _, p := range replaced {
				got = append(got, string(p))
			}
			if strings.Join(got, " ") != c.replaced || len(conflicts) != c.copies {
				t.Errorf("replaced %q, conflicts %+v; want %q and %d", got, conflicts, c.replaced, c.copies)
			}
			copies := 0
			now := tree(t, s, id)
			for p := range now {
				if space.IsConflictCopy(space.Path(p)) {
					copies++
				}
			}
			if copies != c.copies {
				t.Errorf("%d copies, want %d: %v", copies, c.copies, now)
			}
			fsck(t, s, id)
		}
		t.Run("merge/"+name, func(t *testing.T) {
			o := newOrigin(t)
			o.commit("", "main", "echo their readme > README.md; echo t > t.md")
			s := newStore(t, withTransport(t))
			id := begun(t, s, c.seed, c.tool, c.commits...)
			got := receive(t, s, id, o, "main")
			if got.How != Merged {
				t.Fatalf("%+v", got)
			}
			check(t, s, id, got.Replaced, got.Commit.Conflicts)
			if now := tree(t, s, id)["README.md"]; !strings.Contains(now, "their readme") {
				t.Errorf("README.md is %q", now)
			}
			if c.replaced != "" {
				if !strings.Contains(got.Commit.Message, "replaced by the remote's version:\n\n- README.md") {
					t.Errorf("the commit does not tell: %q", got.Commit.Message)
				}
				if !slices.ContainsFunc(got.Commit.Files, func(f space.FileChange) bool { return f.Path == "README.md" && f.Status == space.Modified }) {
					t.Errorf("%+v", got.Commit.Files)
				}
			}
			must(s.Push(t.Context(), id, o.endpoint(), "main", nil))(t)
		})
		t.Run("import/"+name, func(t *testing.T) {
			s := newStore(t)
			id := begun(t, s, c.seed, c.tool, c.commits...)
			dir := t.TempDir()
			overwrite(t, filepath.Join(dir, "README.md"), "their readme")
			res := must(s.Import(t.Context(), id, files(t, dir), space.Meta{Author: ada}, nil))(t)
			check(t, s, id, res.Replaced, res.Commit.Conflicts)
			if again := must(s.Import(t.Context(), id, files(t, dir), space.Meta{Author: ada}, nil))(t); again.Commit.Changed || len(again.Replaced) > 0 {
				t.Errorf("%+v", again)
			}
		})
	}
}

// TestOnlyAFileTakesTheStartingFilesPlace checks that a starting file is kept beside a
// directory of a remote with the same name, like any other file.
func TestOnlyAFileTakesTheStartingFilesPlace(t *testing.T) {
	o := newOrigin(t)
	tip := o.commit("", "main", "mkdir README.md; echo t > README.md/x")
	s := newStore(t, withTransport(t))
	id := begun(t, s, nil, "satchel", map[string]string{"a.md": "1"})
	got := receive(t, s, id, o, "main")
	if len(got.Replaced) != 0 || toldOf(got.Commit) != "README.md→README.conflict-"+tip.Short()+".md" {
		t.Errorf("%+v", got)
	}
	if now := tree(t, s, id)["README.conflict-"+tip.Short()+".md"]; strings.TrimSpace(now) != strings.TrimSpace(seedOf(t, "README.md")) {
		t.Errorf("%q", now)
	}
}

// TestAnAdoptedHistoryKeepsStartingFilesReplaceable checks that starting files on top of an
// adopted history can still be replaced.
func TestAnAdoptedHistoryKeepsStartingFilesReplaceable(t *testing.T) {
	o := newOrigin(t)
	o.commit("", "main", "echo t > t.md")
	s := newStore(t, withTransport(t))
	id := begun(t, s, nil, "satchel")
	if got := receive(t, s, id, o, "main"); got.How != Adopted {
		t.Fatalf("%+v", got)
	}
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "README.md"), []byte("mine"), 0o600); err != nil {
		t.Fatal(err)
	}
	res := must(s.Import(t.Context(), id, files(t, dir), space.Meta{Author: ada}, nil))(t)
	if len(res.Replaced) != 1 || len(res.Commit.Conflicts) != 0 {
		t.Errorf("%+v", res)
	}
}
