package remotes_test

import (
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"satchel/gitstore/remotes"
	"satchel/gitstore/remotetest"
	"satchel/gitstore/transport"
	"satchel/internal/space"
	"satchel/internal/testenv"
)

// remove commits the removal of a file, and new files.
func (r *real) remove(name string, files map[string]string) {
	r.t.Helper()
	head, err := r.store.Head(r.t.Context(), r.id)
	if err != nil {
		r.t.Fatal(err)
	}
	base, mode, _, err := r.store.Blob(r.t.Context(), r.id, head, space.Path(name))
	if err != nil {
		r.t.Fatal(err)
	}
	cs := space.ChangeSet{Changes: []space.Change{{Path: name, Op: space.Delete, Base: base, BaseMode: mode}}}
	for p, content := range files {
		cs.Changes = append(cs.Changes, space.Change{Path: p, Content: []byte(content)})
	}
	if c, err := r.store.Commit(r.t.Context(), r.id, cs, space.Meta{}); err != nil || !c.Changed {
		r.t.Fatal(c, err)
	}
}

// Following the advice in the notices of real merges loses nothing.
func TestWhatMergesAreTold(t *testing.T) {
	long := strings.Repeat("a line of the file\n", 20)
	for _, c := range []struct {
		name  string
		here  func(r *real)
		there map[string]string
		left  []string
		says  string
		never string
	}{
		{"changed here, deleted there", func(r *real) { r.write(map[string]string{"e.md": "mine\n"}) },
			map[string]string{"e.md": remotetest.Gone}, []string{"e.md", "here.md"}, "“e.md” (as this space has it)", "copy:"},
		{"deleted here, changed there", func(r *real) { r.remove("e.md", nil) },
			map[string]string{"e.md": "theirs\n"}, []string{"e.md", "here.md"}, "“e.md” (as 127.0.0.1 has it)", "copy:"},
		{"renamed twice", func(r *real) { r.remove("e.md", map[string]string{"ours.md": long}) },
			map[string]string{"e.md": remotetest.Gone, "theirs.md": long}, []string{"here.md", "ours.md", "theirs.md"}, "“theirs.md” (here: “ours.md”)", "lines"},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := newReal(t, nil)
			r.write(map[string]string{"e.md": long})
			r.set(remotes.SetRequest{})
			r.inStep("main")
			resume, err := r.Pause(t.Context(), r.id)
			if err != nil {
				t.Fatal(err)
			}
			r.remote.Push("notes", "main", c.there)
			c.here(r)
			resume()
			r.inStep("main")
			if got := r.files(); !slices.Equal(got, c.left) {
				t.Errorf("%q", got)
			}
			if n := r.notices(); !strings.Contains(n, c.says) || strings.Contains(n, c.never) {
				t.Errorf("%s", n)
			}
		})
	}
}

// The notice with the space's replaced head stays after the remote is removed, because nothing
// else names that head.
func TestReplacedIsToldAfterRemove(t *testing.T) {
	r := newReal(t, nil)
	r.remote.Push("notes", "main", map[string]string{"theirs.md": "theirs\n"})
	left, err := r.store.Head(t.Context(), r.id)
	if err != nil {
		t.Fatal(err)
	}
	r.set(remotes.SetRequest{Replace: true})
	if err := r.Remove(t.Context(), r.id); err != nil {
		t.Fatal(err)
	}
	st, err := r.Status(t.Context(), r.id)
	if err != nil || st.State != space.RemoteLocal || len(st.Notes) != 1 || !strings.Contains(st.Notes[0].Text, left.Short()) || st.Notes[0].At.IsZero() {
		t.Errorf("%+v %v", st, err)
	}
	if n := r.notices(); !strings.Contains(n, left.Short()) {
		t.Errorf("%q", n)
	}
	if n := r.notices(); n != "" {
		t.Errorf("told twice: %q", n)
	}
}

// The error for a real directory says why the directory cannot be used.
func TestDirectories(t *testing.T) {
	work := filepath.Join(t.TempDir(), "work")
	for _, args := range [][]string{{"init", "-q", "-b", "main", work}, {"-C", work, "commit", "-q", "--allow-empty", "-m", "x"}} {
		if out, err := testenv.Git(t, "", args...).CombinedOutput(); err != nil {
			t.Fatalf("%s: %v", out, err)
		}
	}
	for _, c := range []struct {
		url     string
		problem transport.Problem
		says    string
	}{
		{filepath.Join(t.TempDir(), "none"), transport.Gone, "no git repository at that path"},
		{t.TempDir(), transport.Gone, "no git repository at that path"},
		{work, transport.Rejected, "working copy"},
	} {
		st := newReal(t, nil).set(remotes.SetRequest{URL: c.url})
		if st.Problem != c.problem || !strings.Contains(st.Detail, c.says) || !strings.Contains(st.Remedy, "git init --bare") || strings.Contains(st.Remedy, "browser") {
			t.Errorf("%s %s %s", st.Problem, st.Detail, st.Remedy)
		}
	}
}
