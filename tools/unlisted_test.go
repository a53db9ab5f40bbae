package tools_test

import (
	"fmt"
	"strings"
	"testing"
)

// TestFilesThatNoAIListsAreNamed checks that the answer of the call that writes an invalid
// skill or resource names it.
func TestFilesThatNoAIListsAreNamed(t *testing.T) {
	b := newBench(t, map[string]string{"skills/tidy/SKILL.md": "---\nname: tidy\ndescription: Tidies.\n---\n", "skills/lost/SKILL.md": "no front matter\n"}, nil)
	for _, c := range []struct{ path, content, want string }{
		{"skills/new/SKILL.md", "no front matter\n", "\"skills/new/SKILL.md\": its front matter needs a name and a description."},
		{"skills/other/SKILL.md", "---\nname: x\ndescription: y\n---\n", "they must be the same."},
		{"skills/good/SKILL.md", "---\nname: good\ndescription: y\n---\n", ""},
		{"skills/tidy/notes.md", "notes\n", ""},
		{"skills/lost/notes.md", "notes\n", "\"skills/lost/SKILL.md\": its front matter"},
		{"skills/loose.md", "x\n", "\"skills/loose.md\": A skill is a directory"},
		{"skills/README.md", "x\n", ""},
		{"resources/bad.md", "---\nname: [\n---\n", "\"resources/bad.md\": "},
		{"resources/fine.md", "# Fine\n", ""},
		{"knowledge/bad.md", "---\nname: [\n---\n", ""},
	} {
		r := b.call(t, "write", fmt.Sprintf(`{"path":%q,"content":%q}`, c.path, c.content))
		text := textOf(r)
		if r.IsError || strings.Contains(text, "NOT LISTED") != (c.want != "") || !strings.Contains(text, c.want) || (r.Meta["not_listed"] != nil) != (c.want != "") {
			t.Errorf("%s: %v, %s", c.path, r.Meta["not_listed"], text)
		}
	}
	r := b.call(t, "edit", `{"path":"skills/good/SKILL.md","edits":[{"old":"name: good","new":"name: bad"}]}`)
	if text := textOf(r); !strings.Contains(text, "NOT LISTED") {
		t.Errorf("edit: %s", text)
	}
}
