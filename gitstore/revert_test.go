package gitstore

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"satchel/internal/fault"
	"satchel/internal/space"
)

// change commits the new contents of files; "" deletes a file.
func change(t testing.TB, s *Store, id space.SpaceID, files map[string]string) space.CommitID {
	t.Helper()
	var cs space.ChangeSet
	for p, c := range files {
		x := space.Change{Path: p, Content: []byte(c)}
		if b, m, ok, err := s.Blob(t.Context(), id, "", space.Path(p)); err != nil {
			t.Fatal(err)
		} else if ok {
			x.Base, x.BaseMode = b, m
		}
		if c == "" {
			x.Op = space.Delete
		}
		cs.Changes = append(cs.Changes, x)
	}
	c := commit(t, s, id, cs)
	if !c.Changed || len(c.Rejected) > 0 {
		t.Fatalf("%+v", c)
	}
	return c.ID
}

func TestRevert(t *testing.T) {
	lines := func(l ...string) string { return strings.Join(l, "\n") }
	start := map[string]string{"a": "1", "b": "1", "text": lines("one", "two", "three", "four", "five")}
	for _, tc := range []struct {
		name    string
		commits []map[string]string
		undo    []int // indexes of commits
		want    map[string]string
		kept    string // what is reported as not undone
		same    bool   // nothing changes
	}{
		{name: "the last change", commits: []map[string]string{{"a": "2", "new": "n", "b": ""}}, undo: []int{0}, want: start},
		{name: "an older change, with what came since elsewhere", commits: []map[string]string{{"a": "2"}, {"b": "2"}}, undo: []int{0},
			want: map[string]string{"a": "1", "b": "2", "text": start["text"]}},
		{name: "a file that was changed since stays", commits: []map[string]string{{"a": "2", "b": "2"}, {"a": "3"}}, undo: []int{0},
			want: map[string]string{"a": "3", "b": "1", "text": start["text"]}, kept: "[{a }]"},
		{name: "lines are taken out of a file that was changed elsewhere since",
			commits: []map[string]string{{"text": lines("ONE", "two", "three", "four", "five")}, {"text": lines("ONE", "two", "three", "four", "FIVE", "six")}}, undo: []int{0},
			want: map[string]string{"a": "1", "b": "1", "text": lines("one", "two", "three", "four", "FIVE", "six")}},
		{name: "lines that were changed again stay",
			commits: []map[string]string{{"text": lines("ONE", "two", "three", "four", "five")}, {"text": lines("One!", "two", "three", "four", "five")}}, undo: []int{0},
			want: map[string]string{"a": "1", "b": "1", "text": lines("One!", "two", "three", "four", "five")}, kept: "[{text }]", same: true},
		{name: "several of one file, given in any order", commits: []map[string]string{{"a": "2"}, {"a": "3"}, {"b": "2"}, {"a": "4"}}, undo: []int{3, 0, 1},
			want: map[string]string{"a": "1", "b": "2", "text": start["text"]}},
		{name: "several with somebody else's in between", commits: []map[string]string{{"a": "2"}, {"a": "3"}, {"a": "4"}}, undo: []int{0, 2},
			want: map[string]string{"a": "4", "b": "1", "text": start["text"]}, kept: "[{a }]", same: true},
		{name: "an undoing", commits: []map[string]string{{"a": "2"}, {"a": "1"}}, undo: []int{1}, want: map[string]string{"a": "2", "b": "1", "text": start["text"]}},
		{name: "lines that somebody took out since, in a file that was changed elsewhere",
			commits: []map[string]string{{"text": lines("evil", "one", "two", "three", "four", "five")}, {"text": lines("one", "two", "three", "four", "FIVE")}}, undo: []int{0},
			want: map[string]string{"a": "1", "b": "1", "text": lines("one", "two", "three", "four", "FIVE")}, same: true},
		{name: "the same commit twice", commits: []map[string]string{{"a": "2"}}, undo: []int{0, 0}, want: start},
		{name: "what was undone already", commits: []map[string]string{{"a": "2"}, {"a": "1"}}, undo: []int{0}, want: start, same: true},
		{name: "a file of which something else became a directory", commits: []map[string]string{{"a": ""}, {"a/x": "x"}}, undo: []int{0},
			want: map[string]string{"a/x": "x", "b": "1", "text": start["text"]}, kept: "[{a }]", same: true},
		{name: "both undone, the directory makes way", commits: []map[string]string{{"a": ""}, {"a/x": "x"}}, undo: []int{0, 1}, want: start},
		{name: "a new file that was changed since stays", commits: []map[string]string{{"new": "1"}, {"new": "2"}}, undo: []int{0},
			want: map[string]string{"a": "1", "b": "1", "text": start["text"], "new": "2"}, kept: "[{new }]", same: true},
	} {
		t.Run(tc.name, func(t *testing.T) {
			s := newStore(t)
			id := newSpace(t, s, start)
			var made, undo []space.CommitID
			for _, files := range tc.commits {
				made = append(made, change(t, s, id, files))
			}
			for _, i := range tc.undo {
				undo = append(undo, made[i])
			}
			before, _ := s.Head(t.Context(), id)
			c, err := s.Revert(t.Context(), id, undo, space.Meta{Author: ada, Tool: "web", Client: "browser"})
			if err != nil {
				t.Fatal(err)
			}
			if got := tree(t, s, id); fmt.Sprint(got) != fmt.Sprint(tc.want) {
				t.Errorf("the space has %v, want %v", got, tc.want)
			}
			kept := ""
			for _, k := range c.Conflicts {
				kept += fmt.Sprintf("[{%s %s}]", k.Path, k.Kept)
			}
			if kept != tc.kept || len(c.Rejected) > 0 {
				t.Errorf("told as not undone: %s, want %s; refused %v", kept, tc.kept, c.Rejected)
			}
			if c.Changed == tc.same {
				t.Errorf("Changed is %v", c.Changed)
			}
			if ok, err := s.Contains(t.Context(), id, "", before); err != nil || !ok {
				t.Errorf("the old head has left the history: %v", err)
			}
			if head, _ := s.Head(t.Context(), id); !tc.same && (head != c.ID || c.Parent != before || c.Tool != "web" || !strings.HasPrefix(c.Message, "Undo ")) {
				t.Errorf("%+v", c)
			}
			fsck(t, s, id)
		})
	}
}

// Attack: the ids do not name commits of this history.
func TestRevertTakesOnlyCommitsOfTheHistory(t *testing.T) {
	s := newStore(t)
	id, other := newSpace(t, s, map[string]string{"a": "1"}), newSpace(t, s, map[string]string{"b": "1"})
	mine := change(t, s, id, map[string]string{"a": "2"})
	foreign := change(t, s, other, map[string]string{"b": "2"})
	blob := space.CommitID(at(t, s, id, "a"))
	for name, tc := range map[string]struct {
		commits []space.CommitID
		code    fault.Code
	}{
		"none":                    {nil, fault.Invalid},
		"too many":                {make([]space.CommitID, maxReverted+1), fault.Invalid},
		"made up":                 {[]space.CommitID{"0123456789012345678901234567890123456789"}, fault.NotFound},
		"another space's":         {[]space.CommitID{foreign}, fault.NotFound},
		"another's beside one":    {[]space.CommitID{mine, foreign}, fault.NotFound},
		"a blob":                  {[]space.CommitID{blob}, fault.NotFound},
		"no id":                   {[]space.CommitID{"../../etc/passwd"}, fault.Invalid},
		"an option of git":        {[]space.CommitID{"--upload-pack=x"}, fault.Invalid},
		"a branch":                {[]space.CommitID{"refs/heads/main"}, fault.Invalid},
		"more than one may begin": {[]space.CommitID{"0"}, fault.Invalid},
	} {
		if _, err := s.Revert(t.Context(), id, tc.commits, space.Meta{Author: ada}); fault.CodeOf(err) != tc.code {
			t.Errorf("%s: %v", name, err)
		}
	}
	if got := tree(t, s, id); fmt.Sprint(got) != "map[a:2]" {
		t.Error(got)
	}
}

// The patch of a file is the same whether the whole trees or only the file is compared.
func TestPatchOfOneFile(t *testing.T) {
	s := newStore(t)
	id := newSpace(t, s, map[string]string{"d/a": "1", "d/b": "1", "dir/x": "1", "gone": "1"})
	start, _ := s.Head(t.Context(), id)
	change(t, s, id, map[string]string{"d/a": "2", "dir/x": ""})
	change(t, s, id, map[string]string{"dir": "a file", "gone": "", "new": "n"})
	whole, err := s.Patch(t.Context(), id, start, "", "")
	if err != nil {
		t.Fatal(err)
	}
	for path, want := range map[space.Path]string{"d/a": "-1\n", "d/b": "", "dir": "+a file", "gone": "deleted file mode", "new": "new file mode", "dir/x": "deleted file mode", "none": ""} {
		got, err := s.Patch(t.Context(), id, start, "", path)
		if err != nil || !strings.Contains(got, want) || want == "" && got != "" || !strings.Contains(whole, got) && path != "dir" {
			t.Errorf("%s: %q %v", path, got, err)
		}
		if all, err := s.Patch(t.Context(), id, "", start, path); err != nil || strings.Contains(all, "deleted") {
			t.Errorf("%s from nothing: %q %v", path, all, err)
		}
	}
}

func TestLogOfAnyVersionOfAClient(t *testing.T) {
	s := newStore(t)
	id := newSpace(t, s, map[string]string{"a": "0"})
	for i, client := range []string{"code/1.0", "code/2.0", "coder/1.0", "code", "x/code/1.0"} {
		if _, err := s.Commit(t.Context(), id, writes(map[string]string{fmt.Sprint(i): "x"}), space.Meta{Author: ada, Client: client}); err != nil {
			t.Fatal(err)
		}
	}
	for client, want := range map[string]int{"code": 3, "code/1.0": 1, "coder": 1, "x": 1, "x/code": 1, "": 6, "c": 0} {
		list, err := s.Log(t.Context(), id, space.LogQuery{Client: client})
		if err != nil || len(list) != want {
			t.Errorf("%q: %d, want %d: %v", client, len(list), want, err)
		}
	}
}

func TestLogOfATime(t *testing.T) {
	s := newStore(t)
	id := newSpace(t, s, map[string]string{"a": "0"})
	at := func(hour int) time.Time { return time.Date(2030, 1, 1, hour, 0, 0, 0, time.UTC) }
	var ids []space.CommitID
	for _, hour := range []int{1, 5, 3, 7} { // one clock is slow
		c, err := s.Commit(t.Context(), id, writes(map[string]string{fmt.Sprint(hour): "x"}), space.Meta{Author: ada, Time: at(hour)})
		if err != nil {
			t.Fatal(err)
		}
		ids = append(ids, c.ID)
	}
	for _, tc := range []struct {
		name  string
		o     space.LogQuery
		wants []int // indexes of ids
	}{
		{"since, with a late clock between", space.LogQuery{Since: at(5)}, []int{3, 1}},
		{"until", space.LogQuery{Since: at(1), Until: at(5)}, []int{2, 0}},
		{"both ends", space.LogQuery{Since: at(3), Until: at(7)}, []int{2, 1}},
		{"after one", space.LogQuery{Since: at(5), After: ids[3]}, []int{1}},
		{"none", space.LogQuery{Since: at(8)}, nil},
	} {
		list, err := s.Log(t.Context(), id, tc.o)
		if err != nil {
			t.Fatal(err)
		}
		var got, want []space.CommitID
		for _, c := range list {
			got = append(got, c.ID)
		}
		for _, i := range tc.wants {
			want = append(want, ids[i])
		}
		if fmt.Sprint(got) != fmt.Sprint(want) {
			t.Errorf("%s: %v, want %v", tc.name, got, want)
		}
	}
}
