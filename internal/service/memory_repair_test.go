package service_test

import (
	"strings"
	"testing"

	"satchel/auth/store"
	"satchel/internal/fault"
	"satchel/internal/service"
	"satchel/internal/service/servicetest"
	"satchel/internal/space"
)

func repair(t *testing.T, w *servicetest.World, path string) (service.RepairedFact, error) {
	t.Helper()
	return w.RepairFact(t.Context(), service.Person(store.User{ID: w.Owner.ID, Name: w.Owner.Name}), service.RepairFactInput{Space: service.SpaceRef{ID: w.Space}, Path: space.Path(path)})
}

// A damaged file becomes a fact in its place. A misplaced file moves to the place of a fact.
func TestRepairFact(t *testing.T) {
	w := servicetest.New(t, memoryDay)
	valid := "---\nvalue: Likes tea\nsource: user_explicit\n---\n"
	w.Write(map[string]string{
		"memory/person/bob.md": "Bob is a friend\n", "memory/loose.md": "Loose words\n", "memory/drink/hot/tea.md": valid,
		"memory/drink/hot-tea.md": "---\nvalue: another\n---\n",
	})
	for was, want := range map[string]string{"memory/person/bob.md": "person/bob", "memory/loose.md": "note/loose", "memory/drink/hot/tea.md": "drink/hot-tea-2"} {
		r, err := repair(t, w, was)
		if err != nil || r.Fact.Name() != want || r.Fact.Problem != "" {
			t.Fatalf("%s: %+v, %v", was, r, err)
		}
		if r.Fact.Path != space.Path(was) && contentOf(t, w, space.Path(was)) != "" {
			t.Errorf("%s is still there", was)
		}
	}
	if got := contentOf(t, w, "memory/drink/hot-tea-2.md"); got != valid {
		t.Errorf("a valid fact that only moved is %q", got)
	}
	if got := contentOf(t, w, "memory/drink/hot-tea.md"); !strings.Contains(got, "another") {
		t.Errorf("the other fact is %q", got)
	}
	if got := contentOf(t, w, "memory/person/bob.md"); !strings.Contains(got, "value: Bob is a friend\n") || !strings.Contains(got, "source: inferred\n") {
		t.Errorf("the repaired file is %q", got)
	}
}

// A repair is one commit, so one undo takes it back completely.
func TestARepairIsUndone(t *testing.T) {
	w := servicetest.New(t, memoryDay)
	w.Write(map[string]string{"memory/loose.md": "Loose words\n"})
	r, err := repair(t, w, "memory/loose.md")
	if err != nil {
		t.Fatal(err)
	}
	if _, err = w.Revert(t.Context(), service.Person(store.User{ID: w.Owner.ID}), service.RevertInput{Space: service.SpaceRef{ID: w.Space}, Commits: []space.CommitID{r.Commit}}); err != nil {
		t.Fatal(err)
	}
	if a, b := contentOf(t, w, "memory/loose.md"), contentOf(t, w, "memory/note/loose.md"); a != "Loose words\n" || b != "" {
		t.Errorf("after the undo: %q, %q", a, b)
	}
}

func TestRepairFactRefusesWhatItCannotRepair(t *testing.T) {
	w := servicetest.New(t, memoryDay)
	w.Write(map[string]string{"memory/person/ann.md": "---\nvalue: v\n---\n", "memory/person/empty.md": "\n", "knowledge/a.md": "a\n"})
	before, err := w.Git.Head(t.Context(), w.Space)
	if err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]fault.Code{
		"memory/person/ann.md": fault.Invalid, "memory/person/empty.md": fault.Invalid, "knowledge/a.md": fault.Invalid,
		"memory/../knowledge/a.md": fault.Invalid, "memory/person": fault.Invalid, "memory/none.md": fault.NotFound,
	} {
		if _, err := repair(t, w, path); fault.CodeOf(err) != want {
			t.Errorf("%s: %v, want %s", path, err, want)
		}
	}
	if after, err := w.Git.Head(t.Context(), w.Space); err != nil || after != before {
		t.Errorf("a refused repair changed the space: %v", err)
	}
}
