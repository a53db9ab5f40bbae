package sandboxtest_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"satchel/gitstore"
	"satchel/internal/fault"
	"satchel/internal/seal"
	"satchel/internal/space"
	"satchel/sandbox"
	"satchel/sandbox/pending"
	"satchel/sandbox/sandboxtest"
)

func openPending(t testing.TB) *pending.Store {
	t.Helper()
	dir := t.TempDir()
	key, err := seal.Load(filepath.Join(dir, "key"))
	if err != nil {
		t.Fatal(err)
	}
	s, err := pending.Open(pending.Options{Dir: filepath.Join(dir, "held"), Seal: key, Logger: sandboxtest.Logger(t)})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// screenedPool is a pool over real sandboxes and a real store that takes no
// file with the word "secret" in it, until allowed.
type screenedPool struct {
	t       testing.TB
	pool    *sandbox.Pool
	store   *gitstore.Store
	pending *pending.Store
	id      space.SpaceID
	allowed bool
}

func newScreened(t testing.TB, change func(*sandbox.Options)) *screenedPool {
	t.Helper()
	return newScreenedStore(t, nil, change)
}

func newScreenedStore(t testing.TB, changeStore func(*gitstore.Options), change func(*sandbox.Options)) *screenedPool {
	t.Helper()
	s := &screenedPool{t: t, pending: openPending(t)}
	o := sandbox.Options{Runtime: newGVisor(t), Pending: s.pending, Logger: sandboxtest.Logger(t), ViewTime: time.Minute}
	so := gitstore.Options{
		Screen: func(_ context.Context, _ space.SpaceID, p space.Path, content []byte, _ func() ([]byte, error)) error {
			if !s.allowed && bytes.Contains(content, []byte("secret")) {
				return fault.New(fault.Forbidden, "Line 1 of %s holds a secret.", p)
			}
			return nil
		},
	}
	if changeStore != nil {
		changeStore(&so)
	}
	s.store, s.id = openStore(t, so, map[string]string{"readme.md": "hello\n", "docs/a.md": "a\n"})
	o.Checkouts, o.Committer = s.store, s.store
	if change != nil {
		change(&o)
	}
	s.pool = sandboxtest.NewPool(t, o)
	return s
}

func (s *screenedPool) request(command string) sandbox.Request {
	return sandbox.Request{User: "u_ada", Space: s.id, Command: command, Author: space.Person{Name: "Ada", Email: "ada@example.org"}}
}

func (s *screenedPool) run(command string) sandbox.Result {
	s.t.Helper()
	r, err := s.pool.Exec(s.t.Context(), s.request(command))
	if err != nil || r.NotSaved != nil {
		s.t.Fatalf("%s: %v, not saved: %v", command, err, r.NotSaved)
	}
	return r
}

func (s *screenedPool) wantPending(r sandbox.Result, want ...string) {
	s.t.Helper()
	var got []string
	for _, h := range r.Pending {
		got = append(got, h.Path)
	}
	if !slices.Equal(got, want) {
		s.t.Errorf("held are %q, want %q", got, want)
	}
}

// commitOutside commits as a merge of a remote does: without the sandbox.
func (s *screenedPool) commitOutside(files map[string]string) space.Commit {
	s.t.Helper()
	head, err := s.store.Head(s.t.Context(), s.id)
	if err != nil {
		s.t.Fatal(err)
	}
	var cs space.ChangeSet
	for p, content := range files {
		b, m, _, err := s.store.Blob(s.t.Context(), s.id, head, space.Path(p))
		if err != nil {
			s.t.Fatal(err)
		}
		ch := space.Change{Path: p, Content: []byte(content), Base: b, BaseMode: m}
		if content == "" {
			ch.Op = space.Delete
		}
		cs.Changes = append(cs.Changes, ch)
	}
	c, err := s.store.Commit(s.t.Context(), s.id, cs, space.Meta{Message: "Elsewhere"})
	if err != nil {
		s.t.Fatal(err)
	}
	return c
}

func TestHeldOverGVisorAndGit(t *testing.T) {
	t.Parallel()
	s := newScreened(t, nil)
	r := s.run("echo my secret > readme.md; echo fine > fine.md")
	s.wantPending(r, "readme.md")
	if len(r.Commits) != 1 || !strings.Contains(r.Pending[0].Why, "Line 1") {
		t.Errorf("%+v", r)
	}
	// A change of hundreds of files, and of that one, while the sandbox lives.
	files := map[string]string{"readme.md": "theirs\n", "docs/a.md": ""}
	for i := range 400 {
		files[fmt.Sprintf("pages/%d/%d.md", i%9, i)] = "page\n"
	}
	s.commitOutside(files)
	r = s.run("cat readme.md; find pages -type f | wc -l; ls docs 2>&1; git log -1 --format=%s; git status --porcelain")
	if want := "my secret\n400\nls: cannot access 'docs': No such file or directory\nElsewhere\n M readme.md\n"; r.Stdout.Text != want || r.Generation != 1 {
		t.Errorf("%q, want %q", r.Stdout.Text, want)
	}
	s.wantPending(r, "readme.md")
	// Its sandbox gone, theirs has the path.
	if err := s.pool.StopSpace(t.Context(), s.id); err != nil {
		t.Fatal(err)
	}
	head, err := s.store.Head(t.Context(), s.id)
	if err != nil {
		t.Fatal(err)
	}
	kept := "readme" + space.ConflictMark + head.Short() + ".md"
	r = s.run("cat readme.md " + kept)
	if r.Stdout.Text != "theirs\nmy secret\n" || len(r.Commits) != 0 {
		t.Errorf("%q", r.Stdout.Text)
	}
	s.wantPending(r, kept)
	// Once the person allows it, the next command commits it.
	s.allowed = true
	r = s.run("true")
	s.wantPending(r)
	if len(r.Commits) != 1 || len(r.Commits[0].Files) != 1 || string(r.Commits[0].Files[0].Path) != kept {
		t.Errorf("%+v", r.Commits)
	}
	if items, err := s.pending.List(t.Context(), "u_ada", s.id); err != nil || len(items) != 0 {
		t.Errorf("%v, %v", items, err)
	}
}

// TestHeldOutlivesOutOfMemoryOverGVisor is the attack of a command that takes
// all memory, on a sandbox with held files: they are in the next one.
func TestHeldOutlivesOutOfMemoryOverGVisor(t *testing.T) {
	t.Parallel()
	s := newScreened(t, func(o *sandbox.Options) {
		o.Limits = sandbox.DefaultLimits()
		o.Limits.Memory = 160 << 20
		o.MaxFile = 1 << 20
	})
	r := s.run("echo my secret > note; head -c 6M /dev/zero > large")
	s.wantPending(r, "large", "note")
	if _, err := s.pool.Exec(t.Context(), s.request("echo lost > lost; "+takeMemory)); !errors.Is(err, space.ErrOutOfMemory) ||
		!strings.Contains(fault.PublicOf(err), `Not committed, but kept, as earlier answers said: "large", "note".`) {
		t.Errorf("%v", err)
	}
	r = s.run("cat note; wc -c < large; ls")
	if want := "my secret\n6291456\ndocs\nlarge\nnote\nreadme.md\n"; r.Stdout.Text != want || !r.Restarted {
		t.Errorf("%q, want %q", r.Stdout.Text, want)
	}
	s.wantPending(r, "large", "note")
}

// TestHeldMeetsAFullDiskOverGVisor: what does not fit into the next sandbox
// stays on the server and is named.
func TestHeldMeetsAFullDiskOverGVisor(t *testing.T) {
	t.Parallel()
	s := newScreened(t, func(o *sandbox.Options) {
		o.Limits = sandbox.DefaultLimits()
		o.Limits.Disk = 2 << 20
		o.MaxFile = 1 << 10
	})
	if unkept, err := s.pending.Save(t.Context(), "u_ada", s.id, []pending.File{
		{Path: "1", Content: bytes.Repeat([]byte("x"), 1<<20), Why: "No."}, {Path: "2", Content: bytes.Repeat([]byte("x"), 4<<20), Why: "No."},
	}, nil); err != nil || len(unkept) != 0 {
		t.Fatal(unkept, err)
	}
	for range 2 {
		r := s.run("ls; wc -c < 1")
		if want := "1\ndocs\nreadme.md\n1048576\n"; r.Stdout.Text != want {
			t.Errorf("%q, want %q", r.Stdout.Text, want)
		}
		s.wantPending(r, "1", "2")
		if len(r.Pending) == 2 && !strings.HasPrefix(r.Pending[1].Why, "It is kept on the server and could not be put back into the sandbox") {
			t.Errorf("%+v", r.Pending)
		}
		if err := s.pool.StopSpace(t.Context(), s.id); err != nil {
			t.Fatal(err)
		}
	}
}

// TestWhatCannotBeReadIsNamedOverGVisor: the agent reads as the commands' user
// does, so a file that took its own read permission is named and not kept.
func TestWhatCannotBeReadIsNamedOverGVisor(t *testing.T) {
	t.Parallel()
	s := newScreened(t, nil)
	r := s.run("echo x > closed; chmod 000 closed; echo fine > fine.md")
	s.wantPending(r, "closed")
	if len(r.Commits) != 1 || len(r.Pending) != 1 || !strings.HasPrefix(r.Pending[0].Why, "It will be lost when the sandbox stops. ") {
		t.Errorf("%+v", r)
	}
	r = s.run("chmod 644 closed")
	s.wantPending(r)
	if len(r.Commits) != 1 {
		t.Errorf("%+v", r)
	}
}

// TestAFileThatIsTooLargeBlocksNoCommit: whichever limit it is over, it is named
// in every answer, and what else commands change is committed.
func TestAFileThatIsTooLargeBlocksNoCommit(t *testing.T) {
	limits := func(o *sandbox.Options) { o.MaxFile, o.MaxChange, o.MaxPendingFile = 1<<20, 2<<20, 1536<<10 }
	for _, c := range []struct {
		name, size string
		store      func(*gitstore.Options)
		pool       func(*sandbox.Options)
		lost       bool // it ends with its sandbox
	}{
		{"larger than a file may be", "1100K", nil, limits, false},
		{"larger than what is held", "1700K", nil, limits, true},
		{"larger than a change may be", "3M", nil, limits, true},
		{"larger than a change, and within what would be held", "3M", nil,
			func(o *sandbox.Options) { o.MaxFile, o.MaxChange, o.MaxPendingFile = 1<<20, 2<<20, 8<<20 }, true},
		{"more than the space has room for", "3M", func(o *gitstore.Options) { o.Limits.Space = 2 << 20 }, nil, false},
		{"more than the history has room for", "3M", func(o *gitstore.Options) { o.Limits.Repository = 2 << 20 }, nil, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			s := newScreenedStore(t, c.store, c.pool)
			r := s.run("head -c " + c.size + " /dev/urandom > large; sha1sum < large; echo 1 > a; echo 1 > z")
			sum := r.Stdout.Text
			check := func(r sandbox.Result, lost bool, want ...string) {
				t.Helper()
				s.wantPending(r, "large")
				if len(r.Pending) == 1 && (r.Pending[0].Lost != lost || fault.CodeOf(r.Pending[0].Err) == fault.Internal) {
					t.Errorf("held %+v", r.Pending[0])
				}
				var got []string
				for _, c := range r.Commits {
					for _, f := range c.Files {
						got = append(got, string(f.Path))
					}
				}
				if !slices.Equal(got, want) {
					t.Errorf("committed %q, want %q", got, want)
				}
			}
			check(r, c.lost, "a", "z")
			check(s.run("echo 2 > a; mkdir d; echo 2 > d/e; rm z"), c.lost, "a", "d/e", "z")
			if err := s.pool.StopSpace(t.Context(), s.id); err != nil {
				t.Fatal(err)
			}
			r = s.run("sha1sum < large; echo 3 > a")
			if c.lost {
				s.wantPending(r)
				return
			}
			check(r, false, "a")
			if r.Stdout.Text != sum {
				t.Errorf("the next sandbox has %q of it, want %q", r.Stdout.Text, sum)
			}
		})
	}
}
