package reviews_test

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"satchel/gitstore"
	"satchel/gitstore/reviews"
	"satchel/internal/database/databasetest"
	"satchel/internal/space"
	"satchel/internal/testenv"
)

// merge joins a commit from elsewhere with head, as its maker's git does.
func (w *world) merge(side space.CommitID, files ...string) {
	w.t.Helper()
	w.elsewhere("Merge branch 'mine'\n", []space.CommitID{w.head(), side}, files...)
}

// pack puts what a commit brings where a fetch would.
func (w *world) pack(c space.CommitID) {
	w.t.Helper()
	cmd := testenv.Git(w.t, filepath.Join(w.dir, string(w.id)+".git"), "pack-objects", "--revs", "-q", "objects/pack/pack")
	cmd.Stdin = strings.NewReader(string(c) + "\n")
	if out, err := cmd.CombinedOutput(); err != nil {
		w.t.Fatal(err, string(out))
	}
}

// Attack: what an AI wrote is committed elsewhere on a branch that began before, so that
// among its ancestors nothing of it is found.
func TestAttackAnOlderBranchBringsWhatAnAIWrote(t *testing.T) {
	const draft, to = "knowledge/draft/SKILL.md", "skills/x/SKILL.md"
	for _, tc := range []history{
		{"attack: the page is there still", func(w *world) {
			start := w.head()
			w.write("bash", draft, text)
			w.merge(w.foreign("mine\n", []space.CommitID{start}, to, text), to, text)
		}, to},
		{"attack: with a look before it comes", func(w *world) {
			start := w.head()
			w.write("bash", draft, text)
			w.waiting()
			w.merge(w.foreign("mine\n", []space.CommitID{start}, to, text), to, text)
		}, to},
		{"attack: the page was deleted before", func(w *world) {
			start := w.head()
			w.write("bash", draft, text)
			w.write("bash", draft, "")
			w.restart()
			w.merge(w.foreign("mine\n", []space.CommitID{start}, to, text), to, text)
		}, to},
		{"attack: and a line was changed", func(w *world) {
			start := w.head()
			w.write("bash", draft, text)
			w.write("bash", draft, "")
			w.merge(w.foreign("mine\n", []space.CommitID{start}, to, text+"mine\n"), to, text+"mine\n")
		}, to},
		{"attack: the merge takes the page away", func(w *world) {
			start := w.head()
			w.write("bash", draft, text)
			w.merge(w.foreign("mine\n", []space.CommitID{start}, to, text+"mine\n"), to, text+"mine\n", draft, "")
		}, to},
		{"attack: the branch has no beginning", func(w *world) {
			w.write("bash", draft, text)
			w.merge(w.foreign("mine\n", nil, to, text), to, text)
		}, to},
		{"attack: the server merges it", func(w *world) {
			start := w.head()
			w.write("bash", draft, text)
			w.waiting()
			side := w.foreign("mine\n", []space.CommitID{start}, to, text)
			w.pack(side)
			in, err := w.git.Integrate(w.t.Context(), w.id, side, space.Meta{Tool: "sync", Time: w.clock})
			if err != nil || in.How == gitstore.FastForward {
				w.t.Fatal(in, err)
			}
		}, to},
		{"attack: it waits where people are asked", func(w *world) {
			start := w.head()
			w.write("bash", "skills/q/SKILL.md", text)
			w.merge(w.foreign("mine\n", []space.CommitID{start}, to, text), to, text)
		}, "skills/q/SKILL.md " + to},
		{"attack: and the clock elsewhere is slow", func(w *world) {
			start := w.head()
			w.write("bash", "skills/q/SKILL.md", text)
			now := w.clock
			w.clock = now.Add(-time.Hour)
			side := w.foreign("mine\n", []space.CommitID{start}, to, text)
			w.clock = now
			w.merge(side, to, text)
		}, "skills/q/SKILL.md " + to},
		{"not what a person wrote on an older branch", func(w *world) {
			start := w.head()
			w.write("bash", draft, text)
			w.merge(w.foreign("mine\n", []space.CommitID{start}, to, "mine\n"), to, "mine\n")
		}, ""},
		{"not what a person wrote in both kinds of places at once", func(w *world) {
			w.elsewhere("mine\n", nil, to, "mine\n", "knowledge/a.md", "mine\n", "knowledge/b.md", "mine\n")
		}, ""},
		{"not what an AI copied from a person later", func(w *world) {
			w.elsewhere("mine\n", nil, to, "mine\n")
			w.waiting()
			w.write("bash", "skills/q/SKILL.md", "mine\n")
			w.write("bash", draft, "mine\n")
		}, "skills/q/SKILL.md"},
	} {
		tc.run(t)
	}
}

// Attack: an AI takes away so many files of one name that the one which comes back is
// beyond what is remembered.
func TestAttackManyOfOneNameAreTakenAway(t *testing.T) {
	many := func(w *world, name string) {
		w.write("bash", "knowledge/draft/SKILL.md", text)
		w.elsewhere("x\n", nil, "knowledge/draft/SKILL.md", "")
		var put, gone []string
		for i := range 20 {
			p := fmt.Sprintf("knowledge/d%d/%s", i, name)
			put, gone = append(put, p, fmt.Sprintf("harmless %d\n", i)), append(gone, p, "")
		}
		w.commit("bash", put...)
		w.commit("bash", gone...)
	}
	for _, tc := range []history{
		{"attack: with a changed line", func(w *world) {
			many(w, "SKILL.md")
			w.elsewhere("x\n", nil, "skills/x/SKILL.md", text+"mine\n")
		}, "skills/x/SKILL.md"},
		{"not a new one of another name", func(w *world) {
			many(w, "other.md")
			w.elsewhere("x\n", nil, "skills/x/SKILL.md", "mine\n")
		}, ""},
	} {
		tc.run(t)
	}
}

// Attack: branches whose commits lie between each other, or one push after the other,
// have the history looked through again for each. Every commit is passed once.
func TestAttackAHistoryIsLookedThroughOnce(t *testing.T) {
	w := newWorld(t, databasetest.Open(t, databasetest.SQLite(t)))
	const n = 12
	w.begin(reviews.Options{Patience: time.Minute, Remembered: 200})
	for i := range n {
		w.write("bash", "knowledge/y.md", fmt.Sprint(i))
	}
	w.waiting()
	a, b := w.head(), w.head()
	for i := range n {
		a = w.foreign("a\n", []space.CommitID{a}, "skills/m/a.md", fmt.Sprintf("mine a %d\n", i))
		b = w.foreign("b\n", []space.CommitID{b}, "skills/m/b.md", fmt.Sprintf("mine b %d\n", i))
	}
	w.elsewhere("Merge\n", []space.CommitID{a, b}, "skills/m/b.md", fmt.Sprintf("mine b %d\n", n-1))
	if p := w.paths(); p != "" {
		t.Errorf("%q waits", p)
	}
	for i := range n {
		w.elsewhere("x\n", nil, "skills/m/a.md", fmt.Sprintf("mine again %d\n", i))
		if p := w.paths(); p != "" {
			t.Errorf("%q waits after push %d", p, i)
		}
	}
	if most := 4*n + 2; w.git.passed > most {
		t.Errorf("%d commits were looked through, of %d", w.git.passed, most)
	}
}

// Attack: a history that takes for ever to look through holds up the other spaces.
func TestAttackALongHistoryHoldsUpNoOtherSpace(t *testing.T) {
	w := newWorld(t, databasetest.Open(t, databasetest.SQLite(t)))
	w.begin(reviews.Options{Patience: time.Minute, Walkers: 1, Remembered: 1 << 40})
	other := space.NewSpaceID()
	if _, err := w.git.Create(t.Context(), other, gitstore.StartingTree(), space.Meta{Tool: "satchel"}); err != nil {
		t.Fatal(err)
	}
	w.elsewhere("x\n", nil, "skills/p/SKILL.md", "mine\n")
	done, end := make(chan error, 1), testenv.Context(t)
	w.git.past = func(_ space.SpaceID, visit func([]space.FileChange) bool) func([]space.FileChange) bool {
		go func() {
			_, behind, err := w.r.Waiting(t.Context(), other)
			if behind {
				err = fmt.Errorf("not looked through: %w", err)
			}
			done <- err
		}()
		first := true
		return func(files []space.FileChange) bool {
			for first {
				select {
				case err := <-done:
					if first = false; err != nil {
						t.Error(err)
					}
				case <-end.Done():
					t.Error("the other space waits")
					first = false
				default:
					if !visit(nil) {
						return false
					}
				}
			}
			return visit(files)
		}
	}
	if p := w.paths(); p != "" {
		t.Errorf("%q waits", p)
	}
}

// What was looked through is forgotten with the space, and with others where there are
// many.
func TestWhatIsKeptOfHistories(t *testing.T) {
	w := newWorld(t, databasetest.Open(t, databasetest.SQLite(t)))
	w.begin(reviews.Options{Patience: time.Minute, Remembered: 2000})
	first := w.id
	look := func(id space.SpaceID) int {
		w.id = id
		w.elsewhere("x\n", nil, "skills/m/SKILL.md", fmt.Sprint("mine ", w.clock))
		w.git.passed = 0
		if p := w.paths(); p != "" {
			t.Errorf("%q waits", p)
		}
		return w.git.passed
	}
	if n := look(first); n != 2 {
		t.Errorf("%d commits looked through", n)
	}
	if n := look(first); n != 1 {
		t.Errorf("%d commits looked through for one that is new", n)
	}
	for range 4 {
		id := space.NewSpaceID()
		if _, err := w.git.Create(t.Context(), id, space.ChangeSet{Changes: []space.Change{{Path: "a.md", Content: []byte("a\n")}}}, space.Meta{Tool: "satchel"}); err != nil {
			t.Fatal(err)
		}
		look(id)
	}
	if n := look(first); n != 4 {
		t.Errorf("%d commits looked through of the oldest", n)
	}
	if err := w.r.Forget(t.Context(), first); err != nil {
		t.Fatal(err)
	}
	if n := look(first); n != 5 {
		t.Errorf("%d commits looked through of one that was forgotten", n)
	}
}
