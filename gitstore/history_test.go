package gitstore

import (
	"fmt"
	"strings"
	"testing"

	"satchel/internal/fault"
	"satchel/internal/space"
)

func TestLogIsGits(t *testing.T) {
	s := newStore(t)
	id := newSpace(t, s, nil)
	for i := range 12 {
		m := space.Meta{Author: ada, Tool: []string{"bash", "write"}[i%2], Client: []string{"claude", "cursor", ""}[i%3], Message: fmt.Sprint("c", i)}
		p := fmt.Sprintf("d%d/f.md", i%3)
		cs := space.ChangeSet{Changes: []space.Change{{Path: p, Content: []byte(m.Message), Base: at(t, s, id, p)}}}
		if _, err := s.Commit(t.Context(), id, cs, m); err != nil {
			t.Fatal(err)
		}
	}
	ids := func(o space.LogQuery) (out []string) {
		t.Helper()
		cs, err := s.Log(t.Context(), id, o)
		if err != nil {
			t.Fatal(err)
		}
		for _, c := range cs {
			out = append(out, string(c.ID))
		}
		return out
	}
	dir := s.repoDir(id)
	for _, c := range []struct {
		o    space.LogQuery
		args string
	}{
		{space.LogQuery{}, "rev-list main"},
		{space.LogQuery{Limit: 3}, "rev-list -3 main"},
		{space.LogQuery{Path: "d1/f.md"}, "rev-list main -- d1/f.md"},
		{space.LogQuery{Path: "d2"}, "rev-list main -- d2"},
		{space.LogQuery{Path: "none"}, "rev-list main -- none"},
		{space.LogQuery{Tool: "bash"}, "rev-list --grep=Satchel-Tool:.bash main"},
		{space.LogQuery{Client: "cursor", Path: "d1"}, "rev-list --grep=Satchel-Client:.cursor main -- d1"},
	} {
		want := strings.Fields(git(t, dir, strings.Fields(c.args)...))
		if got := ids(c.o); fmt.Sprint(got) != fmt.Sprint(want) {
			t.Errorf("%+v: %v, want %v", c.o, got, want)
		}
	}
	var paged []string
	var after space.CommitID
	for range 10 {
		page := ids(space.LogQuery{Limit: 5, After: after})
		if len(page) == 0 {
			break
		}
		paged = append(paged, page...)
		after = space.CommitID(page[len(page)-1])
	}
	if fmt.Sprint(paged) != fmt.Sprint(ids(space.LogQuery{})) {
		t.Errorf("pages: %v", paged)
	}
	// Full ids, abbreviations, and inputs that are neither.
	full := paged[3]
	for in, want := range map[string]string{"": paged[0], "HEAD": paged[0], full: full, full[:7]: full, full[:12]: full} {
		if got, err := s.Resolve(t.Context(), id, in); err != nil || string(got) != want {
			t.Errorf("%q: %s %v", in, got, err)
		}
	}
	for in, code := range map[string]fault.Code{
		full[:6]: fault.Invalid, "main": fault.Invalid, strings.ToUpper(full): fault.Invalid, full + "0": fault.Invalid, "--all": fault.Invalid,
		strings.Repeat("0", 40): fault.NotFound, "0000000": fault.NotFound, string(at(t, s, id, "d1/f.md")): fault.NotFound,
	} {
		if _, err := s.Resolve(t.Context(), id, in); fault.CodeOf(err) != code {
			t.Errorf("%q: %v", in, err)
		}
	}
}

func TestDiffAndPatchAreGits(t *testing.T) {
	s := newStore(t)
	id := newSpace(t, s, map[string]string{"keep": "k\n", "mod": "1\n2\n3\n", "del": "d\n", "dir/a": "a\n", "f": "file\n", "bin": "\x00\x01"})
	from, _ := s.Head(t.Context(), id)
	c := commit(t, s, id, space.ChangeSet{Changes: []space.Change{
		{Path: "mod", Content: []byte("1\ntwo\n3\n"), Base: at(t, s, id, "mod")},
		{Path: "del", Op: space.Delete, Base: at(t, s, id, "del")},
		{Path: "dir/a", Op: space.Delete, Base: at(t, s, id, "dir/a")}, {Path: "dir", Content: []byte("now a file\n")},
		{Path: "f", Op: space.Delete, Base: at(t, s, id, "f")}, {Path: "f/x", Content: []byte("x")},
		{Path: "bin", Content: []byte("\x00\x02"), Base: at(t, s, id, "bin")},
		{Path: "keep", Content: []byte("k\n"), Mode: space.Executable, Base: at(t, s, id, "keep")},
		{Path: "f.z", Content: []byte("z\n")},
	}})
	for name, fs := range map[string][]space.FileChange{"commit": c.Files, "diff": must(s.Diff(t.Context(), id, from, c.ID))(t)} {
		var lines []string
		for _, f := range fs {
			lines = append(lines, fmt.Sprintf("%c\t%s", f.Status, f.Path))
		}
		if got, want := strings.Join(lines, "\n"), git(t, s.repoDir(id), "diff", "--no-renames", "--name-status", string(from), string(c.ID)); got != want {
			t.Errorf("%s:\n%s\nwant:\n%s", name, got, want)
		}
	}
	patch := must(s.Patch(t.Context(), id, from, c.ID, "mod"))(t)
	if want := git(t, s.repoDir(id), "diff", "--full-index", string(from), string(c.ID), "--", "mod") + "\n"; patch != want {
		t.Errorf("patch:\n%s\nwant:\n%s", patch, want)
	}
	all := must(s.Patch(t.Context(), id, from, c.ID, ""))(t)
	if !strings.Contains(all, "Binary files") || !strings.Contains(all, "+++ b/f.z") {
		t.Error(all)
	}
	show := must(s.Show(t.Context(), id, c.ID))(t)
	if fmt.Sprint(show.Files) != fmt.Sprint(c.Files) || show.Tool != "bash" {
		t.Errorf("%+v", show)
	}
	if fs := must(s.Files(t.Context(), id, from, "dir"))(t); len(fs) != 1 || fs[0].Path != "dir/a" || fs[0].Size != 2 {
		t.Errorf("%+v", fs)
	}
	if fs := must(s.Files(t.Context(), id, "", "dir"))(t); len(fs) != 1 || fs[0].Path != "dir" {
		t.Errorf("%+v", fs)
	}
	if es := must(s.Children(t.Context(), id, "", ""))(t); len(es) != 6 || !es[2].Dir && !es[3].Dir {
		t.Errorf("%+v", es)
	}
}

func must[T any](v T, err error) func(testing.TB) T {
	return func(t testing.TB) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
}

func TestRestore(t *testing.T) {
	s := newStore(t)
	id := newSpace(t, s, map[string]string{"a": "1", "d/x": "x", "d/y": "y", "f": "f"})
	old, _ := s.Head(t.Context(), id)
	commit(t, s, id, space.ChangeSet{Changes: []space.Change{
		{Path: "a", Content: []byte("2"), Base: at(t, s, id, "a")}, {Path: "later", Content: []byte("l")},
		{Path: "d/x", Op: space.Delete, Base: at(t, s, id, "d/x")}, {Path: "d/y", Op: space.Delete, Base: at(t, s, id, "d/y")},
		{Path: "d", Content: []byte("file")}}})
	restore := func(p space.Path) space.Commit {
		t.Helper()
		return must(s.Restore(t.Context(), id, p, old, space.Meta{Author: ada}))(t)
	}
	if c := restore("a"); len(c.Files) != 1 || !strings.HasPrefix(c.Message, "Restore a as of ") || !strings.Contains(c.Message, string(old)) {
		t.Errorf("%+v", c)
	}
	if c := restore("a"); c.Changed {
		t.Error("restored twice")
	}
	restore("d/x") // the file at the directory's path is removed
	if got := tree(t, s, id); fmt.Sprint(got) != "map[a:1 d/x:x f:f later:l]" {
		t.Error(got)
	}
	restore("")
	if got := tree(t, s, id); fmt.Sprint(got) != "map[a:1 d/x:x d/y:y f:f]" {
		t.Error(got)
	}
	if _, err := s.Restore(t.Context(), id, "none", old, space.Meta{}); fault.CodeOf(err) != fault.NotFound {
		t.Error(err)
	}
	fsck(t, s, id)
}
