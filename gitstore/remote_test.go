package gitstore

import (
	"fmt"
	"maps"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"satchel/gitstore/transport"
	"satchel/internal/space"
	"satchel/internal/testenv"
)

// origin is a bare repository that is the remote of spaces in a test, with a person's clone of
// it.
type origin struct {
	t    testing.TB
	dir  string
	work string
}

func newOrigin(t testing.TB) *origin {
	t.Helper()
	o := &origin{t: t, dir: filepath.Join(t.TempDir(), "origin.git"), work: filepath.Join(t.TempDir(), "work")}
	git(t, t.TempDir(), "init", "-q", "--bare", "-b", "main", o.dir)
	git(t, t.TempDir(), "init", "-q", "-b", "main", o.work)
	git(t, o.work, "remote", "add", "origin", o.dir)
	return o
}

func (o *origin) endpoint() transport.Endpoint { return transport.Endpoint{URL: o.dir, Trusted: true} }

// commit runs a script in the clone at a commit or a branch ("" for the current one). It
// commits the changes, pushes them as a branch and returns the commit.
func (o *origin) commit(at, as, script string) space.CommitID {
	o.t.Helper()
	if at != "" {
		git(o.t, o.work, "checkout", "-q", "--detach", at)
		git(o.t, o.work, "clean", "-fdxq")
	}
	cmd := exec.Command(testenv.NeedProgram(o.t, "sh"), "-euc", script)
	cmd.Dir = o.work
	cmd.Env = testenv.GitEnv()
	if out, err := cmd.CombinedOutput(); err != nil {
		o.t.Fatalf("%s: %v\n%s", script, err, out)
	}
	if !strings.Contains(script, "git update-index") {
		git(o.t, o.work, "add", "-A")
	}
	git(o.t, o.work, "commit", "-q", "--allow-empty", "-m", "Change "+as)
	git(o.t, o.work, "push", "-q", "-f", "origin", "HEAD:refs/heads/"+as)
	return space.CommitID(git(o.t, o.work, "rev-parse", "HEAD"))
}

func withTransport(t testing.TB) func(*Options) {
	c := transport.New(transport.Options{})
	t.Cleanup(func() { c.Close() })
	return func(o *Options) { o.Transport = c }
}

// receive fetches a branch and integrates it.
func receive(t testing.TB, s *Store, id space.SpaceID, o *origin, branch string) Integration {
	t.Helper()
	f, err := s.Fetch(t.Context(), id, o.endpoint(), branch, nil)
	if err != nil {
		t.Fatal(err)
	}
	return integrate(t, s, id, f.Tip)
}

func integrate(t testing.TB, s *Store, id space.SpaceID, tip space.CommitID) Integration {
	t.Helper()
	res, err := s.Integrate(t.Context(), id, tip, space.Meta{Author: ada, Tool: "sync"})
	if err != nil {
		t.Fatal(err)
	}
	return res
}

// listing renders the tree of a commit with the real git: a line for each file, with its mode
// unless it is that of a plain file.
func listing(t testing.TB, dir, rev string) string {
	t.Helper()
	var out []string
	for e := range strings.SplitSeq(git(t, dir, "-c", "core.quotePath=false", "ls-tree", "-r", "-z", rev), "\x00") {
		if e == "" {
			continue
		}
		info, path, _ := strings.Cut(e, "\t")
		f := strings.Fields(info)
		line := path + " = "
		switch f[0] {
		case "100755":
			line = path + " (x) = "
		case "120000":
			line = path + " -> "
		case "160000":
			out = append(out, path+" @ "+f[2][:7])
			continue
		}
		out = append(out, line+strings.ReplaceAll(git(t, dir, "cat-file", "blob", f[2]), "\n", "|"))
	}
	slices.Sort(out)
	return strings.Join(out, "\n")
}

func toldOf(c space.Commit) string {
	var told []string
	for _, x := range c.Conflicts {
		told = append(told, fmt.Sprintf("%s→%s", x.Path, x.Kept))
	}
	return strings.Join(told, " ")
}

// sorted sorts lines and joins them.
func sorted(lines ...string) string {
	slices.Sort(lines)
	return strings.Join(lines, "\n")
}

// sameFiles compares the files of two spaces.
func sameFiles(t testing.TB, what string, a, b map[string]string) {
	t.Helper()
	if !maps.Equal(a, b) {
		t.Errorf("%s:\n%v\nand\n%v", what, a, b)
	}
}
