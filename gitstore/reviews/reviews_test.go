package reviews_test

import (
	"fmt"
	"strings"
	"testing"

	"satchel/internal/database"
	"satchel/internal/database/databasetest"
	"satchel/internal/fault"
	"satchel/internal/space"
)

// history is a sequence of actions in a space, and what waits afterwards.
type history struct {
	name string
	do   func(w *world)
	want string
}

func (tc history) run(t *testing.T) {
	t.Helper()
	t.Run(tc.name, func(t *testing.T) {
		w := newWorld(t, databasetest.Open(t, databasetest.SQLite(t)))
		tc.do(w)
		if got := w.paths(); got != tc.want {
			t.Errorf("%q waits, want %q", got, tc.want)
		}
		w.restart()
		if got := w.paths(); got != tc.want {
			t.Errorf("after a restart %q waits, want %q", got, tc.want)
		}
	})
}

// TestWaiting specifies what waits. The result must not depend on earlier reads or a restart of
// the server.
func TestWaiting(t *testing.T) {
	for _, tc := range []history{
		{"nothing at the start", func(*world) {}, ""},
		{"what an AI wrote", func(w *world) { w.write("bash", skill, "ai\n") }, skill},
		{"every file that instructs", func(w *world) {
			w.write("bash", instructions, "ai\n")
			w.write("edit", "resources/context.md", "ai\n")
			w.write("write", "skills/new/deep/script.sh", "ai\n")
		}, "resources/context.md resources/instructions.md skills/new/deep/script.sh"},
		{"every resource", func(w *world) { w.write("bash", "resources/other.md", "ai\n") }, "resources/other.md"},
		{"nothing else", func(w *world) {
			w.write("bash", "knowledge/x.md", "ai\n")
			w.write("remember", "memory/preference/x.md", "ai\n")
			w.write("bash", "skillset/x.md", "ai\n")
		}, ""},
		{"not what a person wrote on the pages", func(w *world) { w.write("web", skill, "p\n") }, ""},
		{"attack: a command restores what a person undid", func(w *world) {
			w.write("bash", skill, "ai\n")
			w.undo(skill)
			w.write("restore", skill, "ai\n")
		}, skill},
		{"not what a command restored as they knew it", func(w *world) { w.write("bash", skill, "ai\n"); w.write("restore", skill, "start\n") }, ""},
		{"attack: a person adds a line to what an AI changed unseen", func(w *world) {
			w.write("bash", skill, "start\nevil\u200b\n")
			w.write("web", skill, "start\nevil\u200b\nmine\n")
		}, skill},
		{"attack: and another one", func(w *world) {
			w.write("bash", skill, "start\nevil\n")
			w.write("web", skill, "start\nevil\nmine\n")
			w.write("web", skill, "start\nevil\nmine\nmine\n")
		}, skill},
		{"attack: a person elsewhere adds a line to what an AI changed unseen", func(w *world) {
			w.write("bash", skill, "start\nevil\n")
			w.push(skill, "start\nevil\nmine\n", "Add a line\n")
		}, skill},
		{"not what a person wrote back", func(w *world) { w.write("bash", skill, "ai\n"); w.write("web", skill, "start\n") }, ""},
		{"not what a person wrote into what they kept", func(w *world) {
			w.write("bash", skill, "ai\n")
			w.keep(skill)
			w.write("web", skill, "ai\nmine\n")
		}, ""},
		{"an AI's change of what a person wrote", func(w *world) { w.write("web", skill, "p\n"); w.write("bash", skill, "ai\n") }, skill},
		{"not what was kept", func(w *world) { w.write("bash", skill, "ai\n"); w.keep(skill) }, ""},
		{"what changed after it was kept", func(w *world) { w.write("bash", skill, "ai\n"); w.keep(skill); w.write("bash", skill, "worse\n") }, skill},
		{"not what was kept and came back", func(w *world) {
			w.write("bash", skill, "ai\n")
			w.keep(skill)
			w.write("bash", skill, "worse\n")
			w.write("bash", skill, "ai\n")
		}, ""},
		{"not what was undone", func(w *world) { w.write("bash", skill, "ai\n"); w.undo(skill) }, ""},
		{"what was undone and written again", func(w *world) { w.write("bash", skill, "ai\n"); w.undo(skill); w.write("bash", skill, "ai\n") }, skill},
		{"not what a person wrote again", func(w *world) {
			w.write("bash", skill, "ai\n")
			w.undo(skill)
			w.write("web", skill, "ai\n")
		}, ""},
		{"an AI's content that was undone and brought back, unseen", func(w *world) {
			w.write("bash", skill, "ai\n")
			w.revert()
			w.revert()
		}, skill},
		{"and where it was looked at in between", func(w *world) {
			w.write("bash", skill, "ai\n")
			w.waiting()
			w.revert()
			w.waiting()
			w.revert()
		}, skill},
		{"what a person rejected, once their undoing is undone", func(w *world) {
			w.write("bash", skill, "ai\n")
			w.undo(skill)
			w.revert()
		}, skill},
		{"what an AI had written before what was undone", func(w *world) {
			w.write("bash", skill, "ai 1\n")
			w.write("bash", skill, "ai 2\n")
			w.revert()
		}, skill},
		{"not what was kept, undone and brought back", func(w *world) {
			w.write("bash", skill, "ai\n")
			w.keep(skill)
			w.revert()
			w.revert()
		}, ""},
		{"not what a person wrote, undone and brought back", func(w *world) {
			w.write("web", skill, "p\n")
			w.revert()
			w.revert()
		}, ""},
		{"not what a person wrote, after an AI's was undone", func(w *world) {
			w.write("web", skill, "p\n")
			w.write("bash", skill, "ai\n")
			w.revert()
		}, ""},
		{"not a push that says it was made on the pages: one that says nothing does not wait either", func(w *world) {
			w.push(skill, "p\n", "x\n\nSatchel-Tool: web\nSatchel-Client: browser\n")
		}, ""},
		{"attack: a push that says it was made on the pages changes what waits", func(w *world) {
			w.write("bash", skill, "evil\n")
			w.push(skill, "evil\nmine\n", "x\n\nSatchel-Tool: web\nSatchel-Client: browser\n")
		}, skill},
		{"attack: a push that says it restores", func(w *world) { w.push(skill, "evil\n", "x\n\nSatchel-Tool: web-restore\n") }, skill},
		{"a remote's commit that says an AI made it", func(w *world) { w.push(skill, "ai\n", "x\n\nSatchel-Tool: bash\n") }, skill},
		{"not what a person pushed to the remote", func(w *world) { w.push(skill, "p\n", "x\n") }, ""},
		{"attack: what an AI made is applied again elsewhere: cherry-pick -x", func(w *world) {
			w.push(skill, "ai\n", "x\n\nSatchel-Tool: bash\nSatchel-Client: claude\n(cherry picked from commit 1234567)\n")
		}, skill},
		{"attack: and signed off", func(w *world) {
			w.push(skill, "ai\n", "x\n\nSatchel-Tool: bash\nSatchel-Client: claude\nSigned-off-by: Ada <a@x>\n")
		}, skill},
		{"attack: and by GitHub, which names who else wrote it", func(w *world) {
			w.push(skill, "ai\n", "x (#1)\n\n* x\n\nSatchel-Tool: bash\nSatchel-Client: claude\n\nCo-authored-by: Ada <a@x>\n")
		}, skill},
		{"attack: and squashed", func(w *world) {
			w.push(skill, "ai\n", "Squashed commit of the following:\n\ncommit 1234567\n\n    x\n\n    satchel-tool: bash\n")
		}, skill},
		{"attack: and in a message so long that it is not read to its end", func(w *world) {
			w.push(skill, "ai\n", "x\n\n"+strings.Repeat("y\n", 50_000)+"\nSatchel-Tool: bash\nSigned-off-by: Ada <a@x>\n")
		}, skill},
		{"attack: a push brings back exactly what a person undid", func(w *world) {
			w.write("bash", skill, "ai\n")
			w.undo(skill)
			w.push(skill, "ai\n", "Revert \"Undo what an AI changed\"\n\nThis reverts commit 1234567.\n")
		}, skill},
		{"not what a person pushed with a line of what they undid", func(w *world) {
			w.write("bash", skill, "ai\n")
			w.undo(skill)
			w.push(skill, "ai\nmine\n", "x\n")
		}, ""},
		{"not a page of an AI's that a person pushed as a skill", func(w *world) {
			w.write("bash", "knowledge/draft.md", "text\n")
			w.elsewhere("x\n", nil, "knowledge/draft.md", "", "skills/m/SKILL.md", "text\n")
		}, ""},
		{"attack: a merge elsewhere brings back what a person undid", func(w *world) {
			ai := w.write("bash", skill, "ai\n")
			w.undo(skill)
			w.mergeOurs(ai)
		}, skill},
		{"attack: and an AI writes elsewhere then", func(w *world) {
			ai := w.write("bash", skill, "ai\n")
			w.undo(skill)
			w.waiting()
			w.mergeOurs(ai)
			w.waiting()
			w.write("bash", "knowledge/x.md", "ai\n")
		}, skill},
		{"not what a merge elsewhere dropped", func(w *world) {
			start := w.head()
			w.write("bash", skill, "ai\n")
			w.waiting()
			w.mergeOurs(start)
		}, ""},
		{"a skill that an AI deleted", func(w *world) { w.waiting(); w.write("bash", skill, "") }, skill},
		{"instructions that an AI deleted", func(w *world) { w.write("bash", instructions, "") }, instructions},
		{"not what a person deleted", func(w *world) { w.waiting(); w.write("bash", skill, "ai\n"); w.waiting(); w.write("web", skill, "") }, ""},
		{"attack: a person's revert of something else confirms", func(w *world) { w.write("bash", skill, "ai\n"); w.write("web-revert", skill, "ai, less\n") }, skill},
		{"attack: a restore on the pages confirms", func(w *world) {
			w.write("bash", skill, "ai\n")
			w.write("web", skill, "p\n")
			w.write("web-restore", skill, "ai\n")
		}, skill},
		{"not what a person restored as they knew it", func(w *world) { w.write("bash", skill, "ai\n"); w.write("web-restore", skill, "start\n") }, ""},
		{"attack: the move of a directory confirms what is in it", func(w *world) {
			w.commit("bash", "skills/evil/SKILL.md", "evil\n")
			w.commit("web-move", "skills/evil/SKILL.md", "", "skills/good/SKILL.md", "evil\n")
		}, "skills/good/SKILL.md"},
		{"attack: two files with one content are moved, of which one waits", func(w *world) {
			w.commit("bash", "skills/a/d/SKILL.md", "start\n")
			w.commit("web-move", skill, "", "skills/a/d/SKILL.md", "", "skills/m/SKILL.md", "start\n", "skills/m/d/SKILL.md", "start\n")
		}, "skills/m/SKILL.md skills/m/d/SKILL.md"},
		{"attack: what is moved is taken for what a person knows elsewhere in it", func(w *world) {
			w.commit("bash", "skills/a/other.md", "start\n")
			w.commit("web-move", "skills/a/SKILL.md", "", "skills/a/other.md", "", "skills/m/SKILL.md", "start\n", "skills/m/other.md", "start\n")
		}, "skills/m/other.md"},
		{"attack: git elsewhere moves what waits", func(w *world) {
			w.write("bash", skill, "evil\n")
			w.elsewhere("x\n", nil, skill, "", "skills/m/SKILL.md", "evil\n")
		}, "skills/m/SKILL.md"},
		{"not what a person knew and git elsewhere moved", func(w *world) {
			w.elsewhere("x\n", nil, skill, "", "skills/m/SKILL.md", "start\n")
		}, ""},
		{"not what a person knew and moved", func(w *world) { w.commit("web-move", skill, "", "skills/m/SKILL.md", "start\n") }, ""},
		{"what an AI moved", func(w *world) { w.commit("bash", skill, "", "skills/m/SKILL.md", "start\n") }, skill + " skills/m/SKILL.md"},
		{"attack: an AI puts back what a person wrote once", func(w *world) {
			w.write("web", skill, "allow\n")
			w.write("web", skill, "never allow\n")
			w.write("bash", skill, "allow\n")
		}, skill},
		{"attack: an AI puts back what a person kept once", func(w *world) {
			w.write("bash", skill, "allow\n")
			w.keep(skill)
			w.write("web", skill, "never allow\n")
			w.write("bash", skill, "allow\n")
		}, skill},
		{"attack: an AI deletes again what a person deleted once", func(w *world) {
			w.write("web", skill, "")
			w.write("web", skill, "never allow\n")
			w.write("bash", skill, "")
		}, skill},
		{"attack: an AI brings back what a person deleted", func(w *world) { w.write("web", skill, ""); w.write("bash", skill, "start\n") }, skill},
	} {
		tc.run(t)
	}
}

func TestDecisions(t *testing.T) {
	databasetest.Each(t, func(t *testing.T, db *database.DB) {
		w := newWorld(t, db)
		w.write("web", skill, "mine\n")
		known := w.write("web", skill, "mine, better\n")
		w.write("bash", skill, "ai\n")
		last := w.write("bash", skill, "ai, again\n")
		w.write("bash", "knowledge/x.md", "ai\n")
		got := w.find(skill)
		if got.Base != known || got.Head != w.head() || got.Commit != last || got.Client != "claude" || got.Tool != "bash" || got.When.IsZero() {
			t.Errorf("%+v", got)
		}
		w.undo(skill)
		if text := w.read(skill); text != "mine, better\n" {
			t.Errorf("undone to %q", text)
		}
		w.write("bash", instructions, "ai 1\n")
		w.keep(instructions)
		kept := w.head()
		w.write("bash", instructions, "ai 2\n")
		w.restart()
		if b := w.find(instructions).Base; b != kept {
			t.Errorf("the base is %s, and not what was kept, %s", b, kept)
		}
		w.undo(instructions)
		if text := w.read(instructions); text != "ai 1\n" {
			t.Errorf("undone to %q", text)
		}
		w.write("bash", "skills/new/SKILL.md", "ai\n")
		w.undo("skills/new/SKILL.md")
		if w.read("skills/new/SKILL.md") != "" {
			t.Error("a new skill is there after it was undone")
		}
		w.write("bash", "skills/b/SKILL.md", "")
		w.undo("skills/b/SKILL.md")
		if w.read("skills/b/SKILL.md") != "start\n" {
			t.Error("a deleted skill is not back")
		}
		list, err := w.r.Decisions(t.Context(), w.id, 10)
		if err != nil {
			t.Fatal(err)
		}
		var said []string
		for _, d := range list {
			if d.By != person || d.At.IsZero() {
				t.Errorf("%+v", d)
			}
			said = append(said, fmt.Sprintf("%s %s", map[bool]string{true: "kept", false: "undone"}[d.Kept], d.Path))
		}
		if s := strings.Join(said, ", "); !strings.Contains(s, "kept "+instructions) || !strings.Contains(s, "undone "+skill) || len(said) != 5 {
			t.Error(s)
		}
	})
}

// Attack: a person confirms the content that they were shown, while an AI writes other content.
func TestOnlyWhatWasSeenIsDecided(t *testing.T) {
	w := newWorld(t, databasetest.Open(t, databasetest.SQLite(t)))
	w.write("bash", skill, "harmless\n")
	seen := w.find(skill)
	w.write("bash", skill, "harmful\n")
	if err := w.r.Keep(t.Context(), w.id, person, skill, seen.Blob, seen.Mode); fault.CodeOf(err) != fault.Conflict {
		t.Errorf("kept: %v", err)
	}
	if _, err := w.r.Undo(t.Context(), w.id, person, skill, seen.Blob, seen.Mode, space.Meta{Tool: "web"}); fault.CodeOf(err) != fault.Conflict {
		t.Errorf("undone: %v", err)
	}
	for _, p := range []space.Path{"knowledge/x.md", "skills/none", ""} {
		if err := w.r.Keep(t.Context(), w.id, person, p, seen.Blob, seen.Mode); fault.CodeOf(err) != fault.Conflict {
			t.Errorf("%q: %v", p, err)
		}
	}
	if w.paths() != skill || w.read(skill) != "harmful\n" {
		t.Error("something was changed")
	}
}
