package gitstore

import (
	"context"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"satchel/internal/space"
	"satchel/internal/testenv"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var ada = space.Person{Name: "Ada Lovelace", Email: "ada@example.org"}

// newStore opens a store in a new directory.
func newStore(t testing.TB, change ...func(*Options)) *Store {
	t.Helper()
	o := Options{Dir: t.TempDir()}
	for _, c := range change {
		c(&o)
	}
	s, err := Open(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}

// newSpace creates a space that contains the files.
func newSpace(t testing.TB, s *Store, files map[string]string) space.SpaceID {
	t.Helper()
	id := space.NewSpaceID()
	if _, err := s.Create(t.Context(), id, writes(files), space.Meta{Author: ada}); err != nil {
		t.Fatal(err)
	}
	return id
}

func writes(files map[string]string) space.ChangeSet {
	var cs space.ChangeSet
	for p, c := range files {
		cs.Changes = append(cs.Changes, space.Change{Path: p, Content: []byte(c)})
	}
	return cs
}

func commit(t testing.TB, s *Store, id space.SpaceID, cs space.ChangeSet) space.Commit {
	t.Helper()
	c, err := s.Commit(context.Background(), id, cs, space.Meta{Author: ada, Tool: "bash", Client: "claude"})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// git runs the real git on a space's repository.
func git(t testing.TB, dir string, args ...string) string {
	t.Helper()
	out, err := testenv.Git(t, dir, args...).CombinedOutput()
	if err != nil {
		t.Fatalf("git %s: %v\n%s", strings.Join(args, " "), err, out)
	}
	return strings.TrimRight(string(out), "\n")
}

func fsck(t testing.TB, s *Store, id space.SpaceID) {
	t.Helper()
	git(t, s.repoDir(id), "fsck", "--full", "--strict")
}

// tree returns the contents of a space's files at head by path, from the real git.
func tree(t testing.TB, s *Store, id space.SpaceID) map[string]string {
	t.Helper()
	out := map[string]string{}
	for p := range strings.SplitSeq(git(t, s.repoDir(id), "-c", "core.quotePath=false", "ls-tree", "-r", "-z", "--name-only", "main"), "\x00") {
		if p != "" {
			out[p] = git(t, s.repoDir(id), "cat-file", "blob", "main:"+p)
		}
	}
	return out
}

func TestANewSpaceIsARealRepository(t *testing.T) {
	s := newStore(t)
	id := space.NewSpaceID()
	first, err := s.Create(t.Context(), id, StartingTree(), space.Meta{Author: ada})
	if err != nil {
		t.Fatal(err)
	}
	c := commit(t, s, id, writes(map[string]string{"knowledge/notes.md": "hello\n"}))
	if c.Parent != first.ID || !c.Changed || c.Tool != "bash" {
		t.Fatalf("%+v", c)
	}
	fsck(t, s, id)
	if got := git(t, s.repoDir(id), "log", "--format=%an <%ae>|%cn|%s|%(trailers:key=Satchel-Client,valueonly,separator=)"); got !=
		"Ada Lovelace <ada@example.org>|Satchel|Add knowledge/notes.md|claude\nAda Lovelace <ada@example.org>|Satchel|Start the space|" {
		t.Errorf("log:\n%s", got)
	}
	if got := git(t, s.repoDir(id), "show", "main:knowledge/notes.md"); got != "hello" {
		t.Errorf("show: %q", got)
	}
	if got := tree(t, s, id)["resources/instructions.md"]; !strings.HasPrefix(got, "---\nname: ") {
		t.Errorf("instructions: %q", got)
	}
}

// gitStdin runs the real git with input.
func gitStdin(t testing.TB, dir, in string, args ...string) string {
	t.Helper()
	cmd := testenv.Git(t, dir, args...)
	cmd.Stdin = strings.NewReader(in)
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("git %s: %v", strings.Join(args, " "), err)
	}
	return string(out)
}
