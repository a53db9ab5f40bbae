package gitstore

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"satchel/gitstore/transport"
	"satchel/internal/fault"
	"satchel/internal/space"
)

// TestANewSpaceTakesItsRemotesHistory integrates a remote with a history into a space that only
// has its first commit.
func TestANewSpaceTakesItsRemotesHistory(t *testing.T) {
	o := newOrigin(t)
	first := o.commit("", "main", "echo 1 > a.md; mkdir resources; echo theirs > resources/instructions.md")
	tip := o.commit("", "main", "echo 2 > a.md")
	rec := &recorder{}
	s := newStore(t, withTransport(t), func(op *Options) { op.Events = rec })
	id := newSpace(t, s, map[string]string{"resources/instructions.md": "ours", "start.md": "s"})
	own, err := s.Head(t.Context(), id)
	if err != nil {
		t.Fatal(err)
	}
	lines := 0
	f, err := s.Fetch(t.Context(), id, o.endpoint(), "main", func(string) { lines++ })
	if err != nil || f.Tip != tip || f.Bytes == 0 {
		t.Fatalf("%+v %v", f, err)
	}
	if h, _ := s.Head(t.Context(), id); h != own || len(rec.ids) != 1 {
		t.Error("a fetch moved head, or told so")
	}
	got := integrate(t, s, id, tip)
	if got.How != Adopted || !got.Commit.Changed || got.Commit.Parent != tip || got.Head != got.Commit.ID {
		t.Fatalf("%+v", got)
	}
	if files := listing(t, s.repoDir(id), "main"); files != "a.md = 2\nresources/instructions.md = theirs\nstart.md = s" {
		t.Error(files)
	}
	if ds, err := s.Diff(t.Context(), id, own, got.Head); err != nil || len(ds) != len(got.Commit.Files) || len(ds) != 2 {
		t.Errorf("%v %v", ds, err)
	}
	if log, err := s.Log(t.Context(), id, space.LogQuery{}); err != nil || len(log) != 3 || log[2].ID != first {
		t.Errorf("%v %v", log, err)
	}
	if len(rec.ids) != 2 || rec.ids[1] != got.Head {
		t.Errorf("events %v", rec.ids)
	}
	if n, newest, err := s.Unpushed(t.Context(), id, "main", 10); err != nil || n != 1 || newest[0].ID != got.Head {
		t.Errorf("unpushed %d %v %v", n, newest, err)
	}
	if left, _ := os.ReadDir(filepath.Join(s.o.Dir, quarantineDir)); len(left) > 0 {
		t.Error("a quarantine is left")
	}
	fsck(t, s, id)
	pushed, err := s.Push(t.Context(), id, o.endpoint(), "main", nil)
	if err != nil || pushed != got.Head || git(t, o.dir, "rev-parse", "main") != string(got.Head) {
		t.Errorf("%s %v", pushed, err)
	}
	if n, _, err := s.Unpushed(t.Context(), id, "main", 10); err != nil || n != 0 {
		t.Errorf("unpushed %d %v", n, err)
	}
}

func TestASpaceWithoutFilesOfItsOwnBecomesItsRemote(t *testing.T) {
	o := newOrigin(t)
	tip := o.commit("", "main", "echo 1 > a.md")
	s := newStore(t, withTransport(t))
	id := newSpace(t, s, map[string]string{"a.md": "ours"})
	if got := receive(t, s, id, o, "main"); got.How != Adopted || got.Head != tip || toldOf(got.Commit) != "" {
		t.Errorf("%+v", got)
	}
}

// TestHistoriesWithNothingInCommon connects a space with its own changes to a remote with other
// changes.
func TestHistoriesWithNothingInCommon(t *testing.T) {
	o := newOrigin(t)
	tip := o.commit("", "main", "echo same > same.md; echo t > a.md; echo t > t.md; mkdir d; echo t > d/x")
	s := newStore(t, withTransport(t))
	id := newSpace(t, s, map[string]string{"same.md": "same\n"})
	commit(t, s, id, writes(map[string]string{"a.md": "o", "o.md": "o", "d": "o"}))
	got := receive(t, s, id, o, "main")
	c := tip.Short()
	if got.How != Merged || toldOf(got.Commit) != "a.md→a.conflict-"+c+".md d→d.conflict-"+c {
		t.Errorf("%+v", got)
	}
	if files := listing(t, s.repoDir(id), "main"); files != sorted("a.conflict-"+c+".md = o", "a.md = t", "d.conflict-"+c+" = o", "d/x = t", "o.md = o", "same.md = same", "t.md = t") {
		t.Error(files)
	}
	fsck(t, s, id)
	if _, err := s.Push(t.Context(), id, o.endpoint(), "main", nil); err != nil {
		t.Error(err)
	}
}

// TestARewrittenRemote replaces the remote's branch with another history by a force-push. The
// history is merged, and no commit of ours is lost, pushed or not.
func TestARewrittenRemote(t *testing.T) {
	o := newOrigin(t)
	base := o.commit("", "main", "echo 1 > a.md; echo 1 > b.md")
	old := o.commit(string(base), "main", "echo 2 > a.md")
	s := newStore(t, withTransport(t))
	id := newSpace(t, s, nil)
	receive(t, s, id, o, "main")
	mine := commit(t, s, id, writes(map[string]string{"mine.md": "m"}))
	tip := o.commit(string(base), "main", "echo 3 > a.md")
	got := receive(t, s, id, o, "main")
	if got.How != Merged || toldOf(got.Commit) != "a.md→a.conflict-"+tip.Short()+".md" {
		t.Errorf("%+v", got)
	}
	if files := listing(t, s.repoDir(id), "main"); files != "a.conflict-"+tip.Short()+".md = 2\na.md = 3\nb.md = 1\nmine.md = m" {
		t.Error(files)
	}
	for _, c := range []space.CommitID{old, mine.ID, tip} {
		git(t, s.repoDir(id), "merge-base", "--is-ancestor", string(c), "main")
	}
	// Another rewritten history with the same files creates no second copy.
	again := o.commit(string(base), "main", "echo 3 > a.md; echo new > n.md")
	got = receive(t, s, id, o, "main")
	if got.How != Merged || toldOf(got.Commit) != "" {
		t.Errorf("%+v", got)
	}
	if files := listing(t, s.repoDir(id), "main"); files != "a.conflict-"+tip.Short()+".md = 2\na.md = 3\nb.md = 1\nmine.md = m\nn.md = new" {
		t.Error(files)
	}
	if tracked, ok, err := s.Tracked(t.Context(), id, "main"); tracked != again || !ok || err != nil {
		t.Errorf("%s %v %v", tracked, ok, err)
	}
	fsck(t, s, id)
}

// TestARemoteThatWentBack resets the remote to an older commit. The space has all commits of
// the remote, and pushes the lost ones again.
func TestARemoteThatWentBack(t *testing.T) {
	o := newOrigin(t)
	base := o.commit("", "main", "echo 1 > a.md")
	o.commit("", "main", "echo 2 > a.md")
	s := newStore(t, withTransport(t))
	id := newSpace(t, s, nil)
	head := receive(t, s, id, o, "main").Head
	git(t, o.dir, "update-ref", "refs/heads/main", string(base))
	if got := receive(t, s, id, o, "main"); got.How != Ahead || got.Head != head || got.Commit.Changed {
		t.Errorf("%+v", got)
	}
	if tracked, _, _ := s.Tracked(t.Context(), id, "main"); tracked != base {
		t.Error("what is known of the remote is more than it has")
	}
	if _, err := s.Push(t.Context(), id, o.endpoint(), "main", nil); err != nil || git(t, o.dir, "rev-parse", "main") != string(head) {
		t.Error(err)
	}
}

// TestACommitDuringAMerge checks that the result contains every commit that is made while a
// merge is computed, even if there are many.
func TestACommitDuringAMerge(t *testing.T) {
	for _, times := range []int{1, 3, 10} {
		o := newOrigin(t)
		base := o.commit("", "main", "echo 1 > a.md; echo 1 > b.md")
		var s *Store
		var id space.SpaceID
		var done sync.WaitGroup
		n := 0
		s = newStore(t, withTransport(t), func(op *Options) {
			op.probe = func(step string) {
				if step != "integration computed" || n == times {
					return
				}
				n++
				file := writes(map[string]string{fmt.Sprintf("during-%d.md", n): "x", "b.md": fmt.Sprint(n)})
				file.Policy = space.KeepBoth
				if n > mergeTries { // now the commit waits
					done.Go(func() { commit(t, s, id, file) })
					return
				}
				commit(t, s, id, file)
			}
		})
		id = newSpace(t, s, nil)
		n = times
		receive(t, s, id, o, "main")
		commit(t, s, id, writes(map[string]string{"o.md": "o"}))
		o.commit(string(base), "main", "echo t > t.md")
		n = 0
		got := receive(t, s, id, o, "main")
		done.Wait()
		if got.How != Merged {
			t.Fatalf("%+v", got)
		}
		files := tree(t, s, id)
		for i := 1; i <= min(times, n); i++ {
			if files[fmt.Sprintf("during-%d.md", i)] != "x" {
				t.Errorf("%d commits: the %d. is lost", times, i)
			}
		}
		if files["t.md"] != "t" || files["o.md"] != "o" {
			t.Errorf("%v", files)
		}
		fsck(t, s, id)
	}
}

// TestARemoteOverTheLimitsMovesNothing tests every way into head.
func TestARemoteOverTheLimitsMovesNothing(t *testing.T) {
	for name, over := range map[string]struct {
		limits Limits
		script string
	}{
		"files": {Limits{Files: 5}, "touch 1 2 3 4 5 6"},
		"bytes": {Limits{Space: 5000}, "seq 2000 > big"},
		// The remote alone is within the limits, but not together with our files.
		"both": {Limits{Files: 5}, "touch 1 2 3 4"},
	} {
		for _, how := range []How{Adopted, FastForward, Merged} {
			if name == "both" && how != Merged {
				continue
			}
			t.Run(name+" "+string(how), func(t *testing.T) {
				t.Parallel()
				o := newOrigin(t)
				base := o.commit("", "main", "echo 1 > a.md")
				s := newStore(t, withTransport(t), func(op *Options) { op.Limits = over.limits })
				id := newSpace(t, s, nil)
				if how != Adopted {
					receive(t, s, id, o, "main")
				}
				if how == Merged {
					commit(t, s, id, writes(map[string]string{"o.md": "o"}))
				}
				before, err := s.Head(t.Context(), id)
				if err != nil {
					t.Fatal(err)
				}
				tip := o.commit(string(base), "main", over.script)
				f, err := s.Fetch(t.Context(), id, o.endpoint(), "main", nil)
				if name == "both" {
					if err != nil || f.Tip != tip {
						t.Fatalf("%+v %v", f, err)
					}
					var got Integration
					if got, err = s.Integrate(t.Context(), id, tip, space.Meta{Author: ada}); got.How != "" {
						t.Errorf("%+v", got)
					}
				} else {
					if known, _, _ := s.Tracked(t.Context(), id, "main"); known == tip {
						t.Error("what was not taken is tracked")
					}
					if _, err := s.Show(t.Context(), id, tip); fault.CodeOf(err) != fault.NotFound {
						t.Errorf("the commit was taken: %v", err)
					}
				}
				if fault.CodeOf(err) != fault.TooLarge {
					t.Error(err)
				}
				if h, _ := s.Head(t.Context(), id); h != before || git(t, s.repoDir(id), "rev-parse", "main") != string(before) {
					t.Error("head moved")
				}
				commit(t, s, id, writes(map[string]string{"after.md": "x"}))
				fsck(t, s, id)
			})
		}
	}
	t.Run("history", func(t *testing.T) {
		o := newOrigin(t)
		o.commit("", "main", "dd if=/dev/urandom of=big bs=1000 count=300 2>/dev/null")
		s := newStore(t, withTransport(t), func(op *Options) { op.Limits.Repository = 100_000 })
		id := newSpace(t, s, nil)
		if f, err := s.Fetch(t.Context(), id, o.endpoint(), "main", nil); err == nil {
			t.Errorf("%+v", f)
		}
		if st, err := s.Stats(t.Context(), id); err != nil || st.PackBytes > 100_000 {
			t.Errorf("%+v %v", st, err)
		}
	})
}

// TestTotalsAfterIntegrate checks that the number of files stays correct, so that a limit
// applies exactly when it is reached.
func TestTotalsAfterIntegrate(t *testing.T) {
	o := newOrigin(t)
	base := o.commit("", "main", "echo 1 > a.md; echo 1 > b.md; mkdir d; echo 1 > d/c.md")
	s := newStore(t, withTransport(t))
	id := newSpace(t, s, nil)
	check := func() {
		t.Helper()
		st, err := s.Stats(t.Context(), id)
		if err != nil {
			t.Fatal(err)
		}
		files, err := s.Files(t.Context(), id, "", "")
		if err != nil {
			t.Fatal(err)
		}
		var n int64
		for _, f := range files {
			n += f.Size
		}
		if st.Files != len(files) || st.FileBytes != n {
			t.Errorf("%+v, and there are %d files of %d bytes", st, len(files), n)
		}
	}
	check()
	receive(t, s, id, o, "main")
	check()
	next := o.commit(string(base), "main", "rm a.md; seq 100 > b.md; echo 1 > e.md; ln -s e.md l; chmod +x d/c.md")
	receive(t, s, id, o, "main")
	check()
	commit(t, s, id, writes(map[string]string{"o.md": "o", "z": "z"}))
	o.commit(string(next), "main", "echo t > o.md; rm b.md; rm -r d; echo d > d; mkdir z; echo z > z/z")
	if got := receive(t, s, id, o, "main"); len(got.Commit.Conflicts) != 2 {
		t.Errorf("%+v", got.Commit)
	}
	check()
	if _, err := s.ResetToRemote(t.Context(), id, base, space.Meta{}); err != nil {
		t.Fatal(err)
	}
	check()
}

// TestPathsOfARemote checks that a history with paths that git calls dangerous is refused as a
// whole. Other paths that break our rules stay in the repository, are reported, and are left
// out of checkouts.
func TestPathsOfARemote(t *testing.T) {
	for name, bad := range map[string]string{"dot git": ".GIT", "an HFS form": ".g\u200cit", "an NTFS form": "git~1", "dot dot": ".."} {
		t.Run(name, func(t *testing.T) {
			o := newOrigin(t)
			o.commit("", "main", "echo 1 > a.md")
			s := newStore(t, withTransport(t))
			id := newSpace(t, s, nil)
			receive(t, s, id, o, "main")
			blob := git(t, o.dir, "rev-parse", "main:a.md")
			sub := strings.TrimSpace(gitStdin(t, o.dir, "100644 blob "+blob+"\tconfig\n", "mktree"))
			tree := strings.TrimSpace(gitStdin(t, o.dir, "040000 tree "+sub+"\t"+bad+"\n", "mktree"))
			git(t, o.dir, "update-ref", "refs/heads/main", git(t, o.dir, "commit-tree", "-p", "main", "-m", "Evil", tree))
			if _, err := s.Fetch(t.Context(), id, o.endpoint(), "main", nil); problemOf(err) != transport.Malformed {
				t.Errorf("%v", err)
			}
			if left, _ := os.ReadDir(filepath.Join(s.o.Dir, quarantineDir)); len(left) > 0 {
				t.Error("a quarantine is left")
			}
			fsck(t, s, id)
		})
	}
	o := newOrigin(t)
	base := o.commit("", "main", "echo 1 > a.md")
	s := newStore(t, withTransport(t), func(op *Options) { op.Limits.File = 1000 })
	id := newSpace(t, s, nil)
	receive(t, s, id, o, "main")
	script := `echo x > "$(printf 'new\nline')"; ln -s ../../etc/passwd out; seq 1000 > big`
	want := "big: too_large, new\nline: invalid, out: invalid"
	refused := func(c space.Commit) string {
		var out []string
		for _, f := range c.Rejected {
			out = append(out, fmt.Sprintf("%s: %s", f.Path, fault.CodeOf(f.Err)))
		}
		return strings.Join(out, ", ")
	}
	o.commit(string(base), "main", script)
	if got := receive(t, s, id, o, "main"); got.How != FastForward || refused(got.Commit) != want {
		t.Errorf("%+v", got)
	}
	seed, err := s.Checkout(t.Context(), id)
	if err != nil {
		t.Fatal(err)
	}
	defer seed.Release()
	es, err := os.ReadDir(seed.Dir)
	if err != nil || len(es) != 2 { // the remaining entries are a.md and big
		t.Errorf("%v %v", es, err)
	}
	id2 := newSpace(t, s, nil)
	commit(t, s, id2, writes(map[string]string{"o": "o"}))
	if got := receive(t, s, id2, o, "main"); got.How != Merged || refused(got.Commit) != want {
		t.Errorf("%+v", got)
	}
}

// TestAShallowRemote checks that nothing is taken from a remote with an incomplete history.
func TestAShallowRemote(t *testing.T) {
	o := newOrigin(t)
	o.commit("", "main", "echo 1 > a.md")
	o.commit("", "main", "echo 2 > a.md")
	shallow := &origin{t: t, dir: filepath.Join(t.TempDir(), "shallow.git")}
	git(t, o.work, "clone", "-q", "--bare", "--depth", "1", "file://"+o.dir, shallow.dir)
	s := newStore(t, withTransport(t))
	id := newSpace(t, s, nil)
	if f, err := s.Fetch(t.Context(), id, shallow.endpoint(), "main", nil); problemOf(err) != transport.Shallow {
		t.Errorf("%+v %v", f, err)
	}
	if st, err := s.Stats(t.Context(), id); err != nil || st.Packs != 1 {
		t.Errorf("%+v %v", st, err)
	}
	fsck(t, s, id)
}

func TestAnUnknownCommitIsNotIntegrated(t *testing.T) {
	s := newStore(t)
	id := newSpace(t, s, map[string]string{"a": "a"})
	for _, tip := range []space.CommitID{space.CommitID(strings.Repeat("1", 40)), "x"} {
		if _, err := s.Integrate(t.Context(), id, tip, space.Meta{}); fault.CodeOf(err) != fault.NotFound && fault.CodeOf(err) != fault.Invalid {
			t.Errorf("%s: %v", tip, err)
		}
		if _, err := s.ResetToRemote(t.Context(), id, tip, space.Meta{}); fault.CodeOf(err) != fault.NotFound && fault.CodeOf(err) != fault.Invalid {
			t.Errorf("%s: %v", tip, err)
		}
	}
	if _, err := s.Fetch(t.Context(), id, transport.Endpoint{}, "main", nil); fault.CodeOf(err) != fault.Unavailable {
		t.Errorf("%v", err)
	}
	if _, err := s.Push(t.Context(), id, transport.Endpoint{}, "main", nil); fault.CodeOf(err) != fault.Unavailable {
		t.Errorf("%v", err)
	}
}
