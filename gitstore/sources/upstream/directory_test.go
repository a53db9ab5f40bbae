package upstream_test

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"testing"

	"satchel/gitstore/sources/upstream"
	"satchel/internal/fault"
)

// A source has the files of the directory after each change, and reads only what changed.
func TestDirectoryFollowsItsFiles(t *testing.T) {
	dir, env, s := t.TempDir(), newEnv(t), &sink{}
	write := func(name, content string) {
		t.Helper()
		p := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(p), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(p, []byte(content), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	u := open(t, "directory", fmt.Sprintf(`{"path": %q}`, dir+"/"))
	check := func() upstream.State {
		t.Helper()
		state, err := u.Check(t.Context(), env)
		if err != nil {
			t.Fatal(err)
		}
		return state
	}
	write("a.md", "# A")
	write("b/talk.vtt", captionText)
	write(".git/config", "x")
	write("b/.hidden.md", "x")
	write("b/picture.png", "\x89PNG\x00")
	outside := filepath.Join(t.TempDir(), "secret.md")
	if err := os.WriteFile(outside, []byte("secret"), 0o644); err != nil {
		t.Fatal(err)
	}
	for link, to := range map[string]string{"out.md": outside, "in.md": "a.md", "dir": filepath.Dir(outside)} {
		if err := os.Symlink(to, filepath.Join(dir, link)); err != nil {
			t.Fatal(err)
		}
	}
	first := check()
	if got := sync(t, env, u, s); got != first || first == "" {
		t.Errorf("fetched %q, and found %q", got, first)
	}
	if got := s.paths(); fmt.Sprint(got) != "[a.md b/talk.vtt.md]" || s.skipped["b/picture.png"] != upstream.Unreadable {
		t.Errorf("%q, skipped %v", got, s.skipped)
	}
	if check() != first {
		t.Error("without a change there is another state")
	}
	write("a.md", "# Another")
	write("c.md", "# C")
	second := check()
	if second == first {
		t.Error("a change has the same state")
	}
	if sync(t, env, u, s); s.put != 2 || s.kept != 1 || s.content["a.md"] != "# Another" {
		t.Errorf("%d new, %d kept, %q", s.put, s.kept, s.content["a.md"])
	}
	if err := os.Remove(filepath.Join(dir, "c.md")); err != nil {
		t.Fatal(err)
	}
	if sync(t, env, u, s); s.kept != 2 || len(s.content) != 2 {
		t.Errorf("after a deletion: %v", maps.Collect(maps.All(s.content)))
	}
}

func TestDirectoryRefuses(t *testing.T) {
	base := t.TempDir()
	data, docs := filepath.Join(base, "data"), filepath.Join(base, "docs")
	for _, d := range []string{filepath.Join(data, "spaces"), docs} {
		if err := os.MkdirAll(d, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	link := filepath.Join(base, "link")
	if err := os.Symlink(data, link); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(base, "file")
	if err := os.WriteFile(file, nil, 0o644); err != nil {
		t.Fatal(err)
	}
	env := newEnv(t)
	env.DataDir = data
	for dir, want := range map[string]fault.Code{
		docs: "", data: fault.Invalid, filepath.Join(data, "spaces"): fault.Invalid, base: fault.Invalid, link: fault.Invalid, "/": fault.Invalid,
		filepath.Join(base, "none"): fault.NotFound, file: fault.Invalid,
	} {
		u := open(t, "directory", fmt.Sprintf(`{"path": %q}`, dir))
		if _, err := u.Check(t.Context(), env); want == "" && err != nil || want != "" && fault.CodeOf(err) != want {
			t.Errorf("%s: %v", dir, err)
		}
	}
	env.Trusted = nil
	if _, err := open(t, "directory", fmt.Sprintf(`{"path": %q}`, docs)).Check(t.Context(), env); fault.CodeOf(err) != fault.Forbidden {
		t.Errorf("a directory that the operator does not trust: %v", err)
	}
	if _, err := upstream.Open("directory", []byte(`{"path": "docs"}`)); fault.FieldOf(err) != "path" {
		t.Errorf("a relative path: %v", err)
	}
}
