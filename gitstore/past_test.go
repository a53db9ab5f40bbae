package gitstore

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"satchel/internal/fault"
	"satchel/internal/space"
)

// Past tells of every commit of a history once, with what it changed.
func TestPastTellsWhatCommitsChanged(t *testing.T) {
	s := newStore(t)
	id := newSpace(t, s, map[string]string{"a.md": "one\n"})
	change := func(cs ...space.Change) space.CommitID {
		t.Helper()
		c, err := s.Commit(t.Context(), id, space.ChangeSet{Changes: cs, Policy: space.KeepBoth}, space.Meta{})
		if err != nil || !c.Changed {
			t.Fatalf("%+v, %v", c, err)
		}
		return c.ID
	}
	second := change(space.Change{Path: "a.md", Content: []byte("two\n"), Base: at(t, s, id, "a.md")}, space.Change{Path: "b.md", Content: []byte("one\n")})
	third := change(space.Change{Path: "b.md", Op: space.Delete, Base: at(t, s, id, "b.md")})
	change(space.Change{Path: "c.md", Content: []byte("one\n")})

	past := func(at, since space.CommitID, most int) string {
		t.Helper()
		var got []string
		err := s.Past(t.Context(), id, at, since, func(files []space.FileChange) bool {
			var one []string
			for _, f := range files {
				one = append(one, fmt.Sprintf("%v %s", f.Status, f.Path))
			}
			slices.Sort(one)
			got = append(got, strings.Join(one, "+"))
			return len(got) < most
		})
		if err != nil {
			t.Fatal(err)
		}
		return strings.Join(got, ", ")
	}
	add, mod, del := fmt.Sprint(space.Added), fmt.Sprint(space.Modified), fmt.Sprint(space.Deleted)
	for _, tc := range []struct {
		name      string
		at, since space.CommitID
		most      int
		want      string
	}{
		{"all", "", "", 9, add + " c.md, " + del + " b.md, " + add + " b.md+" + mod + " a.md, " + add + " a.md"},
		{"up to one", third, "", 9, del + " b.md, " + add + " b.md+" + mod + " a.md, " + add + " a.md"},
		{"since one", "", second, 9, add + " c.md, " + del + " b.md"},
		{"since itself", third, third, 9, ""},
		{"until it is enough", "", "", 1, add + " c.md"},
		{"since one that is gone", second, space.CommitID(strings.Repeat("1", 40)), 9, add + " b.md+" + mod + " a.md, " + add + " a.md"},
	} {
		if got := past(tc.at, tc.since, tc.most); !sameParts(got, tc.want) {
			t.Errorf("%s: %s, want %s", tc.name, got, tc.want)
		}
	}
	if err := s.Past(t.Context(), id, space.CommitID(strings.Repeat("1", 40)), "", func([]space.FileChange) bool { return true }); fault.CodeOf(err) != fault.NotFound {
		t.Errorf("of a commit that is not there: %v", err)
	}
}

// Deleting a space waits for who reads it, so nobody reads a long history of one that is
// being deleted.
func TestPastEndsWithTheSpace(t *testing.T) {
	s := newStore(t)
	id := newSpace(t, s, map[string]string{"a.md": "one\n"})
	for i := range 2 {
		c := space.ChangeSet{Changes: []space.Change{{Path: fmt.Sprint(i, ".md"), Content: []byte("x\n")}}, Policy: space.KeepBoth}
		if _, err := s.Commit(t.Context(), id, c, space.Meta{}); err != nil {
			t.Fatal(err)
		}
	}
	visited := 0
	err := s.Past(t.Context(), id, "", "", func([]space.FileChange) bool {
		visited++
		s.Withhold(id)
		return true
	})
	if visited != 1 || fault.CodeOf(err) != fault.NotFound {
		t.Errorf("%d visited, %v", visited, err)
	}
	if err := s.Delete(t.Context(), id); err != nil {
		t.Error(err)
	}
}

// sameParts compares lists of which each part may have its words in any order.
func sameParts(a, b string) bool {
	sorted := func(s string) string {
		parts := strings.Split(s, ", ")
		for i, p := range parts {
			words := strings.Split(p, "+")
			slices.Sort(words)
			parts[i] = strings.Join(words, "+")
		}
		return strings.Join(parts, ", ")
	}
	return sorted(a) == sorted(b)
}
