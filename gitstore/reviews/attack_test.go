package reviews_test

import (
	"bytes"
	"strings"
	"testing"

	"satchel/gitstore"
	"satchel/internal/database/databasetest"
	"satchel/internal/fault"
	"satchel/internal/space"
	"satchel/internal/testenv"
)

// Attack: an AI's text counts as the person's after the person edits the rest of the file.
func TestAttackAnEditKeepsWhatAPersonKnew(t *testing.T) {
	w := newWorld(t, databasetest.Open(t, databasetest.SQLite(t)))
	known := w.write("web", skill, "mine\n")
	w.write("bash", skill, "mine\nevil\n")
	w.write("web", skill, "mine\nevil\nmore\n")
	for range 2 {
		if r := w.find(skill); r.Base != known || r.Tool != "web" {
			t.Errorf("%+v", r)
		}
		w.restart()
	}
	w.keep(skill)
	w.write("web", skill, "mine\n")
	if p := w.paths(); p != "" {
		t.Errorf("%q waits", p)
	}
}

// Attack: a merge drops the waiting content, and a person keeps content that is no longer
// there.
func TestAttackWhatAMergeDroppedIsNotKept(t *testing.T) {
	w := newWorld(t, databasetest.Open(t, databasetest.SQLite(t)))
	start := w.head()
	w.write("bash", skill, "evil\n")
	seen := w.find(skill)
	w.mergeOurs(start)
	if err := w.r.Keep(t.Context(), w.id, person, skill, seen.Blob, seen.Mode); fault.CodeOf(err) != fault.Conflict {
		t.Errorf("kept: %v", err)
	}
	w.write("bash", skill, "evil\n")
	if p := w.paths(); p != skill {
		t.Errorf("%q waits", p)
	}
}

// Attack: a waiting file is moved, so that undoing the move deletes a person's text in the name
// of that person.
func TestAttackAMoveForgetsWhatAPersonKnew(t *testing.T) {
	for _, tool := range []string{"web-move", ""} {
		w := newWorld(t, databasetest.Open(t, databasetest.SQLite(t)))
		w.write("web", skill, "mine\n2\n3\n")
		ai := w.write("bash", skill, "mine\nevil\n3\n")
		w.write("bash", "skills/a/new.md", "evil\n")
		const to, added = "skills/m/SKILL.md", "skills/m/new.md"
		files := []string{skill, "", "skills/a/new.md", "", to, "mine\nevil\n3\n", added, "evil\n"}
		if tool == "" {
			w.elsewhere("Move\n", nil, files...)
		} else {
			w.commit(tool, files...)
		}
		if got := w.paths(); got != to+" "+added {
			t.Errorf("%s: %q waits", tool, got)
		}
		for range 2 {
			r := w.find(to)
			patch, err := w.git.FilePatch(t.Context(), w.id, space.FileChange{Path: r.Path, Old: r.Was, OldMode: r.WasMode, New: r.Blob, NewMode: r.Mode})
			if r.Commit != ai || r.Client != "claude" || r.Tool != "bash" || err != nil || !strings.Contains(patch, "-2\n+evil\n") {
				t.Errorf("%s: %+v, %v: %s", tool, r, err, patch)
			}
			w.restart()
		}
		w.undo(to)
		w.undo(added)
		if s := w.read(to); s != "mine\n2\n3\n" {
			t.Errorf("%s: undone to %q", tool, s)
		}
		if p := w.paths(); p != "" || w.read(added) != "" {
			t.Errorf("%s: %q waits", tool, p)
		}
	}
}

// Attack: something else replaces a file that a person knows, so that undoing always fails.
func TestAttackSomethingIsInTheWay(t *testing.T) {
	for _, tc := range []struct {
		name string
		do   func(w *world)
		gone string
	}{
		{"a directory", func(w *world) { w.commit("bash", skill, "", skill+"/x/y.md", "evil\n", skill+"/z.md", "evil\n") }, skill + "/z.md"},
		{"a file in place of its directory", func(w *world) { w.commit("bash", skill, "", "skills/a", "evil\n") }, "skills/a"},
		{"a link in place of all", func(w *world) {
			w.commit("bash", skill, "", "skills/b/SKILL.md", "")
			link := space.Change{Path: "skills", Mode: space.Symlink, Content: []byte("knowledge")}
			if _, err := w.git.Commit(w.t.Context(), w.id, space.ChangeSet{Changes: []space.Change{link}}, space.Meta{Tool: "bash"}); err != nil {
				w.t.Fatal(err)
			}
		}, "skills"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			w := newWorld(t, databasetest.Open(t, databasetest.SQLite(t)))
			tc.do(w)
			if r := w.find(skill); !r.Taken {
				t.Errorf("%+v", r)
			}
			w.undo(skill)
			if s := w.read(skill); s != "start\n" {
				t.Errorf("undone to %q", s)
			}
			if p := w.paths(); strings.Contains(p+" ", tc.gone+" ") || strings.Contains(p, skill) {
				t.Errorf("%q waits", p)
			}
		})
	}
	t.Run("what a person wrote there is not taken along", func(t *testing.T) {
		w := newWorld(t, databasetest.Open(t, databasetest.SQLite(t)))
		w.write("bash", skill, "")
		w.write("web", skill+"/mine.md", "mine\n")
		r := w.find(skill)
		if _, err := w.r.Undo(t.Context(), w.id, person, skill, r.Blob, r.Mode, space.Meta{Tool: "web-undo"}); fault.CodeOf(err) != fault.Conflict || !strings.Contains(fault.PublicOf(err), "mine.md") {
			t.Error(err)
		}
		if w.read(skill+"/mine.md") != "mine\n" {
			t.Error("it is gone")
		}
	})
}

func (w *world) purge(rewrite func(space.Path, []byte) ([]byte, bool)) {
	w.t.Helper()
	if _, err := w.git.Purge(w.t.Context(), w.id, "", rewrite, space.Meta{Tool: "purge"}); err != nil {
		w.t.Fatal(err)
	}
}

// Attack: after a purge, an older version comes back without a review, or a person's own change
// waits for one.
func TestAttackAPurgeBringsBackOlderVersions(t *testing.T) {
	without := func(p space.Path, b []byte) ([]byte, bool) { return b, p != "knowledge/x.md" }
	for _, tc := range []struct {
		name string
		do   func(w *world)
		then func(w *world)
		want string
	}{
		{"what a person let go", func(w *world) { w.write("bash", skill, ""); w.keep(skill); w.write("bash", skill, "start\n") }, nil, skill},
		{"and is written after it", func(w *world) { w.write("bash", skill, ""); w.keep(skill); w.waiting() }, func(w *world) { w.write("bash", skill, "start\n") }, skill},
		{"an older version", func(w *world) {
			w.write("web", skill, "never allow\n")
			w.waiting()
		}, func(w *world) { w.write("bash", skill, "start\n") }, skill},
		{"not what a person deleted and wrote on the pages", func(w *world) {
			w.write("web", skill, "")
			w.write("web", instructions, "mine\n")
			w.waiting()
		}, nil, ""},
		{"what an AI deleted", func(w *world) { w.write("bash", skill, "ai\n"); w.keep(skill); w.write("bash", skill, ""); w.waiting() }, nil, skill},
		{"what moved while it waited", func(w *world) {
			w.write("bash", skill, "evil\n")
			w.commit("web-move", skill, "", "skills/m/SKILL.md", "evil\n")
			w.waiting()
		}, nil, "skills/m/SKILL.md"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			w := newWorld(t, databasetest.Open(t, databasetest.SQLite(t)))
			tc.do(w)
			w.waiting()
			w.purge(without)
			if w.waiting(); tc.then != nil {
				tc.then(w)
			}
			for range 2 {
				if p := w.paths(); p != tc.want {
					t.Errorf("%q waits, want %q", p, tc.want)
				}
				w.restart()
			}
			if tc.want == "skills/m/SKILL.md" {
				w.undo(tc.want)
				if s := w.read(tc.want); s != "start\n" {
					t.Errorf("undone to %q", s)
				}
			}
		})
	}
}

// After a purge, a person still knows the rewritten version of what they wrote. Keeping an AI's
// change creates no commit of that person. So Satchel asks again if the purge rewrites the
// change.
func TestAPurgeOfWhatAPersonKnew(t *testing.T) {
	w := newWorld(t, databasetest.Open(t, databasetest.SQLite(t)))
	w.write("bash", instructions, "ai, secret\n")
	w.keep(instructions)
	w.write("web", "skills/b/SKILL.md", "mine, secret\n")
	w.write("web", skill, "mine, secret\n")
	w.write("bash", skill, "ai\n")
	w.waiting()
	w.purge(func(_ space.Path, b []byte) ([]byte, bool) {
		return bytes.ReplaceAll(b, []byte("secret"), []byte("gone")), true
	})
	for range 2 {
		if p := w.paths(); p != instructions+" "+skill {
			t.Errorf("%q waits", p)
		}
		w.restart()
	}
	w.undo(skill)
	if s := w.read(skill); s != "mine, gone\n" {
		t.Errorf("undone to %q", s)
	}
}

// If a space imports the history of another, its person's texts from the pages are known, and
// an AI's changes wait.
func TestImportOfASpace(t *testing.T) {
	w := newWorld(t, databasetest.Open(t, databasetest.SQLite(t)))
	w.write("web", instructions, "mine\n")
	w.write("web", skill, "")
	w.write("web", "skills/b/SKILL.md", "mine\n")
	w.commit("web-move", "skills/b/SKILL.md", "", "skills/m/SKILL.md", "mine\n")
	w.write("bash", "resources/context.md", "ai\n")
	w.push("resources/other.md", "ai\n", "x\n\nSatchel-Tool: bash\nSigned-off-by: Ada <a@x>\n")
	from := w.dir + "/" + string(w.id) + ".git"
	for _, look := range []bool{false, true} {
		w.id = space.NewSpaceID()
		if _, err := w.git.Create(t.Context(), w.id, gitstore.StartingTree(), space.Meta{Tool: "satchel"}); err != nil {
			t.Fatal(err)
		}
		if look {
			w.waiting()
		}
		if _, err := w.git.Import(t.Context(), w.id, gitstore.FromBundle(testenv.Bundle(t, from)), space.Meta{Tool: "import"}, nil); err != nil {
			t.Fatal(err)
		}
		for range 2 {
			if p := w.paths(); p != "resources/context.md resources/other.md" {
				t.Errorf("looked %v: %q waits", look, p)
			}
			w.restart()
		}
	}
}

// Attack: a pushed commit names a tool and a client that did not make it.
func TestAttackAPushNamesNobody(t *testing.T) {
	for _, tool := range []string{"bash", "web-revert", "web-restore", "web-undo", "restore", "web", "satchel", "web-move"} {
		t.Run(tool, func(t *testing.T) {
			w := newWorld(t, databasetest.Open(t, databasetest.SQLite(t)))
			w.write("bash", skill, "evil\n")
			w.push(skill, "evil\nmore\n", "x\n\nSatchel-Tool: "+tool+"\nSatchel-Client: browser\n")
			if r := w.find(skill); r.Tool != space.Elsewhere || r.Client != "" {
				t.Errorf("made by %q of %q", r.Tool, r.Client)
			}
		})
	}
}
