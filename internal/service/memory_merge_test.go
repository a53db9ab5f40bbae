package service_test

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"satchel/gitstore/remotetest"
	"satchel/internal/facts"
	"satchel/internal/service"
	"satchel/internal/space"
)

// factEdit is a change of a fact that either side can make: a statement, a removal, or an edit
// of the file by hand.
type factEdit struct {
	what  string
	value string
	sure  float64
}

var factEdits = []string{"say", "say until a day", "say again", "say again until a day", "infer", "forget", "edit the value", "write a note", "reorder"}

// statement returns what the edit says about a fact, of which doc is the file. ok is false if
// the edit is not a statement.
func (e factEdit) statement(key string, doc []byte) (st facts.Statement, ok bool) {
	st = facts.Statement{Type: "preference", Key: key, Value: e.value, Explicit: e.what != "infer"}
	if strings.HasPrefix(e.what, "say again") && doc != nil {
		st.Value = facts.Whole(doc)
	}
	if strings.HasSuffix(e.what, "until a day") {
		st.Expires = "2100-01-31"
	}
	if e.what == "infer" {
		st.Confidence = &e.sure
	}
	return st, e.what == "infer" || strings.HasPrefix(e.what, "say")
}

// at returns the file of a fact after the edit. The result is nil if there is no file.
func (e factEdit) at(doc []byte, now time.Time) []byte {
	if e.what == "forget" {
		return nil
	}
	st, ok := e.statement("", doc)
	if !ok {
		return byHand(e, doc)
	}
	out, _ := facts.Merge(doc, st, facts.Origin{Client: "laptop", Tool: "remember"}, now)
	return out
}

// byHand returns a file as a person edits it.
func byHand(e factEdit, doc []byte) []byte {
	if doc == nil {
		return nil
	}
	lines := slices.Collect(strings.Lines(string(doc)))
	end := slices.Index(lines[1:], "---\n") + 1
	switch e.what {
	case "edit the value":
		for i, l := range lines[:end] {
			if strings.HasPrefix(l, "value: ") {
				lines[i] = "value: " + e.value + "\n"
			}
		}
	case "write a note":
		lines = append(lines, e.value+" is a note.\n")
	case "reorder":
		lines = slices.Concat(lines[:1], lines[2:end], lines[1:2], lines[end:]) // the first field becomes the last
	}
	return []byte(strings.Join(lines, ""))
}

// factCase is one fact, with what each side does to it between two syncs.
type factCase struct {
	key        string
	base       []byte // nil if there is no fact at first
	one, other []factEdit
}

func (c factCase) path() string { return facts.Path("preference", c.key) }

// factCases returns random cases. Each statement has a value of its own.
func factCases(r *rand.Rand, n int) []factCase {
	said := 0
	edit := func() factEdit {
		said++
		return factEdit{factEdits[r.IntN(len(factEdits))], fmt.Sprintf("statement %d", said), float64(r.IntN(11)) / 10}
	}
	all := make([]factCase, n)
	for i := range all {
		c := factCase{key: fmt.Sprint("fact-", i)}
		for range r.IntN(4) {
			c.base = edit().at(c.base, time.Now().AddDate(0, 0, -r.IntN(2)))
		}
		for range r.IntN(3) {
			c.one = append(c.one, edit())
		}
		for range r.IntN(3) {
			c.other = append(c.other, edit())
		}
		all[i] = c
	}
	return all
}

// here applies an edit to the space: a statement with the operations of memory, and an edit by
// hand as a commit.
func (w *remoteWorld) here(c factCase, e factEdit) {
	w.t.Helper()
	doc := []byte(contentOf(w.t, w.World, space.Path(c.path())))
	if len(doc) == 0 {
		doc = nil
	}
	if st, ok := e.statement(c.key, doc); ok {
		remember(w.t, w.World, memoryClient(w.World, "laptop"), st)
		return
	}
	if doc == nil {
		return
	}
	if e.what == "forget" {
		if _, err := w.Forget(w.t.Context(), memoryClient(w.World, "laptop"), service.ForgetInput{Space: service.SpaceRef{ID: w.Space}, Keys: []string{"preference/" + c.key}}); err != nil {
			w.t.Fatal(err)
		}
		return
	}
	was, err := w.Git.Lookup(w.t.Context(), w.Space, w.head(), space.Path(c.path()))
	if err != nil {
		w.t.Fatal(err)
	}
	change := space.Change{Path: c.path(), Content: byHand(e, doc), Mode: was.Mode, Base: was.Blob, BaseMode: was.Mode}
	if _, err := w.Git.Commit(w.t.Context(), w.Space, space.ChangeSet{Changes: []space.Change{change}}, space.Meta{}); err != nil {
		w.t.Fatal(err)
	}
}

// version is what a side says about one fact.
type version struct {
	value, expires string
	stated         bool
}

func versionOf(doc []byte) version {
	f := facts.Read(doc)
	return version{f.Value, f.Expires, f.Stated()}
}

// mergeFacts makes a space and a remote with the same facts, changes them on both sides, and
// syncs. It checks the properties of every fact, and returns the versions of each that are
// left, the one in the fact's own file first.
func mergeFacts(t *testing.T, cases []factCase, swapped bool) map[string][]version {
	w := newRemoteWorld(t)
	files := map[string]string{"note.md": "a note\n"}
	for _, c := range cases {
		if c.base != nil {
			files[c.path()] = string(c.base)
		}
	}
	w.Write(files)
	if st, err := w.set(nil); err != nil || st.State != space.RemotePushed {
		t.Fatalf("%+v, %v", st, err)
	}
	ours, theirs := map[string][]byte{}, map[string][]byte{}
	pushed := map[string]string{"theirs.md": "so that both sides changed\n"}
	for _, c := range cases {
		here, there := c.one, c.other
		if swapped {
			here, there = there, here
		}
		for _, e := range here {
			w.here(c, e)
		}
		if doc := contentOf(t, w.World, space.Path(c.path())); doc != "" {
			ours[c.key] = []byte(doc)
		}
		doc := c.base
		for _, e := range there {
			doc = e.at(doc, time.Now())
		}
		if theirs[c.key] = doc; string(doc) != string(c.base) {
			pushed[c.path()] = string(doc)
			if doc == nil {
				pushed[c.path()] = remotetest.Gone
			}
		}
	}
	w.Write(map[string]string{"ours.md": "so that both sides changed\n"})
	w.server.Push("notes", "main", pushed)
	if st := w.sync(); st.State != space.RemotePushed || string(st.Head) != w.server.Head("notes", "main") {
		t.Fatalf("%+v", st)
	}

	// A second sync changes nothing.
	merged := w.head()
	if w.sync(); w.head() != merged || w.server.Head("notes", "main") != string(merged) {
		t.Error("a second sync made a commit")
	}
	log, err := w.Git.Log(t.Context(), w.Space, space.LogQuery{Limit: 1})
	if err != nil {
		t.Fatal(err)
	}
	entries, err := w.Git.Files(t.Context(), w.Space, merged, facts.Dir)
	if err != nil {
		t.Fatal(err)
	}
	left := map[string][]version{}
	for _, c := range cases {
		base, a, b := c.base, ours[c.key], theirs[c.key]
		fail := func(format string, args ...any) {
			t.Helper()
			t.Errorf("%s: "+format+"\nbase:\n%s\nhere, %v:\n%s\nthere, %v:\n%s\nmerged:\n%s", slices.Concat([]any{c.key}, args,
				[]any{base, c.one, a, c.other, b, contentOf(t, w.World, space.Path(c.path()))})...)
		}
		var found []version
		if doc := contentOf(t, w.World, space.Path(c.path())); doc != "" {
			found = append(found, versionOf([]byte(doc)))
		}
		own := len(found)
		for _, e := range entries {
			if !space.IsConflictCopy(e.Path) || !strings.HasPrefix(string(e.Path), strings.TrimSuffix(c.path(), ".md")+space.ConflictMark) {
				continue
			}
			found = append(found, versionOf([]byte(contentOf(t, w.World, e.Path))))
			if !strings.Contains(log[0].Message, string(e.Path)) {
				fail("the merge does not name the copy %s", e.Path)
			}
		}
		left[c.key] = found
		changedHere, changedThere := string(a) != string(base), string(b) != string(base)
		for _, side := range []struct {
			name    string
			doc     []byte
			changed bool
			other   bool // the other side changed
		}{{"the space", a, changedHere, changedThere}, {"the remote", b, changedThere, changedHere}} {
			if side.doc == nil || !side.changed {
				continue
			}
			says := versionOf(side.doc)
			// A side that changed only the note or the order says what the base says.
			if base != nil && says == versionOf(base) && side.other {
				continue
			}
			if !slices.Contains(found, says) {
				fail("%s says %+v, which is lost", side.name, says)
			}
		}
		if a != nil && b != nil && changedHere && changedThere {
			va, vb := versionOf(a), versionOf(b)
			if own == 0 || found[0] != va && found[0] != vb {
				fail("the fact is %+v, which neither side says", found)
			} else if said := va; va.stated != vb.stated && !found[0].stated {
				if vb.stated {
					said = vb
				}
				if base != nil && said == versionOf(base) {
					continue // it said nothing new, and the other side forgot it
				}
				fail("an inference took the place of what the user said")
			}
		}
		if own == 0 && len(found) > 0 {
			fail("the fact is only in copies")
		}
	}
	return left
}

// Properties of facts that a space and its remote change at once, for random edits of both
// sides, in both roles: no version is lost or mixed with another, an inference never takes the
// place of what the user said, a second sync changes nothing, and the roles only decide which
// of two equal versions is in the fact's own file.
func TestFactsSurviveTheMergeWithARemote(t *testing.T) {
	for seed := range uint64(12) {
		t.Run(fmt.Sprint("seed=", seed), func(t *testing.T) {
			cases := factCases(rand.New(rand.NewPCG(seed, 1)), 60)
			one, other := mergeFacts(t, cases, false), mergeFacts(t, cases, true)
			compare := func(x, y version) int { return strings.Compare(fmt.Sprint(x), fmt.Sprint(y)) }
			for _, key := range slices.Sorted(maps.Keys(one)) {
				a, b := one[key], other[key]
				if !slices.Equal(slices.SortedFunc(slices.Values(a), compare), slices.SortedFunc(slices.Values(b), compare)) {
					t.Errorf("%s: %+v in one order, and %+v in the other", key, a, b)
				} else if len(a) > 0 && a[0].stated != b[0].stated {
					t.Errorf("%s: the fact is %+v in one order, and %+v in the other", key, a[0], b[0])
				}
			}
		})
	}
}
