//go:build unix

package gitstore

import (
	"fmt"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"satchel/internal/fault"
	"satchel/internal/space"
	"satchel/internal/testenv"
)

// datesLikeGit compares the dates of all files of head with git's dates.
func datesLikeGit(t *testing.T, s *Store, id space.SpaceID) map[space.Path]time.Time {
	t.Helper()
	dates := must(s.Dates(t.Context(), id, "", ""))(t)
	files := tree(t, s, id)
	for p := range files {
		want := git(t, s.repoDir(id), "log", "-1", "--first-parent", "--format=%at", "main", "--", p)
		if got := strconv.FormatInt(dates[space.Path(p)].Unix(), 10); got != want {
			t.Errorf("%s has the date %s, and git says %s", p, got, want)
		}
	}
	if len(dates) != len(files) {
		t.Errorf("%d dates of %d files: %v", len(dates), len(files), dates)
	}
	return dates
}

func TestDatesAreGits(t *testing.T) {
	s := newStore(t)
	id := newSpace(t, s, map[string]string{"a.md": "0", "keep/k.md": "0", "d/x.md": "0", "gone.md": "0"})
	day := func(n int) time.Time { return time.Date(2025, 1, n, 12, 0, 0, 0, time.UTC) }
	var commits []space.CommitID
	change := func(n int, cs ...space.Change) {
		t.Helper()
		for i := range cs {
			cs[i].Base = at(t, s, id, cs[i].Path)
		}
		c := must(s.Commit(t.Context(), id, space.ChangeSet{Changes: cs}, space.Meta{Author: ada, Time: day(n)}))(t)
		commits = append(commits, c.ID)
	}
	change(2, space.Change{Path: "a.md", Content: []byte("1")})
	change(3, space.Change{Path: "d/x.md", Content: []byte("1")}, space.Change{Path: "gone.md", Op: space.Delete})
	change(4, space.Change{Path: "a.md", Content: []byte("2")}, space.Change{Path: "d/y.md", Content: []byte("new")})
	change(5, space.Change{Path: "d/x.md", Mode: space.Executable, Content: []byte("1")})
	datesLikeGit(t, s, id)

	for name, c := range map[string]struct {
		from, to space.CommitID
		want     map[space.Path]time.Time
	}{
		"one commit":     {commits[2], commits[3], map[space.Path]time.Time{"d/x.md": day(5)}},
		"two commits":    {commits[1], "", map[space.Path]time.Time{"a.md": day(4), "d/y.md": day(4), "d/x.md": day(5)}},
		"an older state": {commits[0], commits[1], map[space.Path]time.Time{"d/x.md": day(3)}},
		"nothing":        {commits[3], "", map[space.Path]time.Time{}},
	} {
		got := must(s.Dates(t.Context(), id, c.from, c.to))(t)
		if len(got) != len(c.want) {
			t.Errorf("%s: %v", name, got)
		}
		for p, want := range c.want {
			if !got[p].Equal(want) {
				t.Errorf("%s: %s has the date %s, want %s", name, p, got[p], want)
			}
		}
	}
	if _, err := s.Dates(t.Context(), id, space.CommitID(fmt.Sprintf("%040d", 7)), ""); fault.CodeOf(err) != fault.NotFound {
		t.Errorf("from an unknown commit: %v", err)
	}
}

// Files that changed only before the bound have no date. All other dates stay the same.
func TestDatesFollowABoundedHistory(t *testing.T) {
	s := newStore(t, func(o *Options) { o.DateCommits = 3 })
	id := newSpace(t, s, map[string]string{"first.md": "x"})
	for i := range 5 {
		commit(t, s, id, writes(map[string]string{fmt.Sprint(i, ".md"): "x"}))
	}
	dates := must(s.Dates(t.Context(), id, "", ""))(t)
	for p, want := range map[space.Path]bool{"first.md": false, "0.md": false, "1.md": false, "2.md": true, "3.md": true, "4.md": true} {
		if _, ok := dates[p]; ok != want {
			t.Errorf("%s is dated: %v", p, ok)
		}
	}
}

// The dates of an imported history are the dates at which its authors wrote, and not the dates
// of a rewrite, a merge or the import. This also holds if the index was built at a commit that
// the import removed from the history.
func TestDatesOfAnImportedHistory(t *testing.T) {
	dir := t.TempDir()
	git(t, dir, "init", "-q", "-b", "trunk")
	write := func(name, date string) {
		overwrite(t, filepath.Join(dir, name), date)
		git(t, dir, "add", "-A")
		git(t, dir, "commit", "-q", "-m", name, "--date", date)
	}
	write("old.md", "2019-03-04T05:06:07+02:00")
	git(t, dir, "branch", "side")
	write("new.md", "2024-03-04T05:06:07Z")
	git(t, dir, "switch", "-q", "side")
	write("side.md", "2021-03-04T05:06:07Z")
	git(t, dir, "switch", "-q", "trunk")
	git(t, dir, "merge", "-q", "--no-ff", "-m", "merge", "side")
	s := newStore(t)
	id := space.NewSpaceID()
	first := must(s.Create(t.Context(), id, StartingTree(), space.Meta{Author: ada}))(t)
	must(s.Import(t.Context(), id, FromBundle(testenv.Bundle(t, dir)), space.Meta{Author: ada}, nil))(t)
	dates := datesLikeGit(t, s, id)
	if got := dates["old.md"].UTC().Format(time.RFC3339); got != "2019-03-04T03:06:07Z" {
		t.Error(got)
	}
	since := must(s.Dates(t.Context(), id, first.ID, ""))(t)
	if !since["new.md"].Equal(dates["new.md"]) || len(since) != 3 {
		t.Errorf("from before the import: %v", since)
	}
}
