package attacks_test

import (
	"context"
	"errors"
	"io/fs"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"satchel/gitstore"
	"satchel/internal/space"
	"satchel/internal/testenv"
	"satchel/sandbox"
	"satchel/sandbox/protocol"
	"satchel/sandbox/sandboxtest"
)

func noContext() context.Context { return context.Background() }

// world is one server's sandboxes and spaces: everything that an attacker could
// want to reach lies in dir, the server's data directory.
type world struct {
	testing.TB
	dir     string // the data directory
	library string // what every sandbox has as /library
	pool    *sandbox.Pool
	store   *gitstore.Store
	runtime *sandboxtest.Recorder
}

// newWorld makes a world that is checked from outside when the test ends.
func newWorld(t testing.TB, change ...func(*sandbox.Options)) *world {
	t.Helper()
	return newWorldOver(t, &strong, change...)
}

func newWorldOver(t testing.TB, over *shared, change ...func(*sandbox.Options)) *world {
	t.Helper()
	return newWorldWith(t, over, nil, change...)
}

func newWorldWith(t testing.TB, over *shared, changeStore func(*gitstore.Options), change ...func(*sandbox.Options)) *world {
	t.Helper()
	testenv.NeedProgram(t, "git")
	w := &world{TB: t, dir: filepath.Join(t.TempDir(), "data"), runtime: &sandboxtest.Recorder{Runtime: over.get(t)}}
	w.library = filepath.Join(t.TempDir(), "library")
	if err := os.Mkdir(w.library, 0o755); err != nil {
		t.Fatal(err)
	}
	logger := slog.New(slog.NewTextHandler(t.Output(), nil))
	g := gitstore.Options{Dir: w.dir, LibraryDir: w.library, CheckoutOwner: protocol.CommandUID, Logger: logger}
	if changeStore != nil {
		changeStore(&g)
	}
	var err error
	w.store, err = gitstore.Open(g)
	if err != nil {
		t.Fatal(err)
	}
	o := sandbox.Options{Runtime: w.runtime, Checkouts: w.store, Committer: w.store, Limits: sandbox.DefaultLimits(), Grace: time.Second, Logger: logger, ViewTime: time.Hour}
	for _, c := range change {
		c(&o)
	}
	if w.pool, err = sandbox.New(o); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(w.close)
	return w
}

// close ends the world and looks for harm that no attack may leave.
func (w *world) close() {
	w.Helper()
	if err := w.pool.Close(testenv.Context(w)); err != nil {
		w.Error("closing the pool:", err)
	}
	if n := w.runtime.Running(); n != 0 {
		w.Errorf("%d sandboxes are left", n)
	}
	w.checkRepositories()
	w.checkFiles()
	if err := w.store.Close(); err != nil {
		w.Error("closing the store:", err)
	}
}

// checkRepositories has git itself check every repository, as strictly as a
// server does that takes a push.
func (w *world) checkRepositories() {
	w.Helper()
	repos, err := filepath.Glob(filepath.Join(w.dir, "*.git"))
	if err != nil {
		w.Fatal(err)
	}
	for _, r := range repos {
		if out, err := gitIn(r, "fsck", "--full", "--strict", "--no-dangling"); err != nil || strings.Contains(out, "error") || strings.Contains(out, "warning") {
			w.Errorf("git fsck of a space: %v\n%s", err, out)
		}
	}
}

// checkFiles looks through the data directory for what a sandbox must never
// bring about on the host.
func (w *world) checkFiles() {
	w.Helper()
	for _, bad := range harmfulFiles(w, w.dir) {
		w.Errorf("on the host there is %s", bad)
	}
	if fi, err := os.Stat(w.dir); err != nil || fi.Mode().Perm() != 0o700 {
		w.Errorf("the data directory is open to others: %v %v", fi.Mode(), err)
	}
}

// harmfulFiles lists the files under dir that rights come with or that are
// neither files, directories nor links that stay inside.
func harmfulFiles(t testing.TB, dir string) []string {
	t.Helper()
	var bad []string
	err := filepath.WalkDir(dir, func(p string, d fs.DirEntry, err error) error {
		if errors.Is(err, fs.ErrNotExist) {
			return nil // the store tidies in the background
		}
		if err != nil {
			return err
		}
		fi, err := d.Info()
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		if err != nil {
			return err
		}
		m := fi.Mode()
		switch {
		case m&(fs.ModeSetuid|fs.ModeSetgid|fs.ModeSticky) != 0:
			bad = append(bad, p+" with mode "+m.String())
		case m&(fs.ModeDevice|fs.ModeNamedPipe|fs.ModeSocket|fs.ModeIrregular) != 0:
			bad = append(bad, p+", "+m.String())
		case m&fs.ModeSymlink != 0:
			target, err := os.Readlink(p)
			if err == nil && (filepath.IsAbs(target) || !strings.HasPrefix(filepath.Join(filepath.Dir(p), target), dir+"/")) {
				bad = append(bad, p+", a link to "+target)
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return bad
}

// space makes a space with files.
func (w *world) space(files map[string]string) space.SpaceID {
	w.Helper()
	id := space.NewSpaceID()
	var cs space.ChangeSet
	for p, c := range files {
		cs.Changes = append(cs.Changes, space.Change{Path: p, Content: []byte(c)})
	}
	if _, err := w.store.Create(noContext(), id, cs, space.Meta{Author: mallory, Message: "Start"}); err != nil {
		w.Fatal(err)
	}
	return id
}

var mallory = space.Person{Name: "Mallory", Email: "mallory@example.org"}

func (w *world) request(user space.UserID, id space.SpaceID, command string) sandbox.Request {
	return sandbox.Request{User: user, Space: id, Command: command, Comment: "Attack", Author: mallory, Tool: "bash", Client: "test"}
}

// tenant is one user in one space.
type tenant struct {
	*world
	user space.UserID
	id   space.SpaceID
}

// tenant makes a user with a space.
func (w *world) tenant(files map[string]string) *tenant {
	w.Helper()
	return &tenant{world: w, user: space.NewUserID(), id: w.space(files)}
}

// sh runs a command that must give an answer.
func (a *tenant) sh(command string) sandbox.Result {
	a.Helper()
	r, err := a.try(command)
	if err != nil {
		a.Fatalf("%s: %v", short(command), err)
	}
	return r
}

func (a *tenant) try(command string) (sandbox.Result, error) {
	a.Helper()
	return a.exec(a.request(a.user, a.id, command))
}

func (a *tenant) exec(q sandbox.Request) (sandbox.Result, error) {
	return a.pool.Exec(testenv.Context(a), q)
}

// look is sh for a command that looks at what an attack left, which has time
// where the world's limit is short.
func (a *tenant) look(command string) sandbox.Result {
	a.Helper()
	q := a.request(a.user, a.id, command)
	q.WallTime = time.Hour
	r, err := a.exec(q)
	if err != nil {
		a.Fatalf("%s: %v", short(command), err)
	}
	return r
}

// readonly runs a command as a caller that may only read.
func (a *tenant) readonly(command string) sandbox.Result {
	a.Helper()
	q := a.request(a.user, a.id, command)
	q.ReadOnly = true
	r, err := a.pool.Exec(noContext(), q)
	if err != nil {
		a.Fatalf("%s: %v", short(command), err)
	}
	return r
}

// out is the output of a command that must end well.
func (a *tenant) out(command string) string {
	a.Helper()
	r := a.look(command)
	if r.ExitCode != 0 || r.End != protocol.Exited {
		a.Fatalf("%s: ended %d with %d %s\n%s%s", short(command), r.End, r.ExitCode, r.Signal, r.Stdout.Text, r.Stderr.Text)
	}
	return r.Stdout.Text
}

// alive checks that the next command works and is committed.
func (a *tenant) alive() {
	a.Helper()
	r := a.look("date +%s%N > alive && cat alive")
	if r.ExitCode != 0 || r.NotSaved != nil || len(r.Commits) == 0 {
		a.Fatalf("the next command: %+v", r)
	}
	if got := a.git("show", "HEAD:alive"); got != r.Stdout.Text {
		a.Errorf("the next command wrote %q, and the commit has %q", r.Stdout.Text, got)
	}
}

// git asks the bare repository, past the store.
func (a *tenant) git(args ...string) string {
	a.Helper()
	out, err := gitIn(a.repository(), args...)
	if err != nil {
		a.Fatalf("git %q: %v\n%s", args, err, out)
	}
	return out
}

func (a *tenant) repository() string { return filepath.Join(a.dir, string(a.id)+".git") }

// gitIn runs git on a bare repository, with nothing of the machine's
// configuration.
func gitIn(repo string, args ...string) (string, error) {
	cmd := exec.Command("git", append([]string{"--git-dir", repo}, args...)...)
	cmd.Env = testenv.GitEnv()
	out, err := cmd.CombinedOutput()
	return string(out), err
}

// files lists head's paths, as git has them.
func (a *tenant) files() []string {
	a.Helper()
	out := strings.TrimSuffix(a.git("ls-tree", "-r", "-z", "--name-only", "HEAD"), "\x00")
	if out == "" {
		return nil
	}
	return strings.Split(out, "\x00")
}

// refused lists what an answer refused.
func refused(r sandbox.Result) []string {
	var names []string
	for _, f := range r.Refused {
		names = append(names, f.Path)
	}
	return names
}

func short(s string) string {
	if len(s) > 200 {
		return s[:200] + "…"
	}
	return s
}

// edit commits files as the web does, past any sandbox.
func edit(t testing.TB, a *tenant, files map[string]string) {
	t.Helper()
	head, err := a.store.Head(noContext(), a.id)
	if err != nil {
		t.Fatal(err)
	}
	var cs space.ChangeSet
	for p, c := range files {
		base, mode, _, err := a.store.Blob(noContext(), a.id, head, space.Path(p))
		if err != nil {
			t.Fatal(err)
		}
		cs.Changes = append(cs.Changes, space.Change{Path: p, Content: []byte(c), Base: base, BaseMode: mode})
	}
	if _, err := a.store.Commit(noContext(), a.id, cs, space.Meta{Author: mallory}); err != nil {
		t.Fatal(err)
	}
}

// hostSh runs a harmless script on the host in an empty directory, as a server
// without sandboxes would.
func hostSh(t testing.TB, script string, env ...string) string {
	t.Helper()
	cmd := exec.Command("bash", "-c", script)
	cmd.Dir = t.TempDir()
	cmd.Env = append(testenv.GitEnv("HOME="+cmd.Dir), env...)
	out, err := cmd.CombinedOutput()
	if err != nil {
		out = append(out, "["+err.Error()+"]"...)
	}
	return string(out)
}
