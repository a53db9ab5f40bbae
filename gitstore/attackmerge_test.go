package gitstore

import (
	"fmt"
	"testing"

	"satchel/internal/fault"
	"satchel/internal/space"
)

// TestAttackARemoteOfManyConflictsChangesNothing merges a rewritten history with the same
// names, which would create a copy of every file.
func TestAttackARemoteOfManyConflictsChangesNothing(t *testing.T) {
	for _, related := range []bool{true, false} {
		for n, want := range map[int]fault.Code{20: "", 21: fault.TooLarge} {
			o := newOrigin(t)
			base := o.commit("", "main", "touch base")
			script := fmt.Sprintf("for i in $(seq %d); do echo %%s $i > f$i; done", n)
			s := newStore(t, withTransport(t), func(op *Options) { op.Limits.Conflicts = 20 })
			id := newSpace(t, s, nil)
			if related {
				receive(t, s, id, o, "main")
			}
			mine := map[string]string{}
			for i := range n {
				mine[fmt.Sprintf("f%d", i+1)] = "ours"
			}
			before := commit(t, s, id, writes(mine)).ID
			tip := o.commit(string(base), "main", fmt.Sprintf(script, "theirs"))
			if _, err := s.Fetch(t.Context(), id, o.endpoint(), "main", nil); err != nil {
				t.Fatal(err)
			}
			got, err := s.Integrate(t.Context(), id, tip, space.Meta{Author: ada})
			if fault.CodeOf(err) != want || want == "" && len(got.Commit.Conflicts) != n {
				t.Errorf("%d, related %v: %d conflicts, %v", n, related, len(got.Commit.Conflicts), err)
			}
			if h, _ := s.Head(t.Context(), id); want != "" && h != before {
				t.Error("head moved")
			}
		}
	}
}

// TestAttackALargeMergeHoldsNoCommitUp checks that a large merge is not computed while commits
// wait, even if commits come in between.
func TestAttackALargeMergeHoldsNoCommitUp(t *testing.T) {
	o := newOrigin(t)
	base := o.commit("", "main", "echo 1 > a.md")
	var s *Store
	var id space.SpaceID
	n, waits := 0, false
	s = newStore(t, withTransport(t), func(op *Options) {
		op.probe = func(step string) {
			if step != "integration computed" || !waits {
				return
			}
			n++ // a waiting commit would never end
			commit(t, s, id, writes(map[string]string{fmt.Sprintf("during-%d.md", n): "x"}))
		}
	})
	id = newSpace(t, s, nil)
	receive(t, s, id, o, "main")
	commit(t, s, id, writes(map[string]string{"o.md": "o"}))
	tip := o.commit(string(base), "main", fmt.Sprintf("seq %d | xargs touch", heldPaths+1))
	if _, err := s.Fetch(t.Context(), id, o.endpoint(), "main", nil); err != nil {
		t.Fatal(err)
	}
	waits = true
	if _, err := s.Integrate(t.Context(), id, tip, space.Meta{Author: ada}); fault.CodeOf(err) != fault.Unavailable || n != manyTries {
		t.Errorf("%d tries: %v", n, err)
	}
	waits = false
	if got := integrate(t, s, id, tip); got.How != Merged {
		t.Errorf("%+v", got)
	}
}

// TestAttackADirectoryOfManyFilesIsIndexedOnce checks that a directory is not read from its
// start for each file of a change.
func TestAttackADirectoryOfManyFilesIsIndexedOnce(t *testing.T) {
	s := newStore(t)
	files := map[string]string{}
	for i := range manyRequests + 1 {
		files[fmt.Sprintf("d/f%d", i)] = "1"
	}
	id := newSpace(t, s, files)
	r, release, err := s.acquire(t.Context(), id)
	if err != nil {
		t.Fatal(err)
	}
	defer release()
	var cs space.ChangeSet
	for p := range files {
		cs.Changes = append(cs.Changes, space.Change{Path: p, Content: []byte("2"), Base: at(t, s, id, p)})
	}
	reqs, _, err := r.validate(t.Context(), cs)
	if err != nil {
		t.Fatal(err)
	}
	p, err := r.decide(t.Context(), r.head.Load(), reqs, space.RefuseStale)
	if err != nil || len(p.writes) != len(files) || len(p.names) != 2 {
		t.Errorf("%d writes, %d directories indexed, %v", len(p.writes), len(p.names), err)
	}
}
