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
