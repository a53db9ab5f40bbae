package sandboxtest_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"satchel/gitstore"
	"satchel/gitstore/damagetest"
	"satchel/internal/fault"
	"satchel/internal/space"
	"satchel/internal/testenv"
	"satchel/sandbox"
	"satchel/sandbox/protocol"
	"satchel/sandbox/sandboxtest"
)

// damagedPool is a pool over real sandboxes and a real store, in a space of
// which one object is damaged on disk.
type damagedPool struct {
	*screenedPool
	dir string
}

// newDamaged makes a space and damages the stored object of a path.
func newDamaged(t testing.TB, files map[string]string, path string) *damagedPool {
	t.Helper()
	testenv.NeedProgram(t, "git")
	dir := t.TempDir()
	open := func() *gitstore.Store {
		store, err := gitstore.Open(gitstore.Options{Dir: dir, CheckoutOwner: protocol.CommandUID, Logger: sandboxtest.Logger(t)})
		if err != nil {
			t.Fatal(err)
		}
		return store
	}
	store := open()
	id := space.NewSpaceID()
	var cs space.ChangeSet
	for p, c := range files {
		cs.Changes = append(cs.Changes, space.Change{Path: p, Content: []byte(c)})
	}
	if _, err := store.Create(t.Context(), id, cs, space.Meta{Message: "Start"}); err != nil {
		t.Fatal(err)
	}
	if err := store.Close(); err != nil {
		t.Fatal(err)
	}
	d := &damagedPool{&screenedPool{t: t, id: id, pending: openPending(t)}, dir}
	damagetest.TurnByte(t, d.repo(), "main:"+path)
	d.store = open()
	t.Cleanup(func() {
		if err := d.store.Close(); err != nil {
			t.Error(err)
		}
	})
	d.pool = sandboxtest.NewPool(t, sandbox.Options{Runtime: newGVisor(t), Pending: d.pending, Checkouts: d.store, Committer: d.store,
		Logger: sandboxtest.Logger(t), ViewTime: time.Minute})
	return d
}

func (d *damagedPool) repo() string { return filepath.Join(d.dir, string(d.id)+".git") }

func (d *damagedPool) git(args ...string) string {
	d.t.Helper()
	cmd := exec.Command("git", append([]string{"--git-dir", d.repo()}, args...)...)
	cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=/nonexistent", "GIT_CONFIG_NOSYSTEM=1", "LC_ALL=C"}
	out, err := cmd.Output()
	if err != nil {
		d.t.Fatalf("git %q: %v", args, err)
	}
	return strings.TrimSpace(string(out))
}

// names reports whether a note of an answer names a damaged path.
func names(r sandbox.Result, path string) bool {
	return slices.ContainsFunc(r.Notes, func(n string) bool {
		return strings.Contains(n, strconv.Quote(path)) && strings.Contains(n, "satchel doctor")
	})
}

// wantTree checks what head has, by its names alone.
func (d *damagedPool) wantTree(want ...string) {
	d.t.Helper()
	if got := strings.Fields(d.git("ls-tree", "-r", "--name-only", "main")); !slices.Equal(got, want) {
		d.t.Errorf("head has %q, want %q", got, want)
	}
}

var damagedFiles = map[string]string{"a.md": "a\n", "dir/bad.md": "once upon a time\n", "dir/good.md": "good\n"}

// TestASandboxStartsWithoutADamagedFile, says so in each answer, and takes what is
// absent for no deletion.
func TestASandboxStartsWithoutADamagedFile(t *testing.T) {
	t.Parallel()
	d := newDamaged(t, damagedFiles, "dir/bad.md")
	q := d.request("cat a.md dir/good.md; ls dir")
	q.ReadOnly = true
	r, err := d.pool.Exec(t.Context(), q)
	if err != nil || r.ExitCode != 0 || r.Stdout.Text != "a\ngood\ngood.md\n" || !names(r, "dir/bad.md") {
		t.Fatalf("%+v, %v", r, err)
	}
	r = d.run("echo more >> a.md; cat dir/good.md")
	if r.ExitCode != 0 || len(r.Commits) != 1 || len(r.Commits[0].Files) != 1 || !names(r, "dir/bad.md") {
		t.Fatalf("%+v", r)
	}
	d.wantTree("a.md", "dir/bad.md", "dir/good.md")
	// What is deleted with its directory was never seen.
	r = d.run("rm -r dir; mkdir dir; echo new > dir/new.md")
	if !names(r, "dir/bad.md") {
		t.Errorf("notes %q", r.Notes)
	}
	d.wantTree("a.md", "dir/bad.md", "dir/new.md")
	if len(r.Pending)+len(r.Conflicts) > 0 {
		t.Errorf("held %+v, conflicts %+v", r.Pending, r.Conflicts)
	}
}

// TestADamagedFileIsHealedFromASandbox by writing it again, whether its content is
// the same or not; then it is a file like any other.
func TestADamagedFileIsHealedFromASandbox(t *testing.T) {
	for name, text := range map[string]string{"the same content": damagedFiles["dir/bad.md"], "other content": "another\n"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d := newDamaged(t, damagedFiles, "dir/bad.md")
			r := d.run("printf '" + text + "' > dir/bad.md")
			if names(r, "dir/bad.md") || len(r.Pending)+len(r.Conflicts) > 0 {
				t.Errorf("%+v", r)
			}
			if _, got, err := d.store.Open(t.Context(), d.id, "", "dir/bad.md"); err != nil || string(got) != text {
				t.Errorf("%q, %v", got, err)
			}
			if err := d.pool.StopSpace(t.Context(), d.id); err != nil {
				t.Fatal(err)
			}
			r = d.run("cat dir/bad.md; git show HEAD:dir/bad.md; git status --porcelain; rm dir/bad.md")
			if r.Stdout.Text != text+text || names(r, "dir/bad.md") {
				t.Errorf("the next sandbox: %+v", r)
			}
			d.wantTree("a.md", "dir/good.md")
		})
	}
}

// TestASandboxStartsWithoutADamagedDirectory: what is written there is held, and
// all else is committed.
func TestASandboxStartsWithoutADamagedDirectory(t *testing.T) {
	t.Parallel()
	d := newDamaged(t, damagedFiles, "dir")
	for range 2 {
		r := d.run("date +%s%N > b.md; mkdir -p dir; echo x > dir/x.md")
		if !names(r, "dir") || len(r.Commits) != 1 || len(r.Commits[0].Files) != 1 {
			t.Errorf("%+v", r)
		}
		d.wantPending(r, "dir/x.md")
		if len(r.Pending) == 1 && fault.CodeOf(r.Pending[0].Err) != fault.Damaged {
			t.Errorf("held %+v", r.Pending)
		}
		if got := d.git("ls-tree", "--name-only", "main"); got != "a.md\nb.md\ndir" {
			t.Errorf("head has %q", got)
		}
		if err := d.pool.StopSpace(t.Context(), d.id); err != nil {
			t.Fatal(err)
		}
	}
}

// TestANewerFileThatIsDamagedStaysBehind: a sandbox that runs keeps what it has of
// it, brings in the rest, and deletes nothing.
func TestANewerFileThatIsDamagedStaysBehind(t *testing.T) {
	t.Parallel()
	d := newDamaged(t, map[string]string{"a.md": "a\n", "b.md": "b\n", "old.md": "old\n"}, "old.md")
	d.run("true")
	d.commitOutside(map[string]string{"a.md": "newer a\n", "b.md": "newer b\n"})
	damagetest.TurnByte(t, d.repo(), "main:a.md")
	r := d.run("cat a.md b.md; echo c > c.md")
	if r.Stdout.Text != "a\nnewer b\n" || !names(r, "a.md") || len(r.Commits) != 1 || len(r.Commits[0].Files) != 1 {
		t.Errorf("%+v", r)
	}
	d.wantTree("a.md", "b.md", "c.md", "old.md")
}
