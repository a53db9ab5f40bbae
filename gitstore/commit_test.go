package gitstore

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"

	"satchel/internal/fault"
	"satchel/internal/space"
)

// at returns the blob of a path at head, or "" if there is none.
func at(t testing.TB, s *Store, id space.SpaceID, p string) space.BlobID {
	t.Helper()
	b, _, _, err := s.Blob(t.Context(), id, "", space.Path(p))
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// TestStaleBases is the table of outcomes of a change with a stale base, under both policies. %
// is replaced by the short id of head.
func TestStaleBases(t *testing.T) {
	base := map[string]string{"a.md": "one", "d/x.md": "x", "d/y.md": "y", ".hidden": "h"}
	type ch = space.Change
	w := func(p, c string, base space.BlobID) ch { return ch{Path: p, Content: []byte(c), Base: base} }
	del := func(p string, base space.BlobID) ch { return ch{Path: p, Op: space.Delete, Base: base} }
	stale := space.BlobID(strings.Repeat("1", 40))
	for _, c := range []struct {
		name      string
		changes   func(blob func(string) space.BlobID) []ch
		keep      map[string]string // what KeepBoth changes; "" is a deletion
		conflicts string
		refuses   bool // RefuseStale returns a conflict
		refused   int
	}{
		{name: "a fresh write", changes: func(b func(string) space.BlobID) []ch { return []ch{w("a.md", "two", b("a.md"))} },
			keep: map[string]string{"a.md": "two"}},
		{name: "a fresh delete", changes: func(b func(string) space.BlobID) []ch { return []ch{del("a.md", b("a.md"))} },
			keep: map[string]string{"a.md": ""}},
		{name: "a stale write", changes: func(func(string) space.BlobID) []ch { return []ch{w("a.md", "two", stale)} },
			keep: map[string]string{"a.conflict-%.md": "two"}, conflicts: "a.md→a.conflict-%.md", refuses: true},
		{name: "a new file where there is one", changes: func(func(string) space.BlobID) []ch { return []ch{w("a.md", "two", "")} },
			keep: map[string]string{"a.conflict-%.md": "two"}, conflicts: "a.md→a.conflict-%.md", refuses: true},
		{name: "a stale write of what head has", changes: func(func(string) space.BlobID) []ch { return []ch{w("a.md", "one", stale)} }},
		{name: "a stale write of a hidden file", changes: func(func(string) space.BlobID) []ch { return []ch{w(".hidden", "2", stale)} },
			keep: map[string]string{".hidden.conflict-%": "2"}, conflicts: ".hidden→.hidden.conflict-%", refuses: true},
		{name: "a stale delete", changes: func(func(string) space.BlobID) []ch { return []ch{del("a.md", stale)} },
			conflicts: "a.md→", refuses: true},
		{name: "a delete of nothing", changes: func(func(string) space.BlobID) []ch { return []ch{del("none.md", stale)} }},
		{name: "a write to what was deleted", changes: func(func(string) space.BlobID) []ch { return []ch{w("gone.md", "g", stale)} },
			keep: map[string]string{"gone.md": "g"}, conflicts: "gone.md→gone.md", refuses: true},
		{name: "a file where head has a directory", changes: func(func(string) space.BlobID) []ch { return []ch{w("d", "file", "")} },
			keep: map[string]string{"d.conflict-%": "file"}, conflicts: "d→d.conflict-%", refuses: true},
		{name: "a file in place of a directory all of which goes", changes: func(b func(string) space.BlobID) []ch {
			return []ch{w("d", "file", ""), del("d/x.md", b("d/x.md")), del("d/y.md", b("d/y.md"))}
		}, keep: map[string]string{"d": "file", "d/x.md": "", "d/y.md": ""}},
		{name: "a file in place of a directory part of which stays", changes: func(b func(string) space.BlobID) []ch {
			return []ch{w("d", "file", ""), del("d/x.md", b("d/x.md"))}
		}, keep: map[string]string{"d.conflict-%": "file", "d/x.md": ""}, conflicts: "d→d.conflict-%", refuses: true},
		{name: "files below a file", changes: func(func(string) space.BlobID) []ch {
			return []ch{w("a.md/p", "p", ""), w("a.md/q/r", "q", "")}
		}, keep: map[string]string{"a.conflict-%.md/p": "p", "a.conflict-%.md/q/r": "q"},
			conflicts: "a.md/p→a.conflict-%.md/p a.md/q/r→a.conflict-%.md/q/r", refuses: true},
		{name: "a directory in place of a file that goes", changes: func(b func(string) space.BlobID) []ch {
			return []ch{del("a.md", b("a.md")), w("a.md/p", "p", "")}
		}, keep: map[string]string{"a.md": "", "a.md/p": "p"}},
		{name: "a path both file and directory", changes: func(func(string) space.BlobID) []ch {
			return []ch{w("n", "file", ""), w("n/below", "x", "")}
		}, keep: map[string]string{"n": "file"}, refused: 1},
		{name: "a delete of a directory", changes: func(func(string) space.BlobID) []ch { return []ch{del("d", "")} }, refused: 1},
		{name: "a file that became a directory on both sides", changes: func(func(string) space.BlobID) []ch {
			return []ch{del("d", stale), w("d/x.md", "mine", ""), w("d/new.md", "n", "")}
		}, keep: map[string]string{"d/x.conflict-%.md": "mine", "d/new.md": "n"}, conflicts: "d→ d/x.md→d/x.conflict-%.md", refuses: true},
		{name: "two entries for one path", changes: func(func(string) space.BlobID) []ch {
			return []ch{w("n", "first", ""), w("n", "last", "")}
		}, keep: map[string]string{"n": "last"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			for _, policy := range []space.Policy{space.KeepBoth, space.RefuseStale} {
				s := newStore(t)
				id := newSpace(t, s, base)
				head, err := s.Head(t.Context(), id)
				if err != nil {
					t.Fatal(err)
				}
				sub := func(x string) string { return strings.ReplaceAll(x, "%", head.Short()) }
				cs := space.ChangeSet{Policy: policy, Changes: c.changes(func(p string) space.BlobID { return at(t, s, id, p) })}
				got, err := s.Commit(t.Context(), id, cs, space.Meta{Author: ada})
				want := maps.Clone(base)
				if policy == space.RefuseStale && c.refuses {
					if fault.CodeOf(err) != fault.Conflict {
						t.Errorf("RefuseStale: %v", err)
					}
				} else {
					if err != nil {
						t.Fatal(err)
					}
					for p, content := range c.keep {
						want[sub(p)] = content
						if content == "" {
							delete(want, p)
						}
					}
					var told []string
					for _, x := range got.Conflicts {
						told = append(told, string(x.Path+"→"+x.Kept))
					}
					if policy == space.KeepBoth && strings.Join(told, " ") != sub(c.conflicts) {
						t.Errorf("conflicts %q, want %q", told, sub(c.conflicts))
					}
					if len(got.Rejected) != c.refused || got.Changed != (len(c.keep) > 0) {
						t.Errorf("%+v", got)
					}
				}
				if files := tree(t, s, id); !maps.Equal(files, want) {
					t.Errorf("policy %d: tree %v, want %v", policy, files, want)
				}
				fsck(t, s, id)
			}
		})
	}
}

func TestAConflictIsKeptOnceHoweverOftenItIsTried(t *testing.T) {
	s := newStore(t)
	id := newSpace(t, s, map[string]string{"a.md": "one"})
	cs := writes(map[string]string{"a.md": "two"})
	cs.Policy = space.KeepBoth
	first := commit(t, s, id, cs)
	kept := first.Conflicts[0].Kept
	if !space.IsConflictCopy(kept) {
		t.Errorf("IsConflictCopy(%q)", kept)
	}
	// A version that another writer made from the same head gets its own name.
	three := writes(map[string]string{"a.md": "three", string(kept): "taken"})
	three.Policy = space.KeepBoth
	commit(t, s, id, three)
	if n := len(tree(t, s, id)); n != 4 {
		t.Errorf("%d files: %v", n, tree(t, s, id))
	}
}

// TestRefusedEntries checks that each attack with a path is reported, and that the rest is
// committed.
func TestRefusedEntries(t *testing.T) {
	s := newStore(t, func(o *Options) { o.Limits.File = 100 })
	id := newSpace(t, s, map[string]string{"a.md": "one"})
	attacks := []space.Change{
		{Path: ".git/config"}, {Path: "x/.GIT/hooks/post-commit"}, {Path: "git~1/config"}, {Path: ".git./x"},
		{Path: ".g\u200cit/x"}, {Path: "../out"}, {Path: "/etc/passwd"}, {Path: "a//b"}, {Path: "a/./b"}, {Path: ""},
		{Path: "nul\x00"}, {Path: "line\nbreak"}, {Path: "bad\xff"}, {Path: strings.Repeat("d/", 40) + "f"},
		{Path: ".github/workflows/ci.yml"}, {Path: ".GitHub/Workflows/x"},
		{Path: "link", Mode: space.Symlink, Content: []byte("../../etc/passwd")},
		{Path: "link2", Mode: space.Symlink, Content: []byte("/etc/passwd")},
		{Path: "link3", Mode: space.Symlink, Content: []byte(".git/config")},
		{Path: "big", Content: make([]byte, 101)}, {Path: "mode", Mode: 9}, {Path: "op", Op: 7}, {Path: "base", Base: "zz"},
	}
	got := commit(t, s, id, space.ChangeSet{Changes: append([]space.Change{
		{Path: "good.md", Content: []byte("good")}, {Path: "link.ok", Mode: space.Symlink, Content: []byte("good.md")},
		{Path: "run.sh", Mode: space.Executable, Content: []byte("#!/bin/sh\n")}, {Path: ".github/ISSUE_TEMPLATE.md"},
	}, attacks...)})
	if len(got.Rejected) != len(attacks) || len(got.Files) != 4 {
		t.Errorf("refused %d of %d: %+v", len(got.Rejected), len(attacks), got.Rejected)
	}
	for _, r := range got.Rejected {
		if r.Why == "" || fault.CodeOf(r.Err) == fault.Internal {
			t.Errorf("%q: %q %v", r.Path, r.Why, r.Err)
		}
	}
	if got := git(t, s.repoDir(id), "ls-tree", "-r", "--format=%(objectmode) %(path)", "main"); got !=
		"100644 .github/ISSUE_TEMPLATE.md\n100644 a.md\n100644 good.md\n120000 link.ok\n100755 run.sh" {
		t.Errorf("tree:\n%s", got)
	}
	fsck(t, s, id)
}

func TestModesMergeByThemselves(t *testing.T) {
	s := newStore(t)
	id := newSpace(t, s, map[string]string{"run": "v1"})
	v1 := at(t, s, id, "run")
	commit(t, s, id, space.ChangeSet{Changes: []space.Change{{Path: "run", Content: []byte("v1"), Mode: space.Executable, Base: v1}}})
	// A writer that read the file before it was executable changes the content.
	c := commit(t, s, id, space.ChangeSet{Changes: []space.Change{{Path: "run", Content: []byte("v2"), Base: v1}}})
	if c.Files[0].NewMode != space.Executable || c.Files[0].Status != space.Modified {
		t.Errorf("%+v", c.Files)
	}
	// A link is not a version of a file, even if its target has the same bytes.
	_, err := s.Commit(t.Context(), id, space.ChangeSet{Changes: []space.Change{
		{Path: "run", Mode: space.Symlink, Content: []byte("x"), Base: c.Files[0].New, BaseMode: space.Symlink}}}, space.Meta{})
	if fault.CodeOf(err) != fault.Conflict {
		t.Error(err)
	}
}

func TestLimits(t *testing.T) {
	s := newStore(t, func(o *Options) {
		o.Limits = Limits{File: 50, Change: 120, Space: 200, Files: 5, Entries: 6, Repository: 20 << 10}
	})
	id := newSpace(t, s, map[string]string{"a": strings.Repeat("a", 50)})
	head, _ := s.Head(t.Context(), id)
	big := func(names ...string) space.ChangeSet {
		m := map[string]string{}
		for _, n := range names {
			m[n] = strings.Repeat(n, 50)[:50]
		}
		return writes(m)
	}
	for name, cs := range map[string]space.ChangeSet{
		"change":  big("b", "c", "d"),
		"entries": writes(map[string]string{"1": "", "2": "", "3": "", "4": "", "5": "", "6": "", "7": ""}),
		"files":   writes(map[string]string{"1": "", "2": "", "3": "", "4": "", "5": ""}),
	} {
		if _, err := s.Commit(t.Context(), id, cs, space.Meta{}); fault.CodeOf(err) != fault.TooLarge {
			t.Errorf("%s: %v", name, err)
		}
	}
	commit(t, s, id, big("b", "c"))
	commit(t, s, id, big("d"))
	if _, err := s.Commit(t.Context(), id, writes(map[string]string{"e": "e"}), space.Meta{}); fault.CodeOf(err) != fault.TooLarge {
		t.Errorf("space: %v", err)
	}
	if st, err := s.Stats(t.Context(), id); err != nil || st.Files != 4 || st.FileBytes != 200 {
		t.Errorf("%+v %v", st, err)
	}
	// A full space still accepts deletes, and then accepts writes again.
	commit(t, s, id, space.ChangeSet{Changes: []space.Change{{Path: "d", Op: space.Delete, Base: at(t, s, id, "d")}}})
	commit(t, s, id, writes(map[string]string{"e": "e"}))
	if now, _ := s.Head(t.Context(), id); now == head {
		t.Error("head did not move")
	}
}

func TestMessagesCannotForgeTrailersOrBreakTheCommit(t *testing.T) {
	s := newStore(t)
	id := newSpace(t, s, nil)
	for i, c := range []struct{ msg, wantMsg, tool, client, wantTool, wantClient string }{
		{msg: "plain", wantMsg: "plain", tool: "bash", client: "Claude Code", wantTool: "bash", wantClient: "Claude Code"},
		{msg: "$(touch /tmp/x); `id` \"; rm -rf / #", wantMsg: "$(touch /tmp/x); `id` \"; rm -rf / #", tool: "bash", wantTool: "bash"},
		{msg: "x\n\nSatchel-Client: admin", wantMsg: "x\n\n Satchel-Client: admin"},
		{msg: "x", wantMsg: "x", tool: "bash\nSatchel-Client: admin", wantTool: "bash Satchel-Client: admin"},
		{msg: "nul\x00 and \xff\r\nline", wantMsg: "nul and \uFFFD\nline", tool: "t", wantTool: "t"},
		{msg: "  \n ", wantMsg: "Add 5.md", client: "c", wantClient: "c"},
		{msg: "tree 0000\nparent x\n\nbody\n\n", wantMsg: "tree 0000\nparent x\n\nbody"},
	} {
		got, err := s.Commit(t.Context(), id, writes(map[string]string{fmt.Sprintf("%d.md", i): "x"}),
			space.Meta{Author: space.Person{Name: "E<vil>\nparent", Email: "a b\n<c>@d"}, Message: c.msg, Tool: c.tool, Client: c.client})
		if err != nil {
			t.Fatal(err)
		}
		log, err := s.Log(t.Context(), id, space.LogQuery{Limit: 1})
		if err != nil {
			t.Fatal(err)
		}
		for _, x := range []space.Commit{got, log[0]} {
			if x.Message != c.wantMsg || x.Tool != c.wantTool || x.Client != c.wantClient || x.Author.Name != "Evil parent" {
				t.Errorf("%q: %+v", c.msg, x)
			}
		}
		if v := git(t, s.repoDir(id), "log", "-1", "--format=%(trailers:key=Satchel-Client,valueonly,separator=)", "main"); v != c.wantClient {
			t.Errorf("git reads the client %q", v)
		}
	}
	fsck(t, s, id)
}

type recorder struct {
	mu  sync.Mutex
	ids []space.CommitID
}

func (r *recorder) Publish(e space.Event) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.ids = append(r.ids, e.Commit.ID)
}

func TestConcurrentWritersLoseNothing(t *testing.T) {
	rec := &recorder{}
	s := newStore(t, func(o *Options) { o.Events = rec })
	id := newSpace(t, s, map[string]string{"shared.md": "0"})
	base := at(t, s, id, "shared.md")
	var wg sync.WaitGroup
	for w := range 8 {
		wg.Go(func() {
			for i := range 10 {
				cs := space.ChangeSet{Policy: space.KeepBoth, Changes: []space.Change{
					{Path: fmt.Sprintf("w%d/%d.md", w, i), Content: []byte("x")},
					{Path: "shared.md", Base: base, Content: fmt.Appendf(nil, "%d-%d", w, i)}}}
				if _, err := s.Commit(context.Background(), id, cs, space.Meta{Author: ada}); err != nil {
					t.Error(err)
				}
				if _, _, err := s.Open(context.Background(), id, "", "shared.md"); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	if n := len(tree(t, s, id)); n != 80+1+79 {
		t.Errorf("%d files", n)
	}
	log := strings.Fields(git(t, s.repoDir(id), "rev-list", "--reverse", "main"))
	if len(log) != len(rec.ids) {
		t.Fatalf("%d commits, %d events", len(log), len(rec.ids))
	}
	for i, c := range log {
		if string(rec.ids[i]) != c {
			t.Fatalf("event %d is out of order", i)
		}
	}
	fsck(t, s, id)
}

func TestAFailingDiskLosesNothingAndTellsSo(t *testing.T) {
	fail := 0
	count := 0
	s := newStore(t, func(o *Options) {
		o.Sync = func(f *os.File) error {
			if count++; count == fail {
				return errors.New("no space left on device")
			}
			return nil
		}
	})
	id := newSpace(t, s, map[string]string{"a": "1"})
	for n := 1; n <= 3; n++ {
		head, _ := s.Head(t.Context(), id)
		count, fail = 0, n
		if _, err := s.Commit(t.Context(), id, writes(map[string]string{fmt.Sprint("f", n): "x"}), space.Meta{}); err == nil {
			t.Fatalf("sync %d failed unseen", n)
		}
		if now, _ := s.Head(t.Context(), id); now != head {
			t.Errorf("sync %d: head moved", n)
		}
		fail = 0
		commit(t, s, id, writes(map[string]string{fmt.Sprint("g", n): "x"}))
		fsck(t, s, id)
	}
	count = 0
	commit(t, s, id, writes(map[string]string{"last": "x"}))
	if count != 3 {
		t.Errorf("a commit takes %d fsyncs, and three are promised", count)
	}
}

func TestUnknownSpaces(t *testing.T) {
	s := newStore(t)
	if _, err := s.Head(t.Context(), space.NewSpaceID()); fault.CodeOf(err) != fault.NotFound {
		t.Error(err)
	}
	for _, bad := range []space.SpaceID{"", "..", "s_../../x", "s_" + space.SpaceID(bytes.Repeat([]byte("a"), 25))} {
		if _, err := s.Head(t.Context(), bad); fault.CodeOf(err) != fault.Invalid {
			t.Errorf("%q: %v", bad, err)
		}
	}
	id := newSpace(t, s, nil)
	if _, err := s.Create(t.Context(), id, space.ChangeSet{}, space.Meta{}); fault.CodeOf(err) != fault.Conflict {
		t.Error(err)
	}
	if err := s.Remove(t.Context(), id); err != nil || s.Exists(id) {
		t.Error(err)
	}
	if _, err := Open(Options{Dir: s.o.Dir}); fault.CodeOf(err) != fault.Conflict {
		t.Errorf("a second store on the directory: %v", err)
	}
}

// A new file is saved with a warning if some file systems cannot tell its name from another's.
func TestTwinsOnOtherFileSystems(t *testing.T) {
	s := newStore(t)
	id := newSpace(t, s, map[string]string{"d/Caf\u00e9.md": "1", "e/x.md": "2"})
	c := commit(t, s, id, writes(map[string]string{"d/cafe\u0301.md": "3", "d/x.md": "4", "e/a.md": "5", "e/A.md": "6", "E.md": "7"}))
	var warned []string
	for _, w := range c.Warnings {
		warned = append(warned, w.Path)
	}
	slices.Sort(warned)
	if want := []string{"d/cafe\u0301.md", "e/A.md", "e/a.md"}; !slices.Equal(warned, want) {
		t.Errorf("%q, want %q", warned, want)
	}
	// The number of warnings has a limit, however many names are alike.
	many := map[string]string{}
	for i := range 1 << 10 {
		name := []byte("abcdefghij")
		for bit := range name {
			if i>>bit&1 == 1 {
				name[bit] -= 'a' - 'A'
			}
		}
		many["many/"+string(name)] = "x"
	}
	if n := len(commit(t, s, id, writes(many)).Warnings); n != maxTwins {
		t.Errorf("%d warnings", n)
	}
}
