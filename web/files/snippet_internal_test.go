package files

import "testing"

// A snippet has the words that a reader sees, and changes no text that only looks like marks.
func TestProseOf(t *testing.T) {
	for line, want := range map[string]string{
		"# A heading":                             "A heading",
		"> Never on a Friday.":                    "Never on a Friday.",
		"- [x] Backups **are** fresh":             "Backups are fresh",
		"The canary was *red*.":                   "The canary was red.",
		"Read the [list](list.md) first":          "Read the list first",
		"Press <kbd>Ctrl</kbd> + C":               "Press Ctrl + C",
		`<p align="center"><img src="a.png" alt=`: "",
		"See <https://example.com> now.":          "See <https://example.com> now.",
		"The rule a <b and the rest":              "The rule a <b and the rest",
		"2*3 and 4*5":                             "2*3 and 4*5",
		"*.go or *.js":                            "*.go or *.js",
		"List<String> x":                          "List<String> x",
		"-5 degrees":                              "-5 degrees",
	} {
		if got := proseOf(line); got != want {
			t.Errorf("%q is %q", line, got)
		}
	}
}

// Code and tables are in a snippet only where they have a word of the query.
func TestWordsOf(t *testing.T) {
	text := "---\ntitle: Deploy\n---\n# Deploy\n\nOn Tuesdays.\n\n```go\nfunc release() {\n}\n```\n\n| Stage | Who |\n| --- | --- |\n| Build | CI |\n"
	for word, want := range map[string]string{
		"tuesdays": "Deploy · On Tuesdays.",
		"release":  "Deploy · On Tuesdays. · func release() {",
		"build":    "Deploy · On Tuesdays. · Build, CI",
	} {
		if got := wordsOf(text, []string{word}); got != want {
			t.Errorf("%s: %q", word, got)
		}
	}
}
