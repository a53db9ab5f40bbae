package gitstore

import (
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"satchel/internal/fault"
	"satchel/internal/space"
)

// TestQuotasAtTheirEdges checks that a change exactly at a limit passes, that one more does
// not, and that content above a lowered limit may shrink.
func TestQuotasAtTheirEdges(t *testing.T) {
	text := func(n int) string { return strings.Repeat("x", n) }
	for _, c := range []struct {
		name   string
		limits Limits
		start  map[string]string
		fits   map[string]string
		not    map[string]string
	}{
		{"one file", Limits{File: 100}, nil, map[string]string{"a": text(100)}, map[string]string{"a": text(101)}},
		{"one change", Limits{Change: 100}, nil, map[string]string{"a": text(60), "b": text(40)}, map[string]string{"a": text(60), "b": text(41)}},
		{"all files", Limits{Space: 100}, map[string]string{"s": text(30)}, map[string]string{"a": text(70)}, map[string]string{"a": text(71)}},
		{"how many files", Limits{Files: 3}, map[string]string{"s": ""}, map[string]string{"a": "", "b": ""}, map[string]string{"a": "", "b": "", "c": ""}},
		{"entries of one change", Limits{Entries: 2}, nil, map[string]string{"a": "", "b": ""}, map[string]string{"a": "", "b": "", "c": ""}},
	} {
		t.Run(c.name, func(t *testing.T) {
			for _, fits := range []bool{true, false} {
				s := newStore(t, func(o *Options) { o.Limits = c.limits })
				id := newSpace(t, s, c.start)
				head, _ := s.Head(t.Context(), id)
				files := c.fits
				if !fits {
					files = c.not
				}
				got, err := s.Commit(t.Context(), id, writes(files), space.Meta{Author: ada})
				refused := err
				if len(got.Rejected) > 0 {
					refused = got.Rejected[0].Err
				}
				now, _ := s.Head(t.Context(), id)
				if fits && (refused != nil || now == head) || !fits && (fault.CodeOf(refused) != fault.TooLarge || now != head) {
					t.Errorf("fits %v: %v, head moved %v", fits, refused, now != head)
				}
			}
		})
	}
}

// TestTheHistoryHasItsOwnLimit replaces one file until the packs are full. Writing then fails
// with an error that says what to do. Deletes and restores continue, and a higher limit helps.
func TestTheHistoryHasItsOwnLimit(t *testing.T) {
	r := rand.New(rand.NewPCG(8, 9))
	dir := t.TempDir()
	s := newStore(t, func(o *Options) { o.Dir = dir; o.Limits.Repository = 64 << 10 })
	id := newSpace(t, s, map[string]string{"a": "a", "b": "b"})
	replace := func(s *Store) error {
		_, err := s.Commit(t.Context(), id, space.ChangeSet{Changes: []space.Change{
			{Path: "a", Base: at(t, s, id, "a"), Content: []byte(noise(r, 5000))}}}, space.Meta{Author: ada})
		return err
	}
	n := 0
	var err error
	for err == nil && n < 30 {
		err = replace(s)
		n++
	}
	if fault.CodeOf(err) != fault.TooLarge || !strings.Contains(fault.PublicOf(err), "operator") || n < 8 || n > 14 {
		t.Fatalf("after %d: %v", n, err)
	}
	st, err := s.Stats(t.Context(), id)
	if err != nil || st.PackBytes > 64<<10 {
		t.Errorf("%+v %v", st, err)
	}
	if _, err := s.Commit(t.Context(), id, space.ChangeSet{Changes: []space.Change{{Path: "b", Op: space.Delete, Base: at(t, s, id, "b")}}}, space.Meta{Author: ada}); err != nil {
		t.Errorf("delete: %v", err)
	}
	if _, err := s.Restore(t.Context(), id, "a", named(t, s, id, "Start the space"), space.Meta{Author: ada}); err != nil {
		t.Errorf("restore: %v", err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	s = newStore(t, func(o *Options) { o.Dir = dir; o.Limits.Repository = 128 << 10 })
	if err := replace(s); err != nil {
		t.Errorf("with a higher limit: %v", err)
	}
	fsck(t, s, id)
}

// TestALoweredLimitLetsASpaceShrink checks that a space above its limit only accepts changes
// that make it smaller.
func TestALoweredLimitLetsASpaceShrink(t *testing.T) {
	dir := t.TempDir()
	s := newStore(t, func(o *Options) { o.Dir = dir })
	id := newSpace(t, s, map[string]string{"a": strings.Repeat("a", 100), "b": strings.Repeat("b", 100), "c": "c"})
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	s = newStore(t, func(o *Options) { o.Dir = dir; o.Limits.Space = 50; o.Limits.Files = 2 })
	if _, err := s.Commit(t.Context(), id, writes(map[string]string{"d": ""}), space.Meta{}); fault.CodeOf(err) != fault.TooLarge {
		t.Errorf("one more file: %v", err)
	}
	change := func(p, content string) error {
		_, err := s.Commit(t.Context(), id, space.ChangeSet{Changes: []space.Change{{Path: p, Base: at(t, s, id, p), Content: []byte(content)}}}, space.Meta{})
		return err
	}
	if err := change("a", strings.Repeat("a", 101)); fault.CodeOf(err) != fault.TooLarge {
		t.Errorf("larger: %v", err)
	}
	if err := change("a", "short"); err != nil {
		t.Errorf("smaller: %v", err)
	}
	if err := change("a", "other"); err != nil {
		t.Errorf("as large: %v", err)
	}
	if _, err := s.Commit(t.Context(), id, space.ChangeSet{Changes: []space.Change{{Path: "b", Op: space.Delete, Base: at(t, s, id, "b")}}}, space.Meta{}); err != nil {
		t.Errorf("delete: %v", err)
	}
}

// noise returns bytes that cannot be compressed.
func noise(r *rand.Rand, n int) string {
	b := make([]byte, n)
	for i := range b {
		b[i] = byte(r.Uint32())
	}
	return string(b)
}

// TestWhatTakesASpaceOverItsLimitIsRefusedAlone checks that the largest writes of a change are
// refused until the rest fits, if the change need not be complete.
func TestWhatTakesASpaceOverItsLimitIsRefusedAlone(t *testing.T) {
	text := func(n int) string { return strings.Repeat("x", n) }
	for _, c := range []struct {
		name    string
		limits  Limits
		files   map[string]string
		refused []string
	}{
		{"bytes", Limits{Space: 100}, map[string]string{"a": text(90), "b": text(80), "c": text(50), "old": text(40)}, []string{"a", "b"}},
		{"files", Limits{Files: 3}, map[string]string{"a": text(9), "b": text(8), "c": "", "old": text(20)}, []string{"a"}},
		{"history", Limits{Repository: 5000}, map[string]string{"a": text(6000), "b": "b", "old": "new"}, []string{"a"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := newStore(t, func(o *Options) { o.Limits = c.limits })
			id := newSpace(t, s, map[string]string{"old": text(10)})
			cs := writes(c.files)
			cs.Policy = space.KeepBoth
			for i := range cs.Changes {
				if cs.Changes[i].Path == "old" {
					cs.Changes[i].Base = at(t, s, id, "old")
				}
			}
			got := commit(t, s, id, cs)
			var refused []string
			for _, r := range got.Rejected {
				if fault.CodeOf(r.Err) != fault.TooLarge {
					t.Errorf("%s: %v", r.Path, r.Err)
				}
				refused = append(refused, r.Path)
			}
			if !slices.Equal(refused, c.refused) || len(got.Files) != len(c.files)-len(c.refused) {
				t.Errorf("refused are %q, committed %+v", refused, got.Files)
			}
			if has := tree(t, s, id); has["old"] != c.files["old"] {
				t.Errorf("old is %q", has["old"])
			}
			fsck(t, s, id)
		})
	}
}
