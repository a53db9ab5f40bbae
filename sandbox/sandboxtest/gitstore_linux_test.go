package sandboxtest_test

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"satchel/gitstore"
	"satchel/internal/space"
	"satchel/internal/testenv"
	"satchel/sandbox"
	"satchel/sandbox/protocol"
	"satchel/sandbox/sandboxtest"
)

// openStore opens a real store that ends with the test, with one space.
func openStore(t testing.TB, o gitstore.Options, files map[string]string) (*gitstore.Store, space.SpaceID) {
	t.Helper()
	testenv.NeedProgram(t, "git")
	o.Dir, o.CheckoutOwner, o.Logger = t.TempDir(), protocol.CommandUID, sandboxtest.Logger(t)
	store, err := gitstore.Open(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := store.Close(); err != nil {
			t.Error(err)
		}
	})
	id := space.NewSpaceID()
	var cs space.ChangeSet
	for p, c := range files {
		cs.Changes = append(cs.Changes, space.Change{Path: p, Content: []byte(c)})
	}
	if _, err := store.Create(t.Context(), id, cs, space.Meta{Author: space.Person{Name: "Ada", Email: "ada@example.org"}, Message: "Start"}); err != nil {
		t.Fatal(err)
	}
	return store, id
}

// newReal makes a pool over real sandboxes and a real store with one space.
func newReal(t testing.TB, files map[string]string) (*sandbox.Pool, *gitstore.Store, space.SpaceID) {
	t.Helper()
	rt := newGVisor(t)
	store, id := openStore(t, gitstore.Options{}, files)
	return sandboxtest.NewPool(t, sandbox.Options{Runtime: rt, Checkouts: store, Committer: store, Logger: sandboxtest.Logger(t), ViewTime: time.Minute}), store, id
}

func run(t testing.TB, p *sandbox.Pool, id space.SpaceID, command, comment string) sandbox.Result {
	t.Helper()
	r, err := p.Exec(t.Context(), sandbox.Request{
		User: "u_ada", Space: id, Command: command, Comment: comment,
		Author: space.Person{Name: "Ada", Email: "ada@example.org"}, Tool: "bash", Client: "test",
	})
	if err != nil {
		t.Fatalf("%s: %v", command, err)
	}
	if r.NotSaved != nil || len(r.Notes) > 0 {
		t.Errorf("%s: not saved: %v, notes: %q", command, r.NotSaved, r.Notes)
	}
	return r
}

func TestPoolOverGVisorAndGit(t *testing.T) {
	t.Parallel()
	p, store, id := newReal(t, map[string]string{"readme.md": "hello\n", "docs/a.md": "a\n", "docs/b.md": "b\n"})

	r := run(t, p, id, "mkdir knowledge; echo note > knowledge/notes.md; rm -r docs", "Write a note")
	if len(r.Commits) != 1 || r.Commits[0].Message != "Write a note" {
		t.Fatalf("%+v", r.Commits)
	}
	head, err := store.Head(t.Context(), id)
	if err != nil || head != r.Commits[0].ID {
		t.Errorf("head is %s, the answer named %s, %v", head, r.Commits[0].ID, err)
	}

	// git inside shows the commit that the last answer named.
	r = run(t, p, id, "git log --format=%H -1; git status --porcelain; git show --stat --format=%an", "")
	if want := string(head) + "\nAda\n"; !strings.HasPrefix(r.Stdout.Text, want) || !strings.Contains(r.Stdout.Text, "knowledge/notes.md") {
		t.Errorf("git inside says %q (%s), want it to begin with %q", r.Stdout.Text, r.Stderr.Text, want)
	}
	if r = run(t, p, id, "git commit -am no; touch .git/x; git config a.b c", ""); r.ExitCode == 0 || len(r.Commits)+len(r.Refused) > 0 {
		t.Errorf("git inside could write: %+v", r)
	}

	// A person edits in the meantime: the next command sees it.
	c, err := store.Commit(t.Context(), id, space.ChangeSet{Changes: []space.Change{{Path: "web.md", Content: []byte("from the web\n")}}}, space.Meta{Message: "Edit"})
	if err != nil {
		t.Fatal(err)
	}
	r = run(t, p, id, "cat web.md; git log -1 --format=%s; echo more >> web.md", "Add")
	if r.Stdout.Text != "from the web\nEdit\n" || len(r.Applied) != 1 || len(r.Commits) != 1 || r.Commits[0].Parent != c.ID {
		t.Errorf("%+v", r)
	}
	conflictsAreKept(t, p, store, id)
	head, err = store.Head(t.Context(), id)
	if err != nil {
		t.Fatal(err)
	}
	files, err := store.Files(t.Context(), id, head, "")
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, f := range files {
		names = append(names, string(f.Path))
	}
	if want := []string{"knowledge/notes.md", "readme.md", "web.md"}; !slices.Equal(names, want) {
		t.Errorf("the space holds %q, want %q", names, want)
	}
}

// conflictsAreKept lets a person and a command change one file at once, and
// takes both versions away again.
func conflictsAreKept(t *testing.T, p *sandbox.Pool, store *gitstore.Store, id space.SpaceID) {
	t.Helper()
	edited := make(chan struct{})
	tell := sync.OnceFunc(func() { close(edited) })
	done := make(chan sandbox.Result, 1)
	go func() {
		r, err := p.Exec(t.Context(), sandbox.Request{
			User: "u_ada", Space: id, Command: "echo mine > web.md; echo started; until grep -q theirs web.md; do sleep 0.02; done",
			OnProgress: func(p sandbox.Progress) {
				if p.Line == "started" {
					tell()
				}
			},
		})
		if err != nil {
			t.Error(err)
		}
		tell()
		done <- r
	}()
	<-edited
	b, m, _, err := store.Blob(t.Context(), id, headOf(t, store, id), "web.md")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := store.Commit(t.Context(), id, space.ChangeSet{Changes: []space.Change{{Path: "web.md", Content: []byte("theirs\n"), Base: b, BaseMode: m}}}, space.Meta{}); err != nil {
		t.Fatal(err)
	}
	r := run(t, p, id, "true", "")
	<-done
	if len(r.Conflicts) != 1 || r.Conflicts[0].Path != "web.md" || r.Conflicts[0].Kept == "" {
		t.Fatalf("conflicts %+v", r.Conflicts)
	}
	r = run(t, p, id, fmt.Sprintf("cat web.md '%[1]s'; rm '%[1]s'", r.Conflicts[0].Kept), "")
	if r.Stdout.Text != "theirs\nmine\n" || len(r.Conflicts) != 0 {
		t.Errorf("%+v", r)
	}
}

func headOf(t *testing.T, store *gitstore.Store, id space.SpaceID) space.CommitID {
	t.Helper()
	head, err := store.Head(t.Context(), id)
	if err != nil {
		t.Fatal(err)
	}
	return head
}
