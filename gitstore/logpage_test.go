package gitstore

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"satchel/internal/fault"
	"satchel/internal/space"
	"satchel/internal/testenv"
)

// TestLogPageIsGits checks that all pages together list the commits that git lists, with merged
// branches, and for every page size and walk.
func TestLogPageIsGits(t *testing.T) {
	s := newStore(t)
	dir := t.TempDir()
	git(t, dir, "init", "-q", "-b", "main")
	at := func(minute int, args ...string) {
		t.Helper()
		date := fmt.Sprintf("2026-01-01T00:%02d:00Z", minute)
		cmd := testenv.Git(t, dir, args...)
		cmd.Env = append(cmd.Env, "GIT_AUTHOR_DATE="+date, "GIT_COMMITTER_DATE="+date)
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("git %v: %v\n%s", args, err, out)
		}
	}
	commit := func(file string, i int) {
		t.Helper()
		if err := os.WriteFile(filepath.Join(dir, file), []byte(fmt.Sprint(i)), 0o600); err != nil {
			t.Fatal(err)
		}
		git(t, dir, "add", "-A")
		at(i, "commit", "-q", "-m", fmt.Sprint(file, i))
	}
	for i := range 20 {
		if i == 8 {
			git(t, dir, "checkout", "-q", "-b", "side")
		}
		if i == 13 {
			git(t, dir, "checkout", "-q", "main")
		}
		if i == 17 {
			at(i, "merge", "-q", "--no-edit", "side")
		}
		file := "a"
		if i >= 8 && i < 13 {
			file = "b"
		}
		commit(file, i)
	}
	id := space.NewSpaceID()
	if _, err := s.Create(t.Context(), id, space.ChangeSet{}, space.Meta{Author: ada}); err != nil {
		t.Fatal(err)
	}
	repo := s.repoDir(id)
	git(t, repo, "fetch", "-q", dir, "main:refs/heads/other")
	head := space.CommitID(strings.TrimSpace(git(t, dir, "rev-parse", "main")))
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	s = newStore(t, func(o *Options) { o.Dir = s.o.Dir })
	for _, path := range []string{"", "a", "b", "none"} {
		args := []string{"rev-list", "main"}
		if path != "" {
			args = append(args, "--", path)
		}
		want := strings.Fields(git(t, dir, args...))
		for _, step := range []struct{ limit, walk int }{{50, 1000}, {3, 1000}, {3, 2}, {1, 1}} {
			var got []string
			cursor := ""
			for pages := 0; pages < 100; pages++ {
				list, next, err := s.LogPage(t.Context(), id, head, space.Path(path), cursor, step.limit, step.walk)
				if err != nil {
					t.Fatal(err)
				}
				if len(list) > step.limit {
					t.Fatalf("%d commits of %d", len(list), step.limit)
				}
				for _, c := range list {
					got = append(got, string(c.ID))
				}
				if cursor = next; next == "" {
					break
				}
			}
			if fmt.Sprint(got) != fmt.Sprint(want) {
				t.Errorf("%q by %+v: %d commits\n%v, want\n%v", path, step, len(got), got, want)
			}
		}
	}
}

// TestLogPageCursors checks that an invalid cursor is a fault.NotFound.
func TestLogPageCursors(t *testing.T) {
	s := newStore(t)
	id := newSpace(t, s, map[string]string{"a": "1"})
	for _, c := range []string{"x", strings.Repeat("0", 40), "main", ".", strings.Repeat("a", 10_000), string(at(t, s, id, "a"))} {
		if _, _, err := s.LogPage(t.Context(), id, "", "", c, 5, 5); fault.CodeOf(err) != fault.NotFound {
			t.Errorf("%.30q: %v", c, err)
		}
	}
}

func TestLastChanges(t *testing.T) {
	s := newStore(t)
	id := newSpace(t, s, map[string]string{"a": "1", "d/x": "1", "d/y": "1"})
	change := func(p, text string) space.CommitID {
		t.Helper()
		c, err := s.Commit(t.Context(), id, space.ChangeSet{Changes: []space.Change{{Path: p, Content: []byte(text), Base: at(t, s, id, p)}}}, space.Meta{Author: ada, Message: p + text})
		if err != nil {
			t.Fatal(err)
		}
		return c.ID
	}
	change("d/x", "2")
	x := change("d/x", "3")
	y := change("d/y", "4")
	a := change("a", "5")
	check := func(dir string, walk int, want map[string]space.CommitID) {
		t.Helper()
		got, err := s.LastChanges(t.Context(), id, "", space.Path(dir), walk)
		if err != nil {
			t.Fatal(err)
		}
		for name, c := range want {
			if got[name].ID != c {
				t.Errorf("%s in %q: %s, want %s", name, dir, got[name].Message, c)
			}
		}
		if len(got) != len(want) {
			t.Errorf("%q within %d: %v", dir, walk, got)
		}
	}
	check("", 10, map[string]space.CommitID{"a": a, "d": y})
	check("d", 10, map[string]space.CommitID{"x": x, "y": y})
	check("d", 2, map[string]space.CommitID{"y": y})
	check("d", 1, nil)
	check("none", 10, nil)
}

// TestChangesAreThoseOfDiff compares the result with the first files of Diff.
func TestChangesAreThoseOfDiff(t *testing.T) {
	s := newStore(t)
	id := newSpace(t, s, map[string]string{"a": "1", "d/x": "1", "d/y": "1", "e/f/g": "1"})
	from, err := s.Head(t.Context(), id)
	if err != nil {
		t.Fatal(err)
	}
	cs := writes(map[string]string{"b": "22", "d/z": "3"})
	for _, p := range []string{"d/x", "a"} {
		cs.Changes = append(cs.Changes, space.Change{Path: p, Content: []byte("changed"), Base: at(t, s, id, p)})
	}
	cs.Changes = append(cs.Changes, space.Change{Path: "e/f/g", Op: space.Delete, Base: at(t, s, id, "e/f/g")})
	commit(t, s, id, cs)
	for _, c := range []struct {
		from space.CommitID
		path string
	}{{from, ""}, {from, "d"}, {from, "d/x"}, {from, "e"}, {from, "none"}, {"", ""}, {"", "d"}} {
		all, err := s.Diff(t.Context(), id, c.from, "")
		if err != nil {
			t.Fatal(err)
		}
		var want []space.FileChange
		for _, f := range all {
			if under(string(f.Path), c.path) {
				want = append(want, f)
			}
		}
		for _, limit := range []int{0, 1, 3, 100} {
			got, total, err := s.Changes(t.Context(), id, c.from, "", space.Path(c.path), limit)
			if err != nil || total != len(want) || fmt.Sprint(got) != fmt.Sprint(want[:min(limit, len(want))]) {
				t.Errorf("%+v, %d: %v of %d, %v; want %v", c, limit, got, total, err, want)
			}
		}
	}
}

func TestBundleIsWhatGitClones(t *testing.T) {
	s := newStore(t)
	id := newSpace(t, s, map[string]string{"a": "1", "d/x": "2"})
	file := filepath.Join(t.TempDir(), "space.bundle")
	out, err := os.Create(file)
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Bundle(t.Context(), id, out); err != nil {
		t.Fatal(err)
	}
	if err := out.Close(); err != nil {
		t.Fatal(err)
	}
	dir := filepath.Dir(file)
	git(t, dir, "clone", "-q", file, "clone")
	head, err := s.Head(t.Context(), id)
	if err != nil {
		t.Fatal(err)
	}
	if got := strings.TrimSpace(git(t, filepath.Join(dir, "clone"), "rev-parse", "HEAD")); got != string(head) {
		t.Errorf("%s, want %s", got, head)
	}
	if err := s.Bundle(t.Context(), space.NewSpaceID(), out); fault.CodeOf(err) != fault.NotFound {
		t.Errorf("no space: %v", err)
	}
}
