package parse_test

import (
	"fmt"
	"strings"
	"testing"

	"satchel/tools/index/parse"
)

func TestSections(t *testing.T) {
	for _, c := range []struct{ what, name, text, want string }{
		{"levels and ends", "a.md", "# A\n\nx\n\n## B\n\n### C\n\n## D\n\nx\n", "1 a 1-11, 2 b 5-8, 3 c 7-8, 2 d 9-11"},
		{"no heading", "a.md", "text\n", ""},
		{"an empty file", "a.md", "", ""},
		{"text before the first", "a.md", "x\n# A\n", "1 a 2-2"},
		{"underlined", "a.md", "Top\n===\n\nPart\n---\nx", "1 top 1-6, 2 part 4-6"},
		{"a rule is no underline", "a.md", "x\n\n---\n\n- item\n---\n", ""},
		{"front matter", "a.md", "---\ntitle: T\n# no heading\n---\n# A\n", "1 a 5-5"},
		{"code", "a.md", "# A\n```sh\n# no\n```\n~~~\n# no\n```\n# no\n~~~\n    # no\n# B\n", "1 a 1-10, 1 b 11-11"},
		{"what is none", "a.md", "#no\n####### no\n\\# no\n", ""},
		{"repeated", "a.md", "# A\n## B\n# A\n## B\n## B\n", "1 a 1-2, 2 b 2-2, 1 a-1 3-5, 2 b-1 4-4, 2 b-2 5-5"},
		{"repeated, and taken", "a.md", "# A\n# A-1\n# A\n# A-1\n", "1 a 1-1, 1 a-1 2-2, 1 a-2 3-3, 1 a-1-1 4-4"},
		{"marks", "a.md", "# The [`use`](x) *of* it! {#own}\n## C# ##\n## Ünïcode & more_words\n", "1 the-use-of-it 1-3, 2 c 2-2, 2 ünïcode--more_words 3-3"},
		{"no letters", "a.md", "# !\n# !\n", "1  1-1, 1 -1 2-2"},
		{"HTML", "a.html", "<title>Page</title>\n<h2>One</h2>\n<p>x\n<h2 id=x>One</h2>\n", "1 page 1-4, 2 one 2-3, 2 one-1 4-4"},
		{"after a very long line", "a.md", "# A\n" + strings.Repeat("Words. ", 3000) + "\n# B\n", "1 a 1-2, 1 b 3-3"},
		{"a script's comments", "a.sh", "# no heading\n", ""},
	} {
		var got []string
		for _, s := range parse.Sections(c.name, []byte(c.text)) {
			got = append(got, fmt.Sprintf("%d %s %d-%d", s.Level, s.Anchor, s.From, s.To))
		}
		if strings.Join(got, ", ") != c.want {
			t.Errorf("%s: %q, want %q", c.what, strings.Join(got, ", "), c.want)
		}
	}
}
