package service_test

import (
	"fmt"
	"testing"
	"time"

	"satchel/auth/store"
	"satchel/internal/fault"
	"satchel/internal/service"
	"satchel/internal/service/servicetest"
	"satchel/internal/space"
)

// undoWorld is a space that a client and others changed, a minute apart.
type undoWorld struct {
	*servicetest.World
	t   *testing.T
	now time.Time
}

func newUndoWorld(t *testing.T) *undoWorld {
	return &undoWorld{servicetest.New(t, memoryDay), t, memoryDay().Add(-time.Hour)}
}

// by commits files as a client with bash. The content "" deletes a file.
func (w *undoWorld) by(client, path, content string) space.Commit {
	w.t.Helper()
	w.now = w.now.Add(time.Minute)
	change := space.Change{Path: path, Content: []byte(content)}
	if content == "" {
		change.Op = space.Delete
	}
	if e, err := w.Git.Lookup(w.t.Context(), w.Space, "", space.Path(path)); err == nil {
		change.Base = e.Blob
	}
	c, err := w.Git.Commit(w.t.Context(), w.Space, space.ChangeSet{Changes: []space.Change{change}}, space.Meta{Tool: "bash", Client: client, Message: client + " changes " + path, Time: w.now})
	if err != nil || !c.Changed {
		w.t.Fatal(err, c.Rejected)
	}
	return c
}

func (w *undoWorld) undo(in service.UndoClientInput) (service.ClientUndone, error) {
	in.Space = service.SpaceRef{ID: w.Space}
	return w.UndoClient(w.t.Context(), service.Person(store.User{ID: w.Owner.ID, Name: w.Owner.Name}), in)
}

func (w *undoWorld) has(path, want string) {
	w.t.Helper()
	if got := contentOf(w.t, w.World, space.Path(path)); got != want {
		w.t.Errorf("%s has %q, not %q", path, got, want)
	}
}

// One commit takes back what a client did in a span, and nothing of what others did or what
// the client did before and after. Undoing this commit brings everything back.
func TestUndoClient(t *testing.T) {
	w := newUndoWorld(t)
	w.by("rogue/1.0", "early.md", "early\n")
	since := w.now.Add(time.Second)
	w.by("rogue/1.0", "a.md", "one\n")
	w.by("other", "b.md", "b\n")
	w.by("rogue/1.1", "a.md", "two\n")
	w.by("rogue/1.1", "early.md", "")
	until := w.now.Add(time.Second)
	w.by("rogue/1.1", "late.md", "late\n")
	before, err := w.Git.Head(t.Context(), w.Space)
	if err != nil {
		t.Fatal(err)
	}

	done, err := w.undo(service.UndoClientInput{Client: "rogue", Since: since, Until: until})
	if err != nil || !done.Changed || done.Undone != 3 || done.Parent != before || len(done.Conflicts) != 0 {
		t.Fatalf("%+v, %v", done, err)
	}
	for path, want := range map[string]string{"a.md": "", "b.md": "b\n", "early.md": "early\n", "late.md": "late\n"} {
		w.has(path, want)
	}
	if again, err := w.undo(service.UndoClientInput{Client: "rogue", Since: since, Until: until}); err != nil || again.Changed || again.Undone != 0 {
		t.Errorf("again: %+v, %v", again, err)
	}

	back, err := w.Revert(t.Context(), service.Person(store.User{ID: w.Owner.ID}), service.RevertInput{Space: service.SpaceRef{ID: w.Space}, Commits: []space.CommitID{done.ID}})
	if err != nil || !back.Changed {
		t.Fatalf("%+v, %v", back, err)
	}
	for path, want := range map[string]string{"a.md": "two\n", "early.md": "", "late.md": "late\n"} {
		w.has(path, want)
	}
	// An undo that was undone can be done again.
	if again, err := w.undo(service.UndoClientInput{Client: "rogue", Since: since, Until: until}); err != nil || again.Undone != 3 {
		t.Errorf("after the undo was undone: %+v, %v", again, err)
	}
}

// A file that somebody changed since stays as it is, and the result names it.
func TestUndoClientLeavesWhatOthersChangedSince(t *testing.T) {
	w := newUndoWorld(t)
	since := w.now
	w.by("rogue", "a.md", "one\n")
	w.by("rogue", "b.md", "one\n")
	w.by("other", "a.md", "mine\n")
	done, err := w.undo(service.UndoClientInput{Client: "rogue", Since: since})
	if err != nil || len(done.Conflicts) != 1 || done.Conflicts[0].Path != "a.md" {
		t.Fatalf("%+v, %v", done, err)
	}
	w.has("a.md", "mine\n")
	w.has("b.md", "")
}

// The message of an undo names all of its changes, so that a second call finds none of them.
func TestUndoClientUndoesManyChangesOnce(t *testing.T) {
	w := newUndoWorld(t)
	w.now = w.now.Add(-5 * time.Hour)
	in := service.UndoClientInput{Client: "rogue", Since: w.now}
	for i := range 201 {
		w.by("rogue", "a.md", fmt.Sprintln(i))
	}
	if done, err := w.undo(in); err != nil || done.Undone != 201 {
		t.Fatalf("%d were undone: %v", done.Undone, err)
	}
	if again, err := w.undo(in); err != nil || again.Changed || again.Undone != 0 {
		t.Errorf("again: %d were undone: %v", again.Undone, err)
	}
	w.has("a.md", "")
}

func TestUndoClientRefusesASpanWithoutABeginningOrAClient(t *testing.T) {
	w := newUndoWorld(t)
	w.by("rogue", "a.md", "one\n")
	for name, in := range map[string]service.UndoClientInput{
		"no client":           {Since: w.now},
		"no time":             {Client: "rogue"},
		"the end comes first": {Client: "rogue", Since: w.now, Until: w.now.Add(-time.Minute)},
	} {
		if _, err := w.undo(in); fault.CodeOf(err) != fault.Invalid {
			t.Errorf("%s: %v", name, err)
		}
	}
	w.has("a.md", "one\n")
}
