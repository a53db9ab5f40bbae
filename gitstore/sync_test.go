package gitstore

import (
	"errors"
	"strings"
	"testing"

	"satchel/gitstore/transport"
	"satchel/internal/space"
)

// problemOf returns the problem of a transfer, or "" if there is none.
func problemOf(err error) transport.Problem {
	var e *transport.Error
	if !errors.As(err, &e) {
		return ""
	}
	return e.Problem
}

// writer is a server with a space whose remote is the origin.
type writer struct {
	t  testing.TB
	s  *Store
	id space.SpaceID
	o  *origin
}

// syncOnce does what a push queue does: it fetches, integrates and pushes, and starts again if
// the remote has moved meanwhile.
func (w *writer) syncOnce() {
	w.t.Helper()
	ctx := w.t.Context()
	for range 5 {
		if git(w.t, w.o.dir, "for-each-ref", "refs/heads/main") != "" {
			f, err := w.s.Fetch(ctx, w.id, w.o.endpoint(), "main", nil)
			if err != nil {
				w.t.Fatal(err)
			}
			integrate(w.t, w.s, w.id, f.Tip)
		}
		_, err := w.s.Push(ctx, w.id, w.o.endpoint(), "main", nil)
		if problemOf(err) == transport.Stale {
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
				w := &writer{t: t, s: s, id: newSpace(t, s, nil), o: o}
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
	if _, err := s.Push(t.Context(), id, o.endpoint(), "main", nil); problemOf(err) != transport.Stale {
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
