package cli

import (
	"testing"

	"satchel/cmd/satchel/internal/admin"
)

func TestSuspectsText(t *testing.T) {
	for name, tt := range map[string]struct {
		in   *admin.Suspected
		want string
	}{
		"nobody looked": {nil, ""},
		"nothing":       {&admin.Suspected{}, ""},
		"too many":      {&admin.Suspected{Partly: true, Looked: 3, Files: 9}, "Not all files were looked at for passwords, but 3 of 9. Look yourself: what is pushed others may read."},
		"no list":       {&admin.Suspected{Partly: true}, "Not all files were looked at for passwords. Look yourself: what is pushed others may read."},
		"some of some": {&admin.Suspected{Places: []admin.Suspect{{Path: "a.md", Line: 3}}, Partly: true, Looked: 1, Files: 2},
			"Warning: what may be passwords is pushed, where others may read it: a.md:3. Not all files were looked at for passwords, but 1 of 2. Look yourself: what is pushed others may read."},
		"some": {&admin.Suspected{Places: []admin.Suspect{{Path: "a.md", Line: 3}, {Path: "b.md", Line: 1}}, More: 2},
			"Warning: what may be passwords is pushed, where others may read it: a.md:3, b.md:1, and 2 more."},
	} {
		if got := suspectsText(tt.in); got != tt.want {
			t.Errorf("%s: %q", name, got)
		}
	}
	// Attack: a file's name moves the terminal's cursor.
	if got := suspectsText(&admin.Suspected{Places: []admin.Suspect{{Path: "a\x1b[2Jb.md", Line: 1}}}); len(got) == 0 || containsEscape(got) {
		t.Errorf("%q", got)
	}
}

func containsEscape(s string) bool {
	for _, r := range s {
		if r == '\x1b' {
			return true
		}
	}
	return false
}
