package remotes

import (
	"fmt"
	"strings"
	"testing"
	"unicode/utf8"

	"satchel/gitstore"
	"satchel/internal/fault"
	"satchel/internal/space"
)

func noticesOf(c ...space.Conflict) []string {
	return mergeNotices(space.Remote{URL: atGitHub, Branch: "main"}, gitstore.Integration{Commit: space.Commit{ID: "0123456789abcdef0123456789abcdef01234567", Conflicts: c}}, false)
}

// Notices describe a merge correctly. They never say that the only copy of a file can be
// deleted.
func TestConflictsAreToldAsTheyAre(t *testing.T) {
	for _, c := range []struct {
		name      string
		conflict  space.Conflict
		says, not string
	}{
		{"the same lines", space.Conflict{Path: "a.md", Kept: "a.conflict-89abcdef01.md"}, "“a.md” (copy: “a.conflict-89abcdef01.md”)", "deleted or"},
		{"a directory there", space.Conflict{Path: "a/b.md", Kept: "a.conflict-89abcdef01/b.md"}, "“a/b.md” (copy: “a.conflict-89abcdef01/b.md”)", "deleted or"},
		{"changed here, deleted there", space.Conflict{Path: "e.md", Kept: "e.md"}, "“e.md” (as this space has it)", "delete the copy"},
		{"deleted here, changed there", space.Conflict{Path: "b.md"}, "“b.md” (as github.com has it)", "delete the copy"},
		{"renamed twice", space.Conflict{Path: "theirs.md", Kept: "ours.md"}, "“theirs.md” (here: “ours.md”)", "delete the copy"},
	} {
		got := noticesOf(c.conflict)
		if len(got) != 1 || !strings.HasSuffix(got[0], ": "+c.says+".") || strings.Contains(got[0], c.not) {
			t.Errorf("%s: %q", c.name, got)
		}
		if c.name == "renamed twice" && (!strings.Contains(got[0], "name") || strings.Contains(got[0], "old name") || strings.Contains(got[0], "lines")) {
			t.Errorf("%s: %q", c.name, got)
		}
	}
}

// The beginning says what to do. After it come as many whole names as fit.
func TestNoticesAreBounded(t *testing.T) {
	for _, length := range []int{3, 60, 150, 250} {
		for _, count := range []int{1, 5, 6, 40} {
			var copies, edits, names []space.Conflict
			for i := range count {
				p := space.Path(fmt.Sprintf("%s%02d", strings.Repeat("é", length), i))
				copies = append(copies, space.Conflict{Path: p, Kept: p + ".conflict-89abcdef01"})
				edits = append(edits, space.Conflict{Path: p, Kept: p})
				names = append(names, space.Conflict{Path: p, Kept: p + "x"})
			}
			for _, cs := range [][]space.Conflict{copies, edits, names} {
				got := noticesOf(cs...)
				if len(got) != 1 {
					t.Fatalf("%q", got)
				}
				n, text := utf8.RuneCountInString(got[0]), got[0]
				named := strings.Count(text, " (copy: ") + strings.Count(text, " (as this space has it)") + strings.Count(text, " (here: ")
				if n > 1200 || named == 0 || named > 5 || strings.Count(text, "“") != strings.Count(text, "”") {
					t.Errorf("%d of %d: %d characters, %d named: %s", count, length, n, named, text)
				}
				if more := fmt.Sprintf("and %d more (see commit 0123456789).", count-named); (named < count) != strings.HasSuffix(text, more) {
					t.Errorf("%d of %d: %s", count, length, text)
				}
				if at := strings.Index(text, "elete"); at < 0 || at > strings.Index(text, "é") {
					t.Errorf("the advice comes late: %s", text)
				}
			}
		}
	}
}

// Only files with names that break a rule stay out of sandboxes, so only these are named.
func TestRefusedAreToldByName(t *testing.T) {
	in := gitstore.Integration{Commit: space.Commit{Rejected: []space.Rejection{
		{Path: "big.bin", Err: fault.New(fault.TooLarge, "large")},
		{Path: "link", Err: space.CheckSymlink("link", "/etc/passwd")},
	}}}
	if got := mergeNotices(space.Remote{URL: atGitHub}, in, false); len(got) != 0 {
		t.Errorf("%q", got)
	}
	in.Commit.Rejected = append(in.Commit.Rejected, space.Rejection{Path: "con\ntrol.md", Err: nameError("con\ntrol.md")})
	got := mergeNotices(space.Remote{URL: atGitHub}, in, false)
	if len(got) != 1 || !strings.Contains(got[0], "trol.md") || strings.Contains(got[0], "big.bin") || strings.Contains(got[0], "link") || strings.Contains(got[0], "size") {
		t.Errorf("%q", got)
	}
}
