package gitstore

import (
	"testing"

	"satchel/internal/fault"
	"satchel/internal/space"
)

func TestContains(t *testing.T) {
	s := newStore(t)
	id := newSpace(t, s, map[string]string{"a.md": "1"})
	first, err := s.Head(t.Context(), id)
	if err != nil {
		t.Fatal(err)
	}
	second := commit(t, s, id, writes(map[string]string{"b.md": "2"})).ID
	// A sibling of the second commit, as in a rewritten history.
	dir := s.repoDir(id)
	beside := space.CommitID(git(t, dir, "commit-tree", string(first)+"^{tree}", "-p", string(first), "-m", "beside"))
	merge := space.CommitID(git(t, dir, "commit-tree", string(first)+"^{tree}", "-p", string(second), "-p", string(beside), "-m", "merge"))
	for _, c := range []struct {
		name        string
		tip, commit space.CommitID
		want        bool
	}{
		{"itself", second, second, true},
		{"an ancestor", second, first, true},
		{"a descendant", first, second, false},
		{"one beside it", second, beside, false},
		{"both sides of a merge: first", merge, second, true},
		{"both sides of a merge: second", merge, beside, true},
	} {
		if got, err := s.Contains(t.Context(), id, c.tip, c.commit); err != nil || got != c.want {
			t.Errorf("%s: %v, %v", c.name, got, err)
		}
	}
	none := space.CommitID("0123456789abcdef0123456789abcdef01234567")
	for _, c := range [][2]space.CommitID{{second, none}, {none, second}} {
		if _, err := s.Contains(t.Context(), id, c[0], c[1]); fault.CodeOf(err) != fault.NotFound {
			t.Errorf("a commit that is not there: %v", err)
		}
	}
}
