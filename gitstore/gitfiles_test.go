package gitstore

import (
	"fmt"
	"strings"
	"testing"

	"satchel/internal/space"
	"satchel/internal/testenv"
)

// TestAttackFilesThatGitReads commits files that, once in the history, make a git server refuse
// every later push if it checks its input. Each is refused, ordinary files pass, and git's fsck
// accepts everything that was committed.
func TestAttackFilesThatGitReads(t *testing.T) {
	module := func(name, path, url, more string) string {
		return "[submodule \"" + name + "\"]\n\tpath = " + path + "\n\turl = " + url + "\n" + more
	}
	good := module("lib/x", "lib/x", "https://example.org/x.git", "")
	for i, c := range []struct {
		path, content string
		mode          space.Mode
		ok            bool
	}{
		{".gitmodules", good, space.Regular, true},
		{".gitmodules", "# none\n", space.Regular, true},
		{"sub/.gitmodules", module("x", "x", "../x.git", "\tbranch = main\n\tupdate = rebase\n\tshallow = true\n"), space.Regular, true},
		{".gitmodules", module("x", "x", "git@github.com:a/b.git", "") + module("y", "y", "ssh://git@example.org:22/b", ""), space.Regular, true},
		{".gitattributes", "* text=auto\n*.png filter=lfs diff=lfs merge=lfs -text\n", space.Regular, true},
		{".gitignore", strings.Repeat("x", 5000), space.Regular, true},
		{"gitmod~5", "x", space.Symlink, true},
		{"notes.gitmodules", "-x", space.Regular, true},

		{".gitmodules", module("x", "x", "-u./payload", ""), space.Regular, false},
		{".gitmodules", module("../../x", "x", "https://example.org/x", ""), space.Regular, false},
		{".gitmodules", module("x", "-x", "https://example.org/x", ""), space.Regular, false},
		{".gitmodules", good + "\tupdate = !touch pwned\n", space.Regular, false},
		{".gitmodules", module("x", "x", "https://example.org/%0ahost=evil", ""), space.Regular, false},
		{".gitmodules", module("x", "x", "https:///evil", ""), space.Regular, false},
		{".gitmodules", module("x", "x", "../../../:80/x", ""), space.Regular, false},
		{".gitmodules", "[submodule \"x\"]\n\turl = \"-u\"\n", space.Regular, false},
		{".gitmodules", "[submodule \"x\"]\n\turl = \\\n-u\n", space.Regular, false},
		{".gitmodules", "[submodule \"x\"] url = -u\n", space.Regular, false},
		{"a/.GITMODULES", module("x", "x", "-u./payload", ""), space.Regular, false},
		{".gitmodules. ", module("x", "x", "-u./payload", ""), space.Regular, false},
		{".gitmodules:x", module("x", "x", "-u./payload", ""), space.Regular, false},
		{".git\u200cmodules", module("x", "x", "-u./payload", ""), space.Regular, false},
		{"gitmod~1", module("x", "x", "-u./payload", ""), space.Regular, false},
		{"GI7EBA~1", module("x", "x", "-u./payload", ""), space.Regular, false},
		{"g~123456", module("x", "x", "-u./payload", ""), space.Regular, false},
		{"~1234567", module("x", "x", "-u./payload", ""), space.Regular, false},
		{`x\.gitmodules`, module("x", "x", "-u./payload", ""), space.Regular, false},
		{".gitmodules", "x", space.Symlink, false},
		{"a/.gitattributes", "x", space.Symlink, false},
		{"a/.gitignore", "x", space.Symlink, false},
		{"a/.mailmap", "x", space.Symlink, false},
		{".gitattributes", strings.Repeat("x", 2047) + "\n", space.Regular, false},
	} {
		t.Run(fmt.Sprintf("%d %q", i, c.path), func(t *testing.T) {
			s := newStore(t)
			id := newSpace(t, s, nil)
			got, err := s.Commit(t.Context(), id, space.ChangeSet{Changes: []space.Change{
				{Path: c.path, Content: []byte(c.content), Mode: c.mode}, {Path: "beside", Content: []byte("x")},
			}}, space.Meta{Author: ada})
			if err != nil {
				t.Fatal(err)
			}
			if ok := len(got.Rejected) == 0; ok != c.ok || len(got.Files) == 0 {
				t.Errorf("refused %v", got.Rejected)
			}
			out, err := testenv.Git(t, s.repoDir(id), "fsck", "--full", "--strict").CombinedOutput()
			if err != nil || strings.Contains(string(out), "warning") {
				t.Errorf("git refuses what was committed: %s", out)
			}
		})
	}
}
