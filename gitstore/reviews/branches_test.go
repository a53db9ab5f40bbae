package reviews_test

import (
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"satchel/gitstore"
	"satchel/internal/database/databasetest"
	"satchel/internal/space"
	"satchel/internal/testenv"
)

// integrate merges a commit from elsewhere, as the server does.
func (w *world) integrate(c space.CommitID) {
	w.t.Helper()
	w.clock = w.clock.Add(time.Minute)
	cmd := testenv.Git(w.t, filepath.Join(w.dir, string(w.id)+".git"), "pack-objects", "--revs", "-q", "objects/pack/pack")
	cmd.Stdin = strings.NewReader(string(c) + "\n")
	if out, err := cmd.CombinedOutput(); err != nil {
		w.t.Fatal(err, string(out))
	}
	in, err := w.git.Integrate(w.t.Context(), w.id, c, space.Meta{Tool: "sync", Time: w.clock})
	if err != nil || in.How != gitstore.Merged {
		w.t.Fatal(in, err)
	}
}

// A merged file waits if it contains an AI's text, but not if people wrote both sides,
// regardless of who merges.
func TestMerges(t *testing.T) {
	const page = "1\n2\n3\n4\n5\n"
	changed := func(old, now string) string { return strings.Replace(page, old, now, 1) }
	both := strings.NewReplacer("1", "one", "5", "five").Replace(page)
	for _, who := range []string{"web", "bash"} {
		want := ""
		if who == "bash" {
			want = skill
		}
		for name, merge := range map[string]func(w *world, side space.CommitID){
			"the server": func(w *world, side space.CommitID) { w.integrate(side) },
			"a person pushes": func(w *world, side space.CommitID) {
				w.elsewhere("Merge\n", []space.CommitID{w.head(), side}, skill, both)
			},
		} {
			history{who + " changes a file that a person changes elsewhere; " + name + " a merge", func(w *world) {
				w.write("web", skill, page)
				start := w.head()
				w.write(who, skill, changed("1", "one"))
				w.waiting()
				w.restart()
				merge(w, w.foreign("x\n", []space.CommitID{start}, skill, changed("5", "five")))
				if s := w.read(skill); s != both {
					w.t.Fatalf("merged to %q", s)
				}
			}, want}.run(t)
		}
	}
	for _, tc := range []history{
		{"not the version of a person's that a merge takes, although another of theirs is newer", func(w *world) {
			start := w.head()
			side := w.foreign("x\n", []space.CommitID{start}, skill, "theirs\n")
			w.write("web", skill, "mine\n")
			w.elsewhere("Merge\n", []space.CommitID{w.head(), side}, skill, "theirs\n")
		}, ""},
		{"attack: a person's branch of what was undone since is merged", func(w *world) {
			ai := w.write("bash", skill, "evil\n")
			w.undo(skill)
			w.waiting()
			w.restart()
			w.elsewhere("Merge\n", []space.CommitID{w.head(), w.foreign("x\n", []space.CommitID{ai}, skill, "evil\nmine\n")}, skill, "evil\nmine\n")
		}, skill},
		{"attack: and the clock elsewhere is slow", func(w *world) {
			ai, now := w.write("bash", skill, "evil\n"), w.clock
			w.clock = now.Add(-time.Hour)
			side := w.foreign("x\n", []space.CommitID{ai}, skill, "evil\nmine\n")
			w.clock = now
			w.elsewhere("Merge\n", []space.CommitID{w.head(), side}, skill, "evil\nmine\n")
		}, skill},
		{"attack: a push with an AI's trailers is merged", func(w *world) {
			start := w.head()
			side := w.foreign("x\n\nSatchel-Tool: bash\n", []space.CommitID{start}, "skills/x/SKILL.md", "evil\n")
			w.write("web", "knowledge/y.md", "mine\n")
			w.integrate(side)
		}, "skills/x/SKILL.md"},
	} {
		tc.run(t)
	}
}

// Attack: a merge writes an AI's text to another path, beside a person's version or into a file
// that a person renamed.
func TestMergesToOtherPathsWait(t *testing.T) {
	const page = "1\n2\n3\n4\n5\n6\n7\n8\n9\n"
	evil, mine := strings.Replace(page, "9", "evil", 1), strings.Replace(page, "9", "mine", 1)
	for name, files := range map[string][]string{
		"resources/c.conflict-": {"resources/c.md", mine},
		"skills/q/SKILL.md":     {"resources/c.md", "", "skills/q/SKILL.md", strings.Replace(page, "1", "one", 1)},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, databasetest.Open(t, databasetest.SQLite(t)))
			w.write("web", "resources/c.md", page)
			start := w.head()
			w.write("bash", "resources/c.md", evil)
			w.waiting()
			w.integrate(w.foreign("x\n", []space.CommitID{start}, files...))
			for range 2 {
				i := slices.IndexFunc(w.waiting(), func(r space.Review) bool { return strings.HasPrefix(string(r.Path), name) })
				if i < 0 {
					t.Fatalf("what waits: %q", w.paths())
				}
				if s := w.read(string(w.waiting()[i].Path)); !strings.Contains(s, "evil") {
					t.Errorf("the merge wrote %q", s)
				}
				w.restart()
			}
		})
	}
}
