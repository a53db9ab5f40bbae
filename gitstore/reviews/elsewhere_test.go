package reviews_test

import "testing"

// Attack: what an AI made becomes what a person knows, since they moved, copied or
// brought it back with git elsewhere and never saw it.
func TestAttackGitElsewhereBringsWhatNobodyConfirmed(t *testing.T) {
	for _, tc := range []history{
		{"attack: git elsewhere moves what an AI wrote where nobody is asked about it", func(w *world) {
			w.write("bash", "knowledge/draft/SKILL.md", "evil\n")
			w.elsewhere("x\n", nil, "knowledge/draft/SKILL.md", "", "skills/draft/SKILL.md", "evil\n")
		}, "skills/draft/SKILL.md"},
		{"attack: and changes a line of it", func(w *world) {
			w.write("bash", "knowledge/draft/SKILL.md", "evil\n")
			w.elsewhere("x\n", nil, "knowledge/draft/SKILL.md", "", "skills/draft/SKILL.md", "evil\nmine\n")
		}, "skills/draft/SKILL.md"},
		{"attack: and copies it", func(w *world) {
			w.write("bash", "knowledge/draft/SKILL.md", "evil\n")
			w.elsewhere("x\n", nil, "skills/draft/SKILL.md", "evil\n")
		}, "skills/draft/SKILL.md"},
		{"attack: and copies it over what a person knows, after other files", func(w *world) {
			w.write("bash", "knowledge/draft.md", "evil\n")
			w.elsewhere("x\n", nil, "skills/p/SKILL.md", "mine\n")
			w.elsewhere("x\n", nil, skill, "evil\n")
		}, skill},
		{"attack: and moves it by way of another place", func(w *world) {
			w.elsewhere("x\n", nil, "skills/p/SKILL.md", "mine\n")
			w.write("bash", "knowledge/draft.md", "evil\n")
			w.elsewhere("x\n", nil, "knowledge/draft.md", "", "knowledge/other.md", "evil\n")
			w.elsewhere("x\n", nil, "knowledge/other.md", "", "skills/draft/SKILL.md", "evil\n")
		}, "skills/draft/SKILL.md"},
		{"attack: git elsewhere moves what waits away and back", func(w *world) {
			w.write("bash", "skills/evil/SKILL.md", "evil\n")
			w.elsewhere("x\n", nil, "skills/evil/SKILL.md", "", "knowledge/parked.md", "evil\n")
			w.elsewhere("x\n", nil, "knowledge/parked.md", "", "skills/evil/SKILL.md", "evil\n")
		}, "skills/evil/SKILL.md"},
		{"attack: git elsewhere deletes what waits and brings it back", func(w *world) {
			w.write("bash", "skills/evil/SKILL.md", "evil\n")
			w.waiting()
			w.elsewhere("x\n", nil, "skills/evil/SKILL.md", "")
			w.waiting()
			w.elsewhere("x\n", nil, "skills/evil/SKILL.md", "evil\n")
		}, "skills/evil/SKILL.md"},
		{"attack: git elsewhere copies what waits", func(w *world) {
			w.write("bash", "resources/c.md", "evil\n")
			w.elsewhere("x\n", nil, "resources/c2.md", "evil\n")
		}, "resources/c.md resources/c2.md"},
		{"attack: git elsewhere writes again what a person undid, and says nothing of it", func(w *world) {
			w.write("bash", skill, "ai\n")
			w.undo(skill)
			w.push(skill, "ai\n", "x\n")
		}, skill},
		{"attack: and where it was undone as a change", func(w *world) {
			w.write("bash", skill, "ai\n")
			w.waiting()
			w.revert()
			w.restart()
			w.push(skill, "ai\n", "x\n")
		}, skill},
		{"not what was kept, written over and written again by git elsewhere", func(w *world) {
			w.write("bash", skill, "ai\n")
			w.keep(skill)
			w.write("web", skill, "mine\n")
			w.push(skill, "ai\n", "x\n")
		}, ""},
		{"not what a person knew and git elsewhere copied", func(w *world) {
			w.write("web", skill, "mine\n")
			w.elsewhere("x\n", nil, "skills/m/SKILL.md", "mine\n")
		}, ""},
		{"not a new file without content", func(w *world) {
			w.write("bash", "knowledge/x.md", "")
			w.elsewhere("x\n", nil, "knowledge/a.md", "mine\n", "skills/m/SKILL.md", "mine\n")
		}, ""},
		{"attack: GitHub reverts a person's undoing", func(w *world) {
			w.write("bash", skill, "ai\n")
			w.undo(skill)
			w.push(skill, "ai, again\n", "Revert \"Undo “x”\" (#12)\n\nReverts me/space#11\n")
		}, skill},
		{"attack: and in words of one's own", func(w *world) {
			w.push(skill, "ai\n", "Bring it back (#12)\n\nReverts me/space#11\n")
		}, skill},
		{"attack: git elsewhere does a change again", func(w *world) {
			w.push(skill, "ai\n", "Reapply \"Change x\"\n")
		}, skill},
		{"attack: and among what was squashed", func(w *world) {
			w.push(skill, "ai\n", "Some (#13)\n\n* Revert \"Undo x\"\n\n* Other\n")
		}, skill},
		{"not what a person wrote on reverting", func(w *world) {
			w.push(skill, "mine\n", "Say how one reverts a commit\n\nIt reverts what was done before.\n")
		}, ""},
		{"attack: the move of a directory takes what an AI copied for what a person knows", func(w *world) {
			w.write("web", "resources/d/k.md", "known\n")
			w.write("bash", "resources/d/e/k.md", "known\n")
			w.commit("web-move", "resources/d/k.md", "", "resources/d/e/k.md", "", "resources/e/k.md", "known\n", "resources/e/e/k.md", "known\n")
		}, "resources/e/e/k.md"},
		{"attack: and git elsewhere does, in any way", func(w *world) {
			w.write("web", "resources/d/k.md", "known\n")
			w.write("bash", "resources/d/e/k.md", "known\n")
			w.elsewhere("x\n", nil, "resources/d/k.md", "", "resources/d/e/k.md", "", "resources/e/k.md", "known\n", "resources/l.md", "known\n")
		}, "resources/e/k.md resources/l.md"},
	} {
		tc.run(t)
	}
}
