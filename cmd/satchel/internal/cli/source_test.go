package cli

import (
	"bytes"
	"context"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"satchel/internal/service"
	"satchel/internal/testenv"
)

// gitIn runs git in a repository without the configuration of the machine.
func gitIn(t *testing.T, dir string, args ...string) string {
	t.Helper()
	out, err := testenv.Git(t, dir, args...).CombinedOutput()
	if err != nil {
		t.Fatalf("git %s: %v\n%s", strings.Join(args, " "), err, out)
	}
	return strings.TrimSpace(string(out))
}

// repository is a git repository with one commit.
func repository(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	gitIn(t, dir, "init", "-q")
	if err := os.WriteFile(filepath.Join(dir, "note.md"), []byte("# A note\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	gitIn(t, dir, "add", "note.md")
	gitIn(t, dir, "commit", "-q", "-m", "start")
	return dir
}

// readSource opens a source as `space import` does and reads it to its end.
func readSource(t *testing.T, dir string) (kind string, content []byte, err error) {
	t.Helper()
	s := source{arg: dir, environ: testenv.GitEnv(), stdin: strings.NewReader(""), log: io.Discard, maxFile: func() int64 { return 1 << 20 }}
	kind, stream, err := s.open(context.Background())
	if err != nil {
		return kind, nil, err
	}
	defer stream.Close()
	content, err = io.ReadAll(stream)
	return kind, content, err
}

func TestRepositoryIsReadAsABundle(t *testing.T) {
	kind, content, err := readSource(t, repository(t))
	if err != nil || kind != service.ImportBundle || !bytes.HasPrefix(content, []byte("# v2 git bundle\n")) {
		t.Errorf("kind %q, %d bytes, error %v", kind, len(content), err)
	}
}

func TestBundleIsReadAsItIs(t *testing.T) {
	dir := repository(t)
	file := filepath.Join(t.TempDir(), "notes.bundle")
	gitIn(t, dir, "bundle", "create", "-q", file, "HEAD")
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if err := (source{arg: file}).check(); err != nil {
		t.Error(err)
	}
	kind, content, err := readSource(t, file)
	if err != nil || kind != service.ImportBundle || !bytes.Equal(content, want) {
		t.Errorf("kind %q, %d bytes, error %v", kind, len(content), err)
	}
	for name, data := range map[string]string{"empty": "", "short": "# v2", "text": "# A note of some length\n"} {
		if err := os.WriteFile(file, []byte(data), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := (source{arg: file}).check(); err == nil {
			t.Errorf("%s is a bundle", name)
		}
	}
}

// The attack: a repository that lacks an object and says that it is a partial
// clone names in its own configuration the program that git runs to fetch it.
func TestRepositoryCannotRunAProgramByLazyFetch(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("the program of this attack is a POSIX shell's")
	}
	for _, missing := range []string{"HEAD:note.md", "HEAD^{tree}", "HEAD"} {
		t.Run(missing, func(t *testing.T) {
			dir := repository(t)
			upstream, pwned := t.TempDir(), filepath.Join(t.TempDir(), "PWN")
			gitIn(t, upstream, "clone", "-q", "--bare", dir, ".")
			gitIn(t, upstream, "config", "uploadpack.allowAnySHA1InWant", "true")
			gitIn(t, upstream, "config", "uploadpack.allowFilter", "true")
			id := gitIn(t, dir, "rev-parse", missing)
			if err := os.Remove(filepath.Join(dir, ".git", "objects", id[:2], id[2:])); err != nil {
				t.Fatal(err)
			}
			for key, value := range map[string]string{
				"core.repositoryFormatVersion": "1",
				"extensions.partialClone":      "origin",
				"remote.origin.promisor":       "true",
				"remote.origin.url":            upstream,
				"remote.origin.uploadpack":     "touch '" + pwned + "'; git-upload-pack",
			} {
				gitIn(t, dir, "config", key, value)
			}
			_, _, err := readSource(t, dir)
			if err == nil {
				t.Error("a repository without an object was read")
			}
			if _, err := os.Stat(pwned); err == nil {
				t.Error("the repository ran its program")
			}
		})
	}
}

func TestGitAtLeast(t *testing.T) {
	for said, want := range map[string]bool{
		"git version 2.39.5": true, "git version 2.39.0": true, "git version 2.38.0": false, "git version 3.0": true, "git version 2.50.1 (Apple Git-155)": true,
		"git version 2.37.9": false, "git version 1.99": false, "nonsense": false,
	} {
		if got := gitAtLeast(said, leastGit); got != want {
			t.Errorf("%s: %t", said, got)
		}
	}
}
