package gitstore

import (
	"fmt"
	"slices"
	"testing"

	"satchel/internal/space"
)

func TestContentsAreEachWrittenOneOnce(t *testing.T) {
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
	blob := func(p string) space.BlobID { return at(t, s, id, p) }
	second := change(space.Change{Path: "a.md", Content: []byte("two\n"), Base: blob("a.md")}, space.Change{Path: "b.md", Content: []byte("one\n")})
	change(space.Change{Path: "a.md", Content: []byte("one\n"), Base: blob("a.md")})
	change(space.Change{Path: "b.md", Op: space.Delete, Base: blob("b.md")}, space.Change{Path: "l", Mode: space.Symlink, Content: []byte("a.md")})

	visit := func(since space.CommitID) []string {
		t.Helper()
		var got []string
		err := s.WalkBlobs(t.Context(), id, since, func(_ space.CommitID, p space.Path, content []byte) error {
			if p != "" {
				got = append(got, fmt.Sprintf("%s=%s", p, content))
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
		slices.Sort(got)
		return got
	}
	if got, want := visit(""), []string{"a.md=one\n", "a.md=two\n", "b.md=one\n", "l=a.md"}; !slices.Equal(got, want) {
		t.Errorf("all: %q", got)
	}
	if got, want := visit(second), []string{"a.md=one\n", "l=a.md"}; !slices.Equal(got, want) {
		t.Errorf("since the second: %q", got)
	}
	stop := fmt.Errorf("enough")
	if err := s.WalkBlobs(t.Context(), id, "", func(space.CommitID, space.Path, []byte) error { return stop }); err != stop {
		t.Errorf("an error of visit: %v", err)
	}
}

// TestContentsHaveWhatPeopleWroteInCommits checks that messages are visited, and each name
// once.
func TestContentsHaveWhatPeopleWroteInCommits(t *testing.T) {
	s := newStore(t)
	id := imported(t, s, `echo a >a; c -m 'first SECRET'; echo b >b; c --author "SECRET <s@example.org>" -m second`)
	var got []string
	err := s.WalkBlobs(t.Context(), id, "", func(at space.CommitID, p space.Path, content []byte) error {
		if p == "" {
			got = append(got, string(content))
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"first " + secret + "\n", "second\n", "Grace <grace@example.org>", secret + " <s@example.org>", "Git <git@example.org>"} {
		if n := len(slices.DeleteFunc(slices.Clone(got), func(w string) bool { return w != want })); n != 1 {
			t.Errorf("%q was visited %d times: %q", want, n, got)
		}
	}
}
