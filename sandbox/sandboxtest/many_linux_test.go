package sandboxtest_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"satchel/gitstore"
	"satchel/internal/space"
	"satchel/internal/testenv"
	"satchel/sandbox"
	"satchel/sandbox/sandboxtest"
)

// newLarge makes a pool over real sandboxes and a real store, for so many files.
func newLarge(t testing.TB, files int, m sandbox.Metrics) (*sandbox.Pool, *gitstore.Store, space.SpaceID) {
	t.Helper()
	rt := newGVisor(t)
	store, id := openStore(t, gitstore.Options{}, map[string]string{"readme.md": "hello\n"})
	limits := sandbox.DefaultLimits()
	limits.Inodes, limits.Disk, limits.Memory = int64(files)+1000, int64(files+1000)*4096*2, 2<<30 // a file takes a page at least
	return sandboxtest.NewPool(t, sandbox.Options{
		Runtime: rt, Checkouts: store, Committer: store, Logger: sandboxtest.Logger(t), Limits: limits, DetachAfter: -1, Metrics: m, CollectTime: 8 * time.Minute,
	}), store, id
}

// makeFiles is a command that makes so many files of different content, two
// hundred to a directory.
func makeFiles(n int) string {
	return fmt.Sprintf(`awk 'BEGIN { for (i = 0; i < %d; i += 200) print "d" int(i / 200) }' | xargs mkdir
awk 'BEGIN { for (i = 0; i < %d; i++) { f = "d" int(i / 200) "/" i ".md"; print "file number " i > f; close(f) } }'`, n, n)
}

// TestManyNewFiles makes 3,000 files by one command, 20,000 in a soak: one commit
// holds them all, with one answer.
func TestManyNewFiles(t *testing.T) {
	t.Parallel()
	n := 3000
	if testenv.Soak() {
		n = 20_000
	}
	var collected time.Duration
	files := 0
	p, store, id := newLarge(t, n, sandbox.Metrics{Collected: func(took time.Duration, entries int, err error) {
		collected += took
		files += entries
	}})
	if _, err := p.Exec(t.Context(), sandbox.Request{User: "u", Space: id, Command: "true"}); err != nil {
		t.Fatal(err)
	}
	began := time.Now()
	r, err := p.Exec(t.Context(), sandbox.Request{User: "u", Space: id, Command: makeFiles(n), Comment: "Make many"})
	if err != nil || r.ExitCode != 0 || r.NotSaved != nil || len(r.Refused) != 0 {
		t.Fatalf("exit code %d, %s, not saved %v, refused %d, %v", r.ExitCode, r.Stderr.Text, r.NotSaved, len(r.Refused), err)
	}
	t.Logf("%d files: answered in %s, the command %s, %d commits, batches %s for %d entries",
		n, time.Since(began).Round(time.Millisecond), r.Duration.Round(time.Millisecond), len(r.Commits), collected.Round(time.Millisecond), files)
	list, err := store.Files(t.Context(), id, "", "")
	if err != nil {
		t.Fatal(err)
	}
	got := map[space.Path]bool{}
	for _, f := range list {
		got[f.Path] = true
		if f.Path == "readme.md" {
			continue
		}
		name, _, _ := strings.Cut(string(f.Path[strings.IndexByte(string(f.Path), '/')+1:]), ".")
		if want := int64(len("file number ") + len(name) + 1); f.Size != want {
			t.Errorf("%s has %d bytes, want %d", f.Path, f.Size, want)
		}
	}
	for i := range n {
		if p := space.Path(fmt.Sprintf("d%d/%d.md", i/200, i)); !got[p] {
			t.Fatalf("%s is missing; there are %d files", p, len(list))
		}
	}
	if len(list) != n+1 {
		t.Errorf("%d files, want %d", len(list), n+1)
	}
	began = time.Now()
	if r, err = p.Exec(t.Context(), sandbox.Request{User: "u", Space: id, Command: "rm -r d*", Comment: "Remove them"}); err != nil || r.NotSaved != nil {
		t.Fatalf("%+v, %v", r.NotSaved, err)
	}
	t.Logf("removed: answered in %s, the command %s", time.Since(began).Round(time.Millisecond), r.Duration.Round(time.Millisecond))
	if list, err := store.Files(t.Context(), id, "", ""); err != nil || len(list) != 1 {
		t.Errorf("%d files are left, %v", len(list), err)
	}
}
