//go:build unix

package gitstore

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"satchel/internal/space"
	"satchel/internal/testenv"
)

// gitIn runs git as a sandbox does, with the view as the git directory and a checkout as the
// work tree.
func gitIn(t testing.TB, seed *space.Checkout, args ...string) string {
	t.Helper()
	cmd := testenv.Git(t, seed.Dir, append([]string{"-c", "safe.directory=*"}, args...)...)
	cmd.Env = append(cmd.Env, "GIT_DIR="+seed.GitView, "GIT_WORK_TREE="+seed.Dir, "GIT_OPTIONAL_LOCKS=0")
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("git %s: %v\n%s", strings.Join(args, " "), err, out)
	}
	return strings.TrimRight(string(out), "\n")
}

func seed(t testing.TB, s *Store, id space.SpaceID) *space.Checkout {
	t.Helper()
	sd, err := s.Checkout(t.Context(), id)
	if err != nil {
		t.Fatal(err)
	}
	return sd
}

func wait(t testing.TB, s *Store, id space.SpaceID) {
	t.Helper()
	if err := s.WaitView(t.Context(), id); err != nil {
		t.Fatal(err)
	}
}

func TestACheckoutIsOpenToAllUnderAClosedDoor(t *testing.T) {
	old := syscall.Umask(0o077)
	defer syscall.Umask(old)
	s := newStore(t)
	id := newSpace(t, s, nil)
	commit(t, s, id, space.ChangeSet{Changes: []space.Change{
		{Path: "d/e/f.md", Content: []byte("f")}, {Path: "run.sh", Mode: space.Executable},
		{Path: "d/link", Mode: space.Symlink, Content: []byte("../run.sh")}}})
	sd := seed(t, s, id)
	defer sd.Release()
	for p, want := range map[string]fs.FileMode{
		"..": fs.ModeDir | 0o700, ".": fs.ModeDir | 0o777, "d": fs.ModeDir | 0o777, "d/e": fs.ModeDir | 0o777,
		"d/e/f.md": 0o666, "run.sh": 0o777,
	} {
		st, err := os.Lstat(filepath.Join(sd.Dir, p))
		if err != nil || st.Mode() != want {
			t.Errorf("%s: %v, want %v (%v)", p, st.Mode(), want, err)
		}
	}
	if l, err := os.Readlink(filepath.Join(sd.Dir, "d/link")); err != nil || l != "../run.sh" {
		t.Error(l, err)
	}
	if st, err := os.Stat(sd.Library); err != nil || !st.IsDir() {
		t.Error(err)
	}
	filepath.WalkDir(sd.GitView, func(p string, d fs.DirEntry, err error) error {
		st, _ := d.Info()
		if st.Mode().Perm()&0o044 != 0o044 || st.Mode().Perm()&0o022 != 0 {
			t.Errorf("%s has mode %v", p, st.Mode())
		}
		return err
	})
}

// TestGitWorksInside runs the git commands that people use in a sandbox, after the start and
// after a commit.
func TestGitWorksInside(t *testing.T) {
	s := newStore(t)
	id := newSpace(t, s, map[string]string{"a.md": "one\n", "d/b.md": "b\n"})
	sd := seed(t, s, id)
	defer sd.Release()
	if got := gitIn(t, sd, "status", "--porcelain"); got != "" {
		t.Errorf("status: %q", got)
	}
	c := commit(t, s, id, space.ChangeSet{Changes: []space.Change{
		{Path: "a.md", Content: []byte("two\n"), Base: at(t, s, id, "a.md")}, {Path: "new.md", Content: []byte("n\n")}}})
	// At once, before any background work has run:
	if got := gitIn(t, sd, "log", "-1", "--format=%H %an"); got != string(c.ID)+" Ada Lovelace" {
		t.Errorf("log: %q", got)
	}
	wait(t, s, id)
	// The checkout in use does not change. The sandbox's own layer has the change, which the
	// test writes here.
	if got := gitIn(t, sd, "status", "--porcelain"); got != " M a.md\n D new.md" {
		t.Errorf("status: %q", got)
	}
	over := filepath.Join(sd.Dir, "a.md")
	remove(t, over)
	overwrite(t, over, "two\n")
	overwrite(t, filepath.Join(sd.Dir, "new.md"), "n\n")
	for _, c := range []struct{ args, want string }{
		{"status --porcelain", ""},
		{"diff", ""},
		{"diff --stat HEAD~1", " a.md   | 2 +-\n new.md | 1 +\n 2 files changed, 2 insertions(+), 1 deletion(-)"},
		{"show --format=%s HEAD:a.md", "two"},
		{"blame -s --abbrev=1 new.md", string(c.ID[:2]) + " 1) n"},
		{"branch --show-current", "main"},
		{"remote -v", ""},
		{"rev-list --count HEAD", "2"},
	} {
		got := gitIn(t, sd, strings.Fields(c.args)...)
		if strings.HasPrefix(c.args, "blame") {
			got = got[:2] + got[strings.Index(got, " "):]
		}
		if got != c.want {
			t.Errorf("git %s: %q, want %q", c.args, got, c.want)
		}
	}
	gitIn(t, sd, "fsck", "--full", "--strict")
}

// TestCheckoutsFollowHead checks that a checkout in use never changes, an unused one moves to
// head, and old ones are removed.
func TestCheckoutsFollowHead(t *testing.T) {
	s := newStore(t)
	id := newSpace(t, s, map[string]string{"a": "1", "dir/x": "x", "file": "f", "link": "l"})
	first := seed(t, s, id)
	second := seed(t, s, id)
	if first.Dir != second.Dir {
		t.Error("two users of one head have two checkouts")
	}
	commit(t, s, id, space.ChangeSet{Changes: []space.Change{
		{Path: "a", Content: []byte("2"), Base: at(t, s, id, "a")},
		{Path: "dir/x", Op: space.Delete, Base: at(t, s, id, "dir/x")}, {Path: "dir", Content: []byte("now a file")},
		{Path: "file", Op: space.Delete, Base: at(t, s, id, "file")}, {Path: "file/y", Content: []byte("y")},
		{Path: "link", Mode: space.Symlink, Content: []byte("file"), Base: at(t, s, id, "link"), BaseMode: space.Regular},
	}})
	third := seed(t, s, id)
	if third.Dir == first.Dir || third.GitView != first.GitView {
		t.Error("a checkout in use was taken for another head")
	}
	check := func(sd *space.Checkout, want map[string]string) {
		t.Helper()
		got := map[string]string{}
		filepath.WalkDir(sd.Dir, func(p string, d fs.DirEntry, err error) error {
			if err != nil || d.IsDir() {
				return err
			}
			rel, _ := filepath.Rel(sd.Dir, p)
			if d.Type()&fs.ModeSymlink != 0 {
				l, _ := os.Readlink(p)
				got[rel] = "→" + l
				return nil
			}
			b, err := os.ReadFile(p)
			got[rel] = string(b)
			return err
		})
		if fmt.Sprint(got) != fmt.Sprint(want) {
			t.Errorf("got %v, want %v", got, want)
		}
	}
	check(first, map[string]string{"a": "1", "dir/x": "x", "file": "f", "link": "l"})
	// A BaseMode of Regular for a write to a link: the kind of the content changes with it.
	check(third, map[string]string{"a": "2", "dir": "now a file", "file/y": "y", "link": "→file"})
	if got := gitIn(t, third, "status", "--porcelain"); got != "" {
		t.Errorf("status: %q", got)
	}
	var ino syscall.Stat_t
	if err := syscall.Stat(filepath.Join(third.Dir, "a"), &ino); err != nil || ino.Nlink != 1 {
		t.Errorf("a file is shared between checkouts: %d links, %v", ino.Nlink, err)
	}
	for _, sd := range []*space.Checkout{first, second, third} {
		sd.Release()
		sd.Release() // harmless
	}
	for i := range 5 {
		commit(t, s, id, writes(map[string]string{fmt.Sprint("n", i): "n"}))
		sd := seed(t, s, id)
		if got := gitIn(t, sd, "status", "--porcelain"); got != "" {
			t.Errorf("status: %q", got)
		}
		sd.Release()
	}
	s.work.Wait()
	if left, _ := filepath.Glob(filepath.Join(s.o.Dir, cacheDir, string(id), "checkout-*")); len(left) != 1 {
		t.Errorf("checkouts left: %v", left)
	}
}

// TestAnIdleCheckoutIsWarm checks that an unused checkout moves to head by itself after a
// commit, so that the next start has nothing to write.
func TestAnIdleCheckoutIsWarm(t *testing.T) {
	s := newStore(t)
	id := newSpace(t, s, map[string]string{"a": "1"})
	if err := s.Warm(t.Context(), id); err != nil {
		t.Fatal(err)
	}
	commit(t, s, id, writes(map[string]string{"b": "2"}))
	s.work.Wait()
	got, _ := filepath.Glob(filepath.Join(s.o.Dir, cacheDir, string(id), "checkout-*", "tree", "b"))
	if len(got) != 1 {
		t.Error("the idle checkout is behind")
	}
}

// block replaces a file of a git view with a directory, so that nothing can write the file.
// heal restores the old file.
func block(t testing.TB, name string) (heal func()) {
	t.Helper()
	old, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	remove(t, name)
	if err := os.MkdirAll(filepath.Join(name, "in the way"), 0o755); err != nil {
		t.Fatal(err)
	}
	return func() {
		t.Helper()
		if err := os.RemoveAll(name); err != nil {
			t.Fatal(err)
		}
		overwrite(t, name, string(old))
	}
}

// TestAStartThatFailedUsesNothing starts a sandbox while the view's index cannot be written.
// The start must not count as a user of the checkout, so that later starts, a purge and a
// deletion are not affected.
func TestAStartThatFailedUsesNothing(t *testing.T) {
	s := newStore(t)
	id := newSpace(t, s, map[string]string{"a": "1"})
	sd := seed(t, s, id)
	sd.Release()
	s.work.Wait()
	heal := block(t, filepath.Join(sd.GitView, "index"))
	commit(t, s, id, writes(map[string]string{"k": secret}))
	s.work.Wait()
	for range 2 {
		if _, err := s.Checkout(t.Context(), id); err == nil {
			t.Fatal("a sandbox got a view whose index is not head's")
		}
	}
	s.work.Wait()
	if s.open[id].seeds.inUse() {
		t.Error("a checkout counts as used by a sandbox that never was")
	}
	heal()
	sd = seed(t, s, id)
	if got := gitIn(t, sd, "status", "--porcelain"); got != "" {
		t.Errorf("status: %q", got)
	}
	sd.Release()
	if _, err := s.Purge(t.Context(), id, "", leaveOut, space.Meta{Author: ada}); err != nil {
		t.Errorf("a purge: %v", err)
	}
	if err := s.Warm(t.Context(), id); err != nil {
		t.Errorf("a start after the purge: %v", err)
	}
	s.work.Wait()
	if err := s.Delete(testenv.Context(t), id); err != nil {
		t.Errorf("a deletion: %v", err)
	}
}

// TestAViewThatCouldNotBeMoved moves head while the view's ref cannot be written. Later, the
// view moves to head even without another commit.
func TestAViewThatCouldNotBeMoved(t *testing.T) {
	for _, c := range []struct {
		name string
		do   func(*Store, space.SpaceID) error
	}{
		{"a wait for the view", func(s *Store, id space.SpaceID) error { return s.WaitView(t.Context(), id) }},
		{"the next start", func(s *Store, id space.SpaceID) error {
			sd, err := s.Checkout(t.Context(), id)
			if err == nil {
				t.Cleanup(sd.Release)
			}
			return err
		}},
		{"what tends in the background", func(s *Store, id space.SpaceID) error {
			s.open[id].tend()
			s.work.Wait()
			return nil
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := newStore(t)
			id := newSpace(t, s, map[string]string{"a": "1"})
			sd := seed(t, s, id)
			defer sd.Release()
			heal := block(t, filepath.Join(sd.GitView, filepath.FromSlash(branch)))
			head := commit(t, s, id, writes(map[string]string{"b": "2"})).ID
			s.work.Wait()
			if err := s.WaitView(t.Context(), id); err == nil {
				t.Error("a wait ended though the view is behind")
			}
			heal()
			if got := gitIn(t, sd, "rev-parse", "HEAD"); got == string(head) {
				t.Fatal("the view was moved: this shows nothing")
			}
			if err := c.do(s, id); err != nil {
				t.Fatal(err)
			}
			if got := gitIn(t, sd, "rev-parse", "HEAD"); got != string(head) {
				t.Errorf("the view is at %s, want %s", got, head)
			}
			if got := gitIn(t, sd, "diff", "--cached", "--name-only"); got != "" {
				t.Errorf("the view's index is not its head's: %s", got)
			}
		})
	}
}

// git does not repack objects that a large pack contains. A pack is removed if the large pack
// contains all its objects, such as the pack of a commit made while the large pack was written.
func TestMaintainDropsWhatALargePackHas(t *testing.T) {
	s := newStore(t)
	id := newSpace(t, s, map[string]string{"a": "start"})
	for i := range 40 {
		commit(t, s, id, writes(map[string]string{fmt.Sprint("f", i): fmt.Sprint(i)}))
	}
	last := commit(t, s, id, writes(map[string]string{"last": "x"}))
	maintain := func() {
		t.Helper()
		if err := s.Maintain(t.Context(), id); err != nil {
			t.Fatal(err)
		}
	}
	dir := filepath.Join(s.open[id].dir, "objects", "pack")
	again := filepath.Join(s.open[id].dir, "again") // the same file system
	if err := os.Mkdir(again, 0o700); err != nil {
		t.Fatal(err)
	}
	few, err := filepath.Glob(filepath.Join(dir, "pack-[0-3]*"))
	if err != nil || len(few) == 0 {
		t.Fatal(few, err)
	}
	for _, f := range few {
		if err := os.Link(f, filepath.Join(again, filepath.Base(f))); err != nil {
			t.Fatal(err)
		}
	}
	maintain()
	for _, f := range few {
		if err := os.Link(filepath.Join(again, filepath.Base(f)), f); err != nil {
			t.Fatal(err)
		}
	}
	maintain()
	if st, err := s.Stats(t.Context(), id); err != nil || st.Packs > 2 {
		t.Errorf("%+v %v", st, err)
	}
	s.cache.Drop(s.open[id].db)
	for i := range 40 {
		if _, data, err := s.Open(t.Context(), id, last.ID, space.Path(fmt.Sprint("f", i))); err != nil || string(data) != fmt.Sprint(i) {
			t.Errorf("%d: %q %v", i, data, err)
		}
	}
	fsck(t, s, id)
}

func TestMaintainKeepsEverythingInUse(t *testing.T) {
	s := newStore(t)
	id := newSpace(t, s, map[string]string{"a": "start"})
	sd := seed(t, s, id)
	defer sd.Release()
	var heads []space.CommitID
	for i := range 40 {
		c := commit(t, s, id, writes(map[string]string{fmt.Sprintf("d%d/f", i%7): "", fmt.Sprint("f", i): strings.Repeat("line\n", i*50)}))
		heads = append(heads, c.ID)
	}
	done := make(chan error, 1)
	go func() { done <- s.Maintain(t.Context(), id) }()
	for i := range 20 { // commits and reads continue
		commit(t, s, id, writes(map[string]string{fmt.Sprint("during", i): "x"}))
		if _, _, err := s.Open(t.Context(), id, heads[i], space.Path(fmt.Sprint("f", i))); err != nil {
			t.Error(err)
		}
	}
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	if err := s.Maintain(t.Context(), id); err != nil {
		t.Fatal(err)
	}
	st, err := s.Stats(t.Context(), id)
	if err != nil || st.Packs > 4 {
		t.Errorf("%+v %v", st, err)
	}
	s.cache.Drop(s.open[id].db)
	for i, h := range heads {
		f, data, err := s.Open(t.Context(), id, h, space.Path(fmt.Sprint("f", i)))
		if err != nil || len(data) != i*250 || f.Size != int64(i*250) {
			t.Errorf("%d: %+v %v", i, f, err)
		}
		if f, err := s.Lookup(t.Context(), id, h, space.Path(fmt.Sprint("f", i))); err != nil || f.Size != int64(i*250) {
			t.Errorf("%d: %+v %v", i, f, err)
		}
	}
	wait(t, s, id)
	if got := gitIn(t, sd, "rev-list", "--count", "HEAD"); got != "61" {
		t.Errorf("%s commits inside", got)
	}
	gitIn(t, sd, "fsck", "--full", "--strict")
	fsck(t, s, id)
}
