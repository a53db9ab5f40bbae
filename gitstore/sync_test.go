package gitstore

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"satchel/gitstore/transport"
	"satchel/internal/space"
	"satchel/internal/testenv"
)

// writer is a server with a space whose remote is the origin.
type writer struct {
	t     testing.TB
	name  string
	s     *Store
	id    space.SpaceID
	o     *origin
	merge func(w *writer, ours, theirs, result space.CommitID)
	n     int
}

// syncOnce does what a push queue does: it fetches, integrates and pushes, and starts again if
// the remote has moved meanwhile.
func (w *writer) syncOnce() {
	w.t.Helper()
	ctx := w.t.Context()
	for range 5 {
		if git(w.t, w.o.dir, "for-each-ref", "refs/heads/main") != "" {
			ours, err := w.s.Head(ctx, w.id)
			if err != nil {
				w.t.Fatal(err)
			}
			f, err := w.s.Fetch(ctx, w.id, w.o.endpoint(), "main", nil)
			if err != nil {
				w.t.Fatal(err)
			}
			got := integrate(w.t, w.s, w.id, f.Tip)
			if got.How == Merged && w.merge != nil {
				w.merge(w, ours, f.Tip, got.Head)
			}
		}
		_, err := w.s.Push(ctx, w.id, w.o.endpoint(), "main", nil)
		if transport.ProblemOf(err) == transport.Stale {
			continue
		}
		if err != nil {
			w.t.Fatal(err)
		}
		return
	}
	w.t.Fatal("the remote was never up to date")
}

func (w *writer) head() space.CommitID {
	h, err := w.s.Head(w.t.Context(), w.id)
	if err != nil {
		w.t.Fatal(err)
	}
	return h
}

// change commits some random changes. Each has unique content.
func (w *writer) change(rnd *rand.Rand) {
	w.t.Helper()
	paths := []string{"a.md", "b.md", "d/x.md", "d/y.md", "d", "a.md/z", "e/f/g.md", "e", "e/f", "A.md"}
	cs := space.ChangeSet{Policy: space.KeepBoth}
	for range 1 + rnd.IntN(3) {
		p := paths[rnd.IntN(len(paths))]
		files, err := w.s.Files(w.t.Context(), w.id, "", space.Path(p))
		if err != nil {
			w.t.Fatal(err)
		}
		w.n++
		content := []byte(fmt.Sprintf("%s-%d", w.name, w.n))
		switch kind := rnd.IntN(10); {
		case kind < 3: // delete everything at or below the path
			for _, f := range files {
				cs.Changes = append(cs.Changes, space.Change{Path: string(f.Path), Op: space.Delete, Base: f.Blob, BaseMode: f.Mode})
			}
		case kind < 5 && len(files) > 0: // rename
			data, err := w.s.ReadBlob(w.t.Context(), w.id, files[0].Blob)
			if err != nil {
				w.t.Fatal(err)
			}
			cs.Changes = append(cs.Changes,
				space.Change{Path: string(files[0].Path), Op: space.Delete, Base: files[0].Blob},
				space.Change{Path: fmt.Sprintf("r%d.md", rnd.IntN(4)), Content: data})
		case len(files) == 1 && string(files[0].Path) == p:
			cs.Changes = append(cs.Changes, space.Change{Path: p, Content: content, Base: files[0].Blob, Mode: space.Mode(rnd.IntN(2)), BaseMode: files[0].Mode})
		default:
			for _, f := range files { // a file replaces a directory
				cs.Changes = append(cs.Changes, space.Change{Path: string(f.Path), Op: space.Delete, Base: f.Blob, BaseMode: f.Mode})
			}
			cs.Changes = append(cs.Changes, space.Change{Path: p, Content: content})
		}
	}
	commit(w.t, w.s, w.id, cs)
}

func (w *writer) blobs(at space.CommitID) map[space.BlobID]bool {
	w.t.Helper()
	files, err := w.s.Files(w.t.Context(), w.id, at, "")
	if err != nil {
		w.t.Fatal(err)
	}
	out := map[space.BlobID]bool{}
	for _, f := range files {
		out[f.Blob] = true
	}
	return out
}

// nothingLost checks that the result of a merge has every content that a side has and no common
// ancestor has. Contents have one line, so that no content is a mixture.
func nothingLost(w *writer, ours, theirs, result space.CommitID) {
	w.t.Helper()
	dir := w.s.repoDir(w.id)
	old := map[space.BlobID]bool{}
	bases, _ := testenv.Git(w.t, dir, "merge-base", "--all", string(ours), string(theirs)).Output() // fails if there is none
	for base := range strings.FieldsSeq(string(bases)) {
		for b := range w.blobs(space.CommitID(base)) {
			old[b] = true
		}
	}
	after := w.blobs(result)
	for _, side := range []space.CommitID{ours, theirs} {
		for b := range w.blobs(side) {
			if !old[b] && !after[b] {
				data, _ := w.s.ReadBlob(w.t.Context(), w.id, b)
				w.t.Errorf("%s: the merge %s of %s and %s lost %q", w.name, result, ours, theirs, data)
			}
		}
	}
	markers := git(w.t, dir, "ls-tree", "-r", "--name-only", string(result))
	for p := range strings.Lines(markers) {
		if strings.Contains(p, "~") || strings.Count(p, space.ConflictMark) > 1 && !strings.Contains(p, "/") {
			w.t.Errorf("%s: the merge left the name %s", w.name, p)
		}
	}
}

// TestTwoWritersComeToOne has two servers change one remote at the same time. No change may be
// lost. A few rounds after the last change, both servers and the remote have the same head.
func TestTwoWritersComeToOne(t *testing.T) {
	for seed := range uint64(8) {
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) {
			t.Parallel()
			rnd := rand.New(rand.NewPCG(seed, 3))
			o := newOrigin(t)
			var ws []*writer
			for _, name := range []string{"ada", "ben"} {
				s := newStore(t, withTransport(t))
				ws = append(ws, &writer{t: t, name: name, s: s, id: newSpace(t, s, map[string]string{"start.md": "x"}), o: o, merge: nothingLost})
			}
			merges := 0
			for range 12 {
				for _, w := range ws {
					for range rnd.IntN(3) {
						w.change(rnd)
					}
					if rnd.IntN(2) == 0 {
						w.syncOnce()
					}
				}
			}
			for round := 0; ; round++ {
				for _, w := range ws {
					w.syncOnce()
				}
				if ws[0].head() == ws[1].head() {
					if round > 1 {
						t.Errorf("it took %d rounds", round+1)
					}
					break
				}
				if round == 6 {
					t.Fatal("they never come to one head")
				}
			}
			if tip := git(t, o.dir, "rev-parse", "main"); tip != string(ws[0].head()) {
				t.Error("the remote is elsewhere")
			}
			merges += strings.Count(git(t, o.dir, "rev-list", "--merges", "main"), "\n")
			if merges == 0 {
				t.Log("there was no merge")
			}
			for _, w := range ws {
				fsck(t, w.s, w.id)
				if n, _, err := w.s.Unpushed(t.Context(), w.id, "main", 10); err != nil || n != 0 {
					t.Errorf("%d unpushed: %v", n, err)
				}
			}
			git(t, o.dir, "fsck", "--full", "--strict")
		})
	}
}

// edit commits random changes to files of many lines: replaced lines, renames and deletions.
func (w *writer) edit(rnd *rand.Rand) {
	w.t.Helper()
	files, err := w.s.Files(w.t.Context(), w.id, "", "")
	if err != nil {
		w.t.Fatal(err)
	}
	cs := space.ChangeSet{Policy: space.KeepBoth}
	taken := map[space.Path]bool{}
	for _, f := range files {
		taken[f.Path] = true
	}
	for _, f := range files {
		if rnd.IntN(3) > 0 {
			continue
		}
		data, err := w.s.ReadBlob(w.t.Context(), w.id, f.Blob)
		if err != nil {
			w.t.Fatal(err)
		}
		lines := strings.Split(string(data), "\n")
		w.n++
		lines[rnd.IntN(len(lines))] = fmt.Sprintf("line %s-%d", w.name, w.n)
		c := space.Change{Path: string(f.Path), Content: []byte(strings.Join(lines, "\n")), Base: f.Blob, BaseMode: f.Mode, Mode: space.Mode(rnd.IntN(2))}
		switch to := space.Path(fmt.Sprintf("n%d.md", rnd.IntN(8))); {
		case rnd.IntN(8) == 0:
			c = space.Change{Path: c.Path, Op: space.Delete, Base: f.Blob}
		case rnd.IntN(3) == 0 && !taken[to]:
			taken[to] = true
			cs.Changes = append(cs.Changes, space.Change{Path: c.Path, Op: space.Delete, Base: f.Blob})
			c.Path, c.Base = string(to), ""
		}
		cs.Changes = append(cs.Changes, c)
	}
	commit(w.t, w.s, w.id, cs)
}

// noLineLost checks that the files of a merge contain every line that a side has and no common
// ancestor has, and no conflict markers of git.
func noLineLost(w *writer, ours, theirs, result space.CommitID) {
	w.t.Helper()
	lines := func(at space.CommitID) map[string]bool {
		out := map[string]bool{}
		for b := range w.blobs(at) {
			data, err := w.s.ReadBlob(w.t.Context(), w.id, b)
			if err != nil {
				w.t.Fatal(err)
			}
			for l := range strings.SplitSeq(string(data), "\n") {
				out[l] = true
			}
		}
		return out
	}
	old := map[string]bool{}
	bases, _ := testenv.Git(w.t, w.s.repoDir(w.id), "merge-base", "--all", string(ours), string(theirs)).Output()
	for base := range strings.FieldsSeq(string(bases)) {
		for l := range lines(space.CommitID(base)) {
			old[l] = true
		}
	}
	after := lines(result)
	for _, side := range []space.CommitID{ours, theirs} {
		for l := range lines(side) {
			if !old[l] && !after[l] {
				w.t.Errorf("%s: the merge %s of %s and %s lost %q", w.name, result, ours, theirs, l)
			}
		}
	}
	for l := range after {
		if strings.HasPrefix(l, "<<<<<<<") || strings.HasPrefix(l, ">>>>>>>") || strings.HasPrefix(l, "=======") {
			w.t.Errorf("%s: the merge %s of %s and %s left git's mark %q", w.name, result, ours, theirs, l)
		}
	}
}

// TestLinesOfTwoWriters is like TestTwoWritersComeToOne, but the files can be merged by lines,
// and are renamed while they are edited.
func TestLinesOfTwoWriters(t *testing.T) {
	for seed := range uint64(6) {
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) {
			t.Parallel()
			rnd := rand.New(rand.NewPCG(seed, 4))
			o := newOrigin(t)
			o.commit("", "main", `for f in 1 2 3 4; do seq 1 24 | sed "s/^/line $f-/" > n$f.md; done`)
			var ws []*writer
			for _, name := range []string{"ada", "ben"} {
				s := newStore(t, withTransport(t))
				w := &writer{t: t, name: name, s: s, id: newSpace(t, s, nil), o: o, merge: noLineLost}
				w.syncOnce()
				ws = append(ws, w)
			}
			for range 8 {
				for _, w := range ws {
					w.edit(rnd)
					if rnd.IntN(2) == 0 {
						w.syncOnce()
					}
				}
			}
			for range 2 {
				for _, w := range ws {
					w.syncOnce()
				}
			}
			if ws[0].head() != ws[1].head() {
				t.Error("they did not come to one head in two rounds")
			}
			for _, w := range ws {
				fsck(t, w.s, w.id)
			}
		})
	}
}

// TestTheSameConflictOnBothSidesEndsThere has two servers that get the same conflict with the
// same remote change. Each server makes its own merge.
func TestTheSameConflictOnBothSidesEndsThere(t *testing.T) {
	for name, content := range map[string][2]string{"the same edit": {"x", "x"}, "different edits": {"x", "y"}} {
		t.Run(name, func(t *testing.T) {
			o := newOrigin(t)
			base := o.commit("", "main", "echo b > a.md")
			var ws []*writer
			for i := range 2 {
				s := newStore(t, withTransport(t))
				w := &writer{t: t, name: fmt.Sprint(i), s: s, id: newSpace(t, s, nil), o: o, merge: nothingLost}
				w.syncOnce()
				b := at(t, s, w.id, "a.md")
				commit(t, s, w.id, space.ChangeSet{Changes: []space.Change{{Path: "a.md", Content: []byte(content[i]), Base: b}}})
				ws = append(ws, w)
			}
			theirs := o.commit(string(base), "main", "echo t > a.md")
			for range 2 {
				for _, w := range ws {
					w.syncOnce()
				}
			}
			want := sorted("a.md = t", "a.conflict-"+theirs.Short()+".md = x")
			if content[0] != content[1] {
				merge := git(t, o.dir, "rev-list", "--merges", "--first-parent", "--max-parents=2", "main")
				m := strings.Fields(git(t, o.dir, "show", "-s", "--format=%P", strings.Fields(merge)[0]))[1]
				want = sorted("a.md = t", "a.conflict-"+theirs.Short()+".md = x", "a.conflict-"+m[:10]+".md = y")
			}
			if got := listing(t, o.dir, "main"); got != want {
				t.Errorf("files:\n%s\nwant:\n%s", got, want)
			}
			if ws[0].head() != ws[1].head() {
				t.Error("two heads")
			}
			before := ws[0].head()
			for _, w := range ws {
				w.syncOnce()
			}
			if ws[0].head() != before || ws[1].head() != before {
				t.Error("a sync of nothing made a commit")
			}
		})
	}
}

// TestARemoteThatMovedOnRefusesThePush checks the error that asks for a fetch.
func TestARemoteThatMovedOnRefusesThePush(t *testing.T) {
	o := newOrigin(t)
	base := o.commit("", "main", "echo b > a.md")
	s := newStore(t, withTransport(t))
	id := newSpace(t, s, nil)
	receive(t, s, id, o, "main")
	commit(t, s, id, writes(map[string]string{"o": "o"}))
	theirs := o.commit(string(base), "main", "echo t > t")
	if _, err := s.Push(t.Context(), id, o.endpoint(), "main", nil); transport.ProblemOf(err) != transport.Stale {
		t.Errorf("%v", err)
	}
	var te *transport.Error
	if _, err := s.Push(t.Context(), id, o.endpoint(), "main", nil); !errors.As(err, &te) {
		t.Errorf("%v", err)
	}
	if got := git(t, o.dir, "rev-parse", "main"); got != string(theirs) {
		t.Error("the push was forced")
	}
	if tip, ok, err := s.Tracked(t.Context(), id, "main"); err != nil || !ok || tip != base {
		t.Errorf("%s %v %v", tip, ok, err)
	}
}
