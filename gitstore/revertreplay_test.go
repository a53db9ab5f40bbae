package gitstore

import (
	"fmt"
	"strconv"
	"strings"
	"testing"

	"satchel/internal/space"
)

// Attack: an AI's changes are undone, which a person had undone before; and what the
// person decided and wrote since goes with them.
func TestAttackRevertTakesNobodysLaterWork(t *testing.T) {
	const ai, person, undo = "bash", "web", "web-revert"
	type made struct {
		tool     string
		file, is string // "" deletes it
	}
	lines := func(l ...string) string { return strings.Join(l, "\n") + "\n" }
	full, less := lines("a", "b", "secret", "c", "d", "e", "f"), lines("a", "b", "c", "d", "e", "f")
	for _, tc := range []struct {
		name string
		made []made
		them []int // that are undone, of what was made
		want string
		kept bool
		same bool
	}{
		{"a file is deleted by a person, who makes one with the same text",
			[]made{{ai, "f", "list\n"}, {person, "f", ""}, {person, "f", "list\n"}}, []int{0}, "list\n", true, true},
		{"a line that an AI took is brought back, and then deleted by a person",
			[]made{{person, "f", full}, {ai, "f", less}, {undo, "1", full}, {person, "f", less}}, []int{1}, less, true, true},
		{"the same, beside other changes of the person",
			[]made{{person, "f", full}, {ai, "f", less}, {person, "f", less + "g\n"}, {undo, "1", full + "g\n"}, {person, "f", less + "g\n"}}, []int{1}, less + "g\n", false, true},
		{"an edit is undone and then made by a person",
			[]made{{person, "f", "one\n"}, {ai, "f", "two\n"}, {undo, "1", "one\n"}, {person, "f", "two\n"}}, []int{1}, "two\n", true, true},
		{"two changes, of which a person made the second by hand",
			[]made{{ai, "f", "one\n"}, {ai, "f", "two\n"}, {person, "f", ""}, {person, "f", "two\n"}}, []int{0, 1}, "two\n", true, true},
		{"an undoing that was undone is undone again",
			[]made{{person, "f", "one\n"}, {ai, "f", "two\n"}, {undo, "1", "one\n"}, {undo, "2", "two\n"}}, []int{1}, "one\n", false, false},
		{"an undoing that was undone twice",
			[]made{{person, "f", "one\n"}, {ai, "f", "two\n"}, {undo, "1", "one\n"}, {undo, "2", "two\n"}, {undo, "3", "one\n"}}, []int{1}, "one\n", false, true},
		{"what an AI made twice, and a person took back between, is undone where both are",
			[]made{{person, "f", "one\n"}, {ai, "f", "two\n"}, {person, "f", "one\n"}, {ai, "f", "two\n"}}, []int{1, 3}, "one\n", false, false},
		{"the newer of many were undone before, which the rest is part of",
			[]made{{ai, "f", "1\n"}, {ai, "f", "1\n2\n"}, {ai, "f", "1\n"}, {ai, "f", "1\n3\n"}, {undo, "3", "1\n"}, {undo, "2", "1\n2\n"}, {undo, "1", "1\n"}}, []int{0}, "", false, false},
		{"what an AI made and unmade is nothing",
			[]made{{person, "f", "one\n"}, {ai, "f", "two\n"}, {ai, "f", "one\n"}}, []int{1, 2}, "one\n", false, true},
		{"a person's lines in between stay",
			[]made{{person, "f", full}, {ai, "f", "evil\n" + full}, {person, "f", "evil\n" + full + "mine\n"}, {ai, "f", "evil\n" + full + "mine\nevil too\n"}}, []int{1, 3}, full + "mine\n", false, false},
		{"what was undone before, where another's line touches what is undone",
			[]made{{person, "f", "1\n2\n3\n4\n"}, {ai, "f", "1\n2\nD\n4\n"}, {ai, "f", "1\n2\nD\nC\n"}, {person, "f", "1\nmine\nD\nC\n"}, {undo, "2", "1\nmine\nD\n4\n"}}, []int{1}, "1\nmine\nD\n4\n", true, true},
		{"a file of which a part is not clear stays as it is",
			[]made{{person, "f", full}, {ai, "f", "evil\n" + full}, {ai, "f", "evil\n" + full[:len(full)-2] + "F\n"}, {person, "f", "evil\n" + full[:len(full)-2] + "F!\n"}}, []int{1, 2}, "evil\n" + full[:len(full)-2] + "F!\n", true, true},
	} {
		t.Run(tc.name, func(t *testing.T) {
			s := newStore(t)
			id := newSpace(t, s, map[string]string{"other": "1"})
			var ids []space.CommitID
			for _, m := range tc.made {
				if m.tool == undo {
					i, err := strconv.Atoi(m.file)
					if err != nil {
						t.Fatal(err)
					}
					c, err := s.Revert(t.Context(), id, []space.CommitID{ids[i]}, space.Meta{Author: ada, Tool: undo})
					if got := tree(t, s, id)["f"]; err != nil || got != strings.TrimSuffix(m.is, "\n") {
						t.Fatalf("the undoing made %q: %v", got, err)
					}
					ids = append(ids, c.ID)
					continue
				}
				x := space.Change{Path: m.file, Content: []byte(m.is)}
				if b, mode, ok, err := s.Blob(t.Context(), id, "", space.Path(m.file)); err != nil {
					t.Fatal(err)
				} else if ok {
					x.Base, x.BaseMode = b, mode
				}
				if m.is == "" {
					x.Op = space.Delete
				}
				c, err := s.Commit(t.Context(), id, space.ChangeSet{Changes: []space.Change{x}}, space.Meta{Author: ada, Tool: m.tool})
				if err != nil || !c.Changed {
					t.Fatal(c, err)
				}
				ids = append(ids, c.ID)
			}
			var them []space.CommitID
			for _, i := range tc.them {
				them = append(them, ids[i])
			}
			c, err := s.Revert(t.Context(), id, them, space.Meta{Author: ada, Tool: undo})
			if err != nil {
				t.Fatal(err)
			}
			if got := tree(t, s, id); got["f"] != strings.TrimSuffix(tc.want, "\n") {
				t.Errorf("it became %q, want %q", got["f"], tc.want)
			}
			if (len(c.Conflicts) > 0) != tc.kept || c.Changed == tc.same {
				t.Errorf("Changed %v, Conflicts %v", c.Changed, c.Conflicts)
			}
			fsck(t, s, id)
		})
	}
}

// Many changes of a long file that another changed since are undone as one.
func TestRevertMergesOncePerChangeOfOthers(t *testing.T) {
	merges := 0
	s := newStore(t, func(o *Options) {
		o.probe = func(step string) {
			if step == "revert: lines merged" {
				merges++
			}
		}
	})
	var text []string
	for i := range 3000 {
		text = append(text, fmt.Sprint("line ", i))
	}
	id := newSpace(t, s, map[string]string{"f": strings.Join(text, "\n")})
	var undo []space.CommitID
	for i := range 100 {
		text[i*20+5] += " AI"
		undo = append(undo, change(t, s, id, map[string]string{"f": strings.Join(text, "\n")}))
	}
	text[2999] = "mine"
	change(t, s, id, map[string]string{"f": strings.Join(text, "\n")})
	r, release, err := s.acquire(t.Context(), id)
	if err != nil {
		t.Fatal(err)
	}
	defer release()
	v := &reverting{r: r, head: r.head.Load(), now: map[string]undone{}, left: map[string][]span{}, kept: map[string]bool{}}
	if _, _, err := v.work(t.Context(), undo, "web-revert"); err != nil {
		t.Fatal(err)
	}
	if got := string(v.now["f"].data); strings.Contains(got, "AI") || !strings.HasSuffix(got, "mine") || merges != 1 {
		t.Errorf("%d merges: %d lines are of the AI", merges, strings.Count(got, "AI"))
	}
}
