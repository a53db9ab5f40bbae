package gitstore

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"satchel/internal/space"
)

// fileHistory is a space with one file whose history is made by chance.
type fileHistory struct {
	*testing.T
	s    *Store
	id   space.SpaceID
	said []string // what happened, for who looks at a failure
}

func newFileHistory(t *testing.T, s *Store, text string) *fileHistory {
	return &fileHistory{T: t, s: s, id: newSpace(t, s, map[string]string{"f": text})}
}

func (h *fileHistory) text() string {
	h.Helper()
	b, _, ok, err := h.s.Blob(h.Context(), h.id, "", "f")
	if err != nil {
		h.Fatal(err)
	}
	if !ok {
		return ""
	}
	text, err := h.s.ReadBlob(h.Context(), h.id, b)
	if err != nil {
		h.Fatal(err)
	}
	return string(text)
}

func (h *fileHistory) write(tool, text string) space.CommitID {
	h.Helper()
	x := space.Change{Path: "f", Content: []byte(text)}
	var err error
	if x.Base, x.BaseMode, _, err = h.s.Blob(h.Context(), h.id, "", "f"); err != nil {
		h.Fatal(err)
	}
	c, err := h.s.Commit(h.Context(), h.id, space.ChangeSet{Changes: []space.Change{x}}, space.Meta{Author: ada, Tool: tool})
	if err != nil || !c.Changed {
		h.Fatal(c, err)
	}
	h.said = append(h.said, fmt.Sprintf("%s %s: %q", tool, c.ID.Short(), text))
	return c.ID
}

// undo tells whether all was undone.
func (h *fileHistory) undo(ids ...space.CommitID) (c space.Commit, whole bool) {
	h.Helper()
	c, err := h.s.Revert(h.Context(), h.id, ids, space.Meta{Author: ada, Tool: "web-revert"})
	if err != nil {
		h.Fatal(err)
	}
	whole = len(c.Conflicts) == 0 && len(c.Refused) == 0
	h.said = append(h.said, fmt.Sprintf("undo %v, whole %v: %q", ids, whole, h.text()))
	return c, whole
}

func (h *fileHistory) fail(format string, a ...any) {
	h.Helper()
	h.Fatalf("%s\n%s", fmt.Sprintf(format, a...), strings.Join(h.said, "\n"))
}

// Attack: what was undone comes back with the undoing of something else. Where edits are
// in different lines, the file is after each undoing, in whatever order, what it would be
// without what is undone.
func TestAttackUndoingInAnyOrderEndsWithoutAll(t *testing.T) {
	const places = 14
	type edit struct {
		ai     bool
		places []int
		kind   int
		active bool
	}
	s := newStore(t)
	for seed := range uint64(25) {
		rnd := rand.New(rand.NewPCG(seed, 7))
		edits := map[space.CommitID]*edit{}
		render := func() string {
			by := map[int]string{}
			for id, e := range edits {
				for _, p := range e.places {
					if e.active {
						by[p] = fmt.Sprintf("%d %s %d", e.kind, id, p)
					}
				}
			}
			var b strings.Builder
			for p := range places {
				fmt.Fprintf(&b, "before %d\n", p)
				if e := by[p]; e == "" {
					fmt.Fprintf(&b, "line %d\n", p)
				} else if e[0] == '0' {
					fmt.Fprintf(&b, "EDIT %d\n", p)
				} else if e[0] == '1' {
					fmt.Fprintf(&b, "line %d\nNEW %d\n", p, p)
				}
				fmt.Fprintf(&b, "after %d\n", p)
			}
			return b.String()
		}
		h := newFileHistory(t, s, render())
		free := rnd.Perm(places)
		made := func(tool string) {
			n := min(len(free), 1+rnd.IntN(2))
			e := &edit{ai: tool == "bash", places: free[:n], kind: rnd.IntN(3), active: true}
			free = free[n:]
			edits["next"] = e
			text := render()
			delete(edits, "next")
			edits[h.write(tool, text)] = e
		}
		var order []space.CommitID // of the AI's
		undone := map[space.CommitID][]space.CommitID{}
		var undoings []space.CommitID
		check := func(want string, ids ...space.CommitID) space.CommitID {
			c, whole := h.undo(ids...)
			if got := h.text(); got != want || !whole {
				h.fail("seed %d: it became, whole %v, %q, want %q", seed, whole, got, want)
			}
			return c.ID
		}
		some := func(most int) (ids []space.CommitID) {
			for _, i := range rnd.Perm(len(order)) {
				if id := order[i]; edits[id].active && len(ids) < most {
					ids = append(ids, id)
				}
			}
			for _, id := range ids {
				edits[id].active = false
			}
			return ids
		}
		for range 12 {
			switch n := rnd.IntN(6); {
			case n < 2 && len(free) > 0:
				before := len(edits)
				made("bash")
				for id, e := range edits {
					if len(edits) > before && e.ai && !slices.Contains(order, id) {
						order = append(order, id)
					}
				}
			case n == 2 && len(free) > 0:
				made("web")
			case n == 3 && len(undoings) > 0: // the last undoing is undone
				last := undoings[len(undoings)-1]
				undoings = undoings[:len(undoings)-1]
				for _, id := range undone[last] {
					edits[id].active = true
				}
				check(render(), last)
			case n > 3:
				if ids := some(1 + rnd.IntN(3)); len(ids) > 0 {
					c := check(render(), ids...)
					undoings, undone[c] = append(undoings, c), ids
				}
			}
		}
		for ids := some(1); len(ids) > 0; ids = some(1) {
			check(render(), ids...)
		}
		for _, id := range order {
			for _, p := range edits[id].places {
				if text := h.text(); strings.Contains(text, fmt.Sprintf("EDIT %d\n", p)) || strings.Contains(text, fmt.Sprintf("NEW %d\n", p)) {
					h.fail("seed %d: the AI's edit of %d is left", seed, p)
				}
			}
		}
	}
}

// Attack: edits by chance, also of lines that touch. What becomes of a file has no line
// that neither it had nor an undone commit took, and lost none that the undone did not add;
// to undo the undoing is exact.
func TestAttackUndoingBringsNothingElseBack(t *testing.T) {
	s := newStore(t)
	whole, parts := 0, 0
	for seed := range uint64(30) {
		rnd := rand.New(rand.NewPCG(seed, 3))
		h := newFileHistory(t, s, "base 0\nbase 1\nbase 2\nbase 3\n")
		type change struct{ took, added []string }
		did := map[space.CommitID]change{}
		var ids []space.CommitID
		for n := range 14 {
			old := strings.Split(strings.TrimSuffix(h.text(), "\n"), "\n")
			if who := rnd.IntN(7); who < 4 {
				now := slices.Clone(old)
				i := rnd.IntN(len(now))
				line := fmt.Sprintf("%s %d", map[bool]string{true: "person", false: "AI"}[who == 0], n)
				switch rnd.IntN(4) {
				case 0, 1:
					now = slices.Insert(now, i, line)
				case 2:
					now[i] = line
				default:
					if len(now) > 1 {
						now = slices.Delete(now, i, i+1)
					} else {
						now[i] = line
					}
				}
				id := h.write(map[bool]string{true: "web", false: "bash"}[who == 0], strings.Join(now, "\n")+"\n")
				if who > 0 {
					var c change
					for _, l := range old {
						if !slices.Contains(now, l) {
							c.took = append(c.took, l)
						}
					}
					for _, l := range now {
						if !slices.Contains(old, l) {
							c.added = append(c.added, l)
						}
					}
					did[id] = c
					ids = append(ids, id)
				}
				continue
			}
			if len(ids) == 0 {
				continue
			}
			var them []space.CommitID
			var may change
			for _, i := range rnd.Perm(len(ids))[:1+rnd.IntN(min(3, len(ids)))] {
				them = append(them, ids[i])
				may.took = append(may.took, did[ids[i]].took...)
				may.added = append(may.added, did[ids[i]].added...)
			}
			was := h.text()
			c, all := h.undo(them...)
			if all {
				whole++
			} else {
				parts++
			}
			now := strings.Split(strings.TrimSuffix(h.text(), "\n"), "\n")
			for _, l := range now {
				if !slices.Contains(old, l) && !slices.Contains(may.took, l) {
					h.fail("seed %d: %q came", seed, l)
				}
			}
			for _, l := range old {
				if !slices.Contains(now, l) && (!slices.Contains(may.added, l) || strings.HasPrefix(l, "person")) {
					h.fail("seed %d: %q went", seed, l)
				}
			}
			if c.Changed && rnd.IntN(2) == 0 {
				if _, all := h.undo(c.ID); !all || h.text() != was {
					h.fail("seed %d: the undo of the undo is not exact", seed)
				}
			}
		}
	}
	if whole < parts {
		t.Errorf("%d were whole, and %d not", whole, parts)
	}
	t.Log(whole, parts)
}

// Attack: one change of many files that many later ones change again, so that what is
// remembered of each file's versions takes all memory.
func TestAttackUndoingRemembersFewVersions(t *testing.T) {
	version := func(n int) treeEntry {
		return treeEntry{mode: 0o100644, hash: hash{byte(n), byte(n >> 8)}}
	}
	for _, same := range []int{0, 50, 4990} {
		tr := trail{at: version(0)}
		now := version(100000)
		for n := 1; n <= 5000; n++ {
			d := treeChange{old: tr.at, new: version(n)}
			if n == same {
				d.new = now
			}
			tr.other(d, now)
		}
		wants := min(replaySteps, 5000-same)
		if cap(tr.run) > 2*replaySteps || len(tr.run) != wants || tr.run[wants-1] != version(5000) || tr.at != version(5000) {
			t.Errorf("%d versions, room for %d, the last %v", len(tr.run), cap(tr.run), tr.at)
		}
		if same == 0 && tr.was != version(0) || same > 0 && tr.was != now {
			t.Errorf("with the same at %d it begins at %v", same, tr.was)
		}
	}
}
