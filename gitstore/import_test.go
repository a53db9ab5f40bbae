//go:build unix

package gitstore

import (
	"archive/tar"
	"bytes"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"satchel/internal/fault"
	"satchel/internal/space"
	"satchel/internal/testenv"
)

// sourceRepo creates a git repository with a work tree and two commits. The change function can
// add files before the second commit.
func sourceRepo(t testing.TB, change func(dir string)) string {
	t.Helper()
	dir := t.TempDir()
	git(t, dir, "init", "-q", "-b", "trunk")
	overwrite(t, filepath.Join(dir, "readme.md"), "old\n")
	git(t, dir, "add", "-A")
	git(t, dir, "commit", "-q", "-m", "First")
	overwrite(t, filepath.Join(dir, "readme.md"), "new\n")
	if err := os.MkdirAll(filepath.Join(dir, "resources"), 0o755); err != nil {
		t.Fatal(err)
	}
	overwrite(t, filepath.Join(dir, "resources/instructions.md"), "theirs\n")
	if change != nil {
		change(dir)
	}
	git(t, dir, "add", "-A")
	git(t, dir, "commit", "-q", "-m", "Second")
	return dir
}

// files returns a source with the files of a directory, as the command line sends them.
func files(t testing.TB, dir string) ImportSource {
	t.Helper()
	var b bytes.Buffer
	if err := WriteTar(t.Context(), dir, &b, 0); err != nil {
		t.Fatal(err)
	}
	return FromTar(&b)
}

func TestAHistoryBecomesThatOfAPristineSpace(t *testing.T) {
	dir := sourceRepo(t, nil)
	rec := &recorder{}
	s := newStore(t, func(o *Options) { o.Events = rec })
	id := space.NewSpaceID()
	first, err := s.Create(t.Context(), id, StartingTree(), space.Meta{Author: ada})
	if err != nil {
		t.Fatal(err)
	}
	sd := seed(t, s, id)
	defer sd.Release()
	lines := 0
	res, err := s.Import(t.Context(), id, FromBundle(testenv.Bundle(t, dir)), space.Meta{Author: ada}, func(string) { lines++ })
	if err != nil {
		t.Fatal(err)
	}
	if !res.History || !res.Commit.Changed || res.Files != 2 || res.Noted != 0 {
		t.Errorf("%+v", res)
	}
	files := tree(t, s, id)
	if files["resources/instructions.md"] != "theirs" || files["readme.md"] != "new" || files["knowledge/README.md"] == "" {
		t.Errorf("%v", files)
	}
	if got := git(t, s.repoDir(id), "log", "--format=%s", "main"); got != "Import a git repository\nSecond\nFirst" {
		t.Errorf("log:\n%s", got)
	}
	if got := gitIn(t, sd, "log", "--format=%s"); got != "Import a git repository\nSecond\nFirst" {
		t.Errorf("log inside:\n%s", got)
	}
	// The objects that a sandbox of the first commit needs still exist.
	if ds, err := s.Diff(t.Context(), id, first.ID, res.Commit.ID); err != nil || len(ds) != 2 || len(res.Commit.Files) != 2 {
		t.Errorf("%v %v", ds, err)
	}
	fsck(t, s, id)
	if left, _ := os.ReadDir(filepath.Join(s.o.Dir, quarantineDir)); len(left) > 0 {
		t.Error("the quarantine is left")
	}
	commit(t, s, id, writes(map[string]string{"more": "x"}))
	if len(rec.ids) != 3 {
		t.Errorf("%d events", len(rec.ids))
	}
	// The space now has a history, so a second import replaces nothing.
	again, err := s.Import(t.Context(), id, FromBundle(testenv.Bundle(t, sourceRepo(t, func(d string) {
		overwrite(t, filepath.Join(d, "readme.md"), "other\n")
	}))), space.Meta{Author: ada}, nil)
	if err != nil || again.History || len(again.Commit.Conflicts) != 1 {
		t.Errorf("%+v %v", again, err)
	}
	if tree(t, s, id)["readme.md"] != "new" {
		t.Error("the second import replaced a file")
	}
}

func TestFilesAreImportedFromADirectory(t *testing.T) {
	dir := t.TempDir()
	outside := filepath.Join(t.TempDir(), "secret")
	overwrite(t, outside, "secret")
	for _, d := range []string{".git", "resources", "nested/.git"} {
		if err := os.MkdirAll(filepath.Join(dir, d), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	overwrite(t, filepath.Join(dir, ".git/config"), "[core]\n\tfsmonitor = touch /tmp/owned\n")
	overwrite(t, filepath.Join(dir, "nested/.git/config"), "x")
	overwrite(t, filepath.Join(dir, "nested/kept.md"), "kept")
	overwrite(t, filepath.Join(dir, "resources/instructions.md"), "mine")
	overwrite(t, filepath.Join(dir, "big"), strings.Repeat("x", 2000))
	overwrite(t, filepath.Join(dir, "bad\nname"), "x")
	for link, target := range map[string]string{"in": "nested/kept.md", "out": outside, "up": "../../etc/passwd"} {
		if err := os.Symlink(target, filepath.Join(dir, link)); err != nil {
			t.Fatal(err)
		}
	}
	if err := syscall.Mkfifo(filepath.Join(dir, "fifo"), 0o600); err != nil {
		t.Fatal(err)
	}
	s := newStore(t, func(o *Options) { o.Limits.File = 1000 })
	id := newSpace(t, s, map[string]string{"resources/instructions.md": "seed", "other": "o"})
	res, err := s.Import(t.Context(), id, files(t, dir), space.Meta{Author: ada}, nil)
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]string{"nested/kept.md": "kept", "resources/instructions.md": "mine", "in": "nested/kept.md", "other": "o"}
	if got := tree(t, s, id); fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("%v, want %v", got, want)
	}
	noted := map[string]bool{}
	for _, n := range res.Notes {
		noted[n.Path] = true
	}
	for _, p := range []string{"big", "bad\nname", "out", "up", "fifo"} {
		if !noted[p] {
			t.Errorf("%q was left out in silence", p)
		}
	}
	if len(noted) != 5 || res.Noted != 5 {
		t.Errorf("%+v", res.Notes)
	}
	fsck(t, s, id)
}

// TestHostileTar imports entries that could lead a tar program out of the space.
func TestHostileTar(t *testing.T) {
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	for _, h := range []tar.Header{
		{Name: "../../etc/cron.d/x", Typeflag: tar.TypeReg, Size: 1}, {Name: "/abs", Typeflag: tar.TypeReg, Size: 1},
		{Name: "d", Typeflag: tar.TypeSymlink, Linkname: "/etc"}, {Name: "d/passwd", Typeflag: tar.TypeReg, Size: 1},
		{Name: "hard", Typeflag: tar.TypeLink, Linkname: "/etc/passwd"}, {Name: "dev", Typeflag: tar.TypeChar},
		{Name: ".git/hooks/post-commit", Typeflag: tar.TypeReg, Size: 1}, {Name: "./ok", Typeflag: tar.TypeReg, Size: 1, Mode: 0o4755},
	} {
		if err := w.WriteHeader(&h); err != nil {
			t.Fatal(err)
		}
		if h.Size > 0 {
			w.Write([]byte("x"))
		}
	}
	w.Close()
	whole := b.Bytes()
	s := newStore(t)
	id := newSpace(t, s, map[string]string{"a": "a"})
	for _, n := range []int{0, 100, 512, 600, 1024, 1800, len(whole) - 1024} {
		if _, err := s.Import(t.Context(), id, FromTar(bytes.NewReader(whole[:n])), space.Meta{}, nil); fault.CodeOf(err) != fault.Invalid {
			t.Errorf("the first %d bytes of a stream: %v", n, err)
		}
	}
	if left, _ := filepath.Glob(filepath.Join(s.repoDir(id), "objects/pack/tmp_*")); len(left) > 0 {
		t.Error(left)
	}
	res, err := s.Import(t.Context(), id, FromTar(bytes.NewReader(whole)), space.Meta{}, nil)
	if err != nil || res.Noted != 6 {
		t.Errorf("%+v %v", res, err)
	}
	if got := tree(t, s, id); fmt.Sprint(got) != "map[a:a d/passwd:x ok:x]" {
		t.Error(got)
	}
}

// TestHostileRepositories checks that dangerous content is refused, and that nothing in it
// runs.
func TestHostileRepositories(t *testing.T) {
	s := newStore(t)
	id := newSpace(t, s, map[string]string{"a": "a"})
	head, _ := s.Head(t.Context(), id)
	owned := filepath.Join(t.TempDir(), "owned")

	dotgit := sourceRepo(t, nil)
	blob := git(t, dotgit, "hash-object", "-w", "readme.md")
	sub := strings.TrimSpace(gitStdin(t, dotgit, "100644 blob "+blob+"\tconfig\n", "mktree"))
	root := strings.TrimSpace(gitStdin(t, dotgit, "040000 tree "+sub+"\t.GIT\n", "mktree"))
	git(t, dotgit, "update-ref", "refs/heads/trunk", git(t, dotgit, "commit-tree", "-m", "evil", root))

	hooks := sourceRepo(t, nil)
	for _, h := range []string{"post-upload-pack", "reference-transaction", "post-checkout"} {
		p := filepath.Join(hooks, ".git/hooks", h)
		overwrite(t, p, "#!/bin/sh\ntouch "+owned+"\n")
		os.Chmod(p, 0o755)
	}
	git(t, hooks, "config", "core.fsmonitor", "touch "+owned)
	git(t, hooks, "config", "uploadpack.packObjectsHook", "touch "+owned+";")

	for name, c := range map[string]struct {
		src  ImportSource
		code fault.Code
	}{
		"a .GIT directory in a bundle": {FromBundle(testenv.Bundle(t, dotgit)), fault.Invalid},
		"half a bundle":                {FromBundle(io.LimitReader(testenv.Bundle(t, hooks), 300)), fault.Invalid},
		"no bundle":                    {FromBundle(strings.NewReader("hello")), fault.Invalid},
	} {
		t.Run(name, func(t *testing.T) {
			res, err := s.Import(t.Context(), id, c.src, space.Meta{}, nil)
			if fault.CodeOf(err) != c.code {
				t.Errorf("%v, want %s (%+v)", err, c.code, res)
			}
			if strings.Contains(fault.PublicOf(err), "canary") || strings.Contains(fault.PublicOf(err), s.o.Dir) {
				t.Errorf("told too much: %v", fault.PublicOf(err))
			}
			if now, _ := s.Head(t.Context(), id); now != head {
				t.Error("head moved")
			}
		})
	}
	if _, err := s.Import(t.Context(), id, FromBundle(testenv.Bundle(t, hooks)), space.Meta{}, nil); err != nil {
		t.Error(err)
	}
	if _, err := os.Stat(owned); err == nil {
		t.Error("something of a source's configuration ran")
	}
	fsck(t, s, id)
}

// TestOddHistoriesAreKept checks that a history keeps submodules, links out of the space, old
// modes and large files, and that checkouts leave out the dangerous ones.
func TestOddHistoriesAreKept(t *testing.T) {
	dir := sourceRepo(t, func(d string) {
		os.Symlink("/etc/passwd", filepath.Join(d, "out"))
		overwrite(t, filepath.Join(d, "big"), strings.Repeat("b", 3000))
		git(t, d, "update-index", "--add", "--cacheinfo", "160000,"+strings.Repeat("1", 40)+",sub")
		os.Mkdir(filepath.Join(d, "sub"), 0o755)
	})
	s := newStore(t, func(o *Options) { o.Limits.File = 1000 })
	id := newSpace(t, s, map[string]string{"seeded": "s"})
	res, err := s.Import(t.Context(), id, FromBundle(testenv.Bundle(t, dir)), space.Meta{Author: ada}, nil)
	if err != nil || res.Noted != 2 {
		t.Fatalf("%+v %v", res, err)
	}
	sd := seed(t, s, id)
	defer sd.Release()
	if _, err := os.Lstat(filepath.Join(sd.Dir, "out")); err == nil {
		t.Error("a link out of the space is in the checkout")
	}
	if st, err := os.Stat(filepath.Join(sd.Dir, "sub")); err != nil || !st.IsDir() {
		t.Error("the submodule's directory is missing")
	}
	if got := gitIn(t, sd, "status", "--porcelain", "--ignore-submodules=none"); got != "D  out" {
		t.Errorf("status: %q", got)
	}
	got := commit(t, s, id, space.ChangeSet{Policy: space.KeepBoth, Changes: []space.Change{
		{Path: "sub", Content: []byte("x")}, {Path: "sub/file", Content: []byte("x")}, {Path: "sub", Op: space.Delete}, {Path: "ok", Content: []byte("k")}}})
	if len(got.Rejected) != 2 || len(got.Files) != 1 {
		t.Errorf("%+v", got)
	}
	if n := git(t, s.repoDir(id), "ls-tree", "-r", "--name-only", "main"); !strings.Contains(n, "sub") || !strings.Contains(n, "out") {
		t.Error(n)
	}
}

func TestImportsKeepToTheLimits(t *testing.T) {
	s := newStore(t, func(o *Options) { o.Limits.Space = 500; o.Limits.Files = 10 })
	id := newSpace(t, s, map[string]string{"a": "a"})
	dir := sourceRepo(t, func(d string) { overwrite(t, filepath.Join(d, "x"), strings.Repeat("x", 600)) })
	for name, src := range map[string]ImportSource{
		"directory": files(t, dir), "bundle": FromBundle(testenv.Bundle(t, dir)),
	} {
		if _, err := s.Import(t.Context(), id, src, space.Meta{}, nil); fault.CodeOf(err) != fault.TooLarge {
			t.Errorf("%s: %v", name, err)
		}
	}
	if st, _ := s.Stats(t.Context(), id); st.Packs != 1 {
		t.Errorf("a refused import left %d packs", st.Packs-1)
	}
}
