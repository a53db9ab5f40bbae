package gitstore

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"satchel/internal/fault"
	"satchel/internal/space"
)

// TestResetToRemote checks that a person can make the remote's rewritten history the history of
// the space, and can restore the old head.
func TestResetToRemote(t *testing.T) {
	o := newOrigin(t)
	base := o.commit("", "main", "echo 1 > a.md")
	s := newStore(t, withTransport(t))
	id := newSpace(t, s, nil)
	receive(t, s, id, o, "main")
	mine := commit(t, s, id, writes(map[string]string{"mine.md": "m"}))
	check := func(tip space.CommitID, files string) {
		t.Helper()
		f, err := s.Fetch(t.Context(), id, o.endpoint(), "main", nil)
		if err != nil {
			t.Fatal(err)
		}
		c, err := s.ResetToRemote(t.Context(), id, f.Tip, space.Meta{Author: ada})
		if err != nil || c.ID != tip || !c.Changed || len(c.Files) == 0 {
			t.Fatalf("%+v %v", c, err)
		}
		if got := listing(t, s.repoDir(id), "main"); got != files {
			t.Error(got)
		}
	}
	// Go back to a commit of head: a commit in the log is now newer than head.
	check(base, "a.md = 1")
	if got := git(t, s.repoDir(id), "rev-parse", "refs/satchel/kept/"+string(mine.ID)); got != string(mine.ID) {
		t.Error(got)
	}
	check(o.commit(string(base), "main", "echo 2 > a.md"), "a.md = 2")
	s.Close()
	s2 := newStore(t, withTransport(t), func(op *Options) { op.Dir = s.o.Dir })
	if got := listing(t, s2.repoDir(id), "main"); got != "a.md = 2" {
		t.Error(got)
	}
	if err := s2.Maintain(t.Context(), id); err != nil {
		t.Fatal(err)
	}
	if _, err := s2.Restore(t.Context(), id, "", mine.ID, space.Meta{Author: ada}); err != nil {
		t.Fatal(err)
	}
	if got := listing(t, s2.repoDir(id), "main"); got != "a.md = 1\nmine.md = m" {
		t.Error(got)
	}
	fsck(t, s2, id)
}

// TestARefBehindAReset covers a process that died after the log named the remote's commit and
// before the branch's file did, and a power loss of the file's change.
func TestARefBehindAReset(t *testing.T) {
	o := newOrigin(t)
	base := o.commit("", "main", "echo 1 > a.md")
	s := newStore(t, withTransport(t))
	id := newSpace(t, s, nil)
	receive(t, s, id, o, "main")
	mine := commit(t, s, id, writes(map[string]string{"mine.md": "m"}))
	if _, err := s.ResetToRemote(t.Context(), id, base, space.Meta{Author: ada}); err != nil {
		t.Fatal(err)
	}
	s.Close()
	overwrite(t, filepath.Join(s.repoDir(id), "refs/heads/main"), string(mine.ID)+"\n")
	s = newStore(t, func(op *Options) { op.Dir = s.o.Dir })
	if h, err := s.Head(t.Context(), id); err != nil || h != base {
		t.Errorf("%s %v", h, err)
	}
}

// TestWhatIsKnownOfRemotes covers the tracking refs.
func TestWhatIsKnownOfRemotes(t *testing.T) {
	o := newOrigin(t)
	tip := o.commit("", "main", "echo 1 > a.md")
	s := newStore(t, withTransport(t))
	id := newSpace(t, s, nil)
	if c, ok, err := s.Tracked(t.Context(), id, "main"); c != "" || ok || err != nil {
		t.Errorf("%s %v %v", c, ok, err)
	}
	if n, newest, err := s.Unpushed(t.Context(), id, "main", 10); n != 1 || len(newest) != 1 || err != nil {
		t.Errorf("%d %v %v", n, newest, err)
	}
	receive(t, s, id, o, "main")
	for i := range 5 {
		commit(t, s, id, writes(map[string]string{fmt.Sprint(i): "x"}))
	}
	if n, newest, err := s.Unpushed(t.Context(), id, "main", 2); n != 5 || len(newest) != 2 || err != nil || newest[0].Message != "Add 4" || newest[1].Message != "Add 3" {
		t.Errorf("%d %v %v", n, newest, err)
	}
	for _, bad := range []string{"", "-x", "a..b", "../../../heads/main", "a/../b", "/a", "a/", ".a", "a.lock", "a\nb", "a b", "@{u}"} {
		if _, _, err := s.Tracked(t.Context(), id, bad); fault.CodeOf(err) != fault.Invalid {
			t.Errorf("%q: %v", bad, err)
		}
		if _, err := s.Fetch(t.Context(), id, o.endpoint(), bad, nil); fault.CodeOf(err) != fault.Invalid {
			t.Errorf("%q: %v", bad, err)
		}
		if _, err := s.Push(t.Context(), id, o.endpoint(), bad, nil); fault.CodeOf(err) != fault.Invalid {
			t.Errorf("%q: %v", bad, err)
		}
	}
	// A branch whose name is a directory of another branch replaces it.
	for _, b := range []string{"topic", "topic/one", "topic/one/two", "topic"} {
		git(t, o.dir, "for-each-ref", "--format=delete %(refname)", "refs/heads/topic")
		for old := range strings.FieldsSeq(git(t, o.dir, "for-each-ref", "--format=%(refname)", "refs/heads/topic")) {
			git(t, o.dir, "update-ref", "-d", old)
		}
		git(t, o.dir, "update-ref", "refs/heads/"+b, string(tip))
		if _, err := s.Fetch(t.Context(), id, o.endpoint(), b, nil); err != nil {
			t.Fatal(err)
		}
		if c, ok, err := s.Tracked(t.Context(), id, b); c != tip || !ok || err != nil {
			t.Errorf("%s: %s %v %v", b, c, ok, err)
		}
	}
	fsck(t, s, id)
	git(t, s.repoDir(id), "pack-refs", "--all")
	if c, ok, err := s.Tracked(t.Context(), id, "main"); c != tip || !ok || err != nil {
		t.Errorf("packed by an operator: %s %v %v", c, ok, err)
	}
	if _, err := s.Push(t.Context(), id, o.endpoint(), "main", nil); err != nil {
		t.Fatal(err)
	}
	// The power failed while a ref was written.
	s.Close()
	overwrite(t, filepath.Join(s.repoDir(id), "refs/remotes/origin/main"), "")
	overwrite(t, filepath.Join(s.repoDir(id), "refs/.tmp-1"), "")
	s = newStore(t, withTransport(t), func(op *Options) { op.Dir = s.o.Dir })
	if _, _, err := s.Tracked(t.Context(), id, "main"); err != nil {
		t.Error(err)
	}
	fsck(t, s, id)
	receive(t, s, id, o, "main")
	if err := s.ForgetRemote(t.Context(), id); err != nil {
		t.Fatal(err)
	}
	if got := git(t, s.repoDir(id), "for-each-ref", "refs/remotes"); got != "" {
		t.Error(got)
	}
	if _, ok, err := s.Tracked(t.Context(), id, "main"); ok || err != nil {
		t.Errorf("%v %v", ok, err)
	}
	if err := s.ForgetRemote(t.Context(), id); err != nil {
		t.Errorf("again: %v", err)
	}
}
