package remotes

import (
	"fmt"
	"strings"
	"unicode/utf8"

	"satchel/gitstore"
	"satchel/gitstore/transport"
	"satchel/internal/space"
)

// Limits of a notice: how many files it names, and its length in characters. The length is less
// than what an answer shows.
const (
	conflictsNamed = 5
	maxNotice      = 1200
)

// mergeNotices describes the decisions of a merge. Each notice says first what to do, and then with
// which files, because a reader may only see the beginning.
func mergeNotices(r space.Remote, in gitstore.Integration, rewritten bool) []string {
	var out []string
	host := hostOf(r.URL)
	if rewritten {
		out = append(out, fmt.Sprintf("The history of the branch %s at %s was rewritten there (a “force push”). Nothing of this space was dropped: both histories were merged, so files that were removed there may still be here.", shown(r.Branch), host))
	}
	list := func(advice string, files []string) {
		if len(files) > 0 {
			out = append(out, withFiles(advice, files, in.Commit.ID))
		}
	}
	var copies, names, edits []string
	for _, c := range in.Commit.Conflicts {
		path, kept := shown(string(c.Path)), shown(string(c.Kept))
		switch {
		case c.Kept == "":
			edits = append(edits, fmt.Sprintf("%s (as %s has it)", path, host))
		case c.Kept == c.Path:
			edits = append(edits, path+" (as this space has it)")
		case space.IsConflictCopy(c.Kept):
			copies = append(copies, fmt.Sprintf("%s (copy: %s)", path, kept))
		default: // a file that both sides renamed differently; the name of a copy would be marked
			names = append(names, fmt.Sprintf("%s (here: %s)", path, kept))
		}
	}
	list(fmt.Sprintf("This space and %s changed the same files in ways that cannot be merged automatically. Both versions are kept: usually the copy has this space's version, and the other name the one from %[1]s. Combine both under the first name, then delete the copy:", host), copies)
	list(fmt.Sprintf("The same file was renamed at %s and, differently, here. Both names are kept, each with its side's content. Choose one, make sure that it has everything, and delete the other:", host), names)
	list(fmt.Sprintf("Files that one side deleted or replaced were changed by the other, here and at %s. Nothing was dropped: the changed files stay, and there is no other copy of them. Delete only what nobody needs:", host), edits)
	var replaced []string
	for _, p := range in.Replaced {
		replaced = append(replaced, shown(string(p)))
	}
	list(fmt.Sprintf("Files that every space starts with and that nobody had changed now have the content from %s:", host), replaced)
	var refused []string
	for _, x := range in.Commit.Rejected {
		// Large files and links need no notice: the space has them, and people who change
		// them get an error.
		if rule := space.RuleOf(x.Err); rule != "" && rule != space.RuleSymlink {
			refused = append(refused, shown(x.Path))
		}
	}
	list(fmt.Sprintf("A space cannot use the names of these files from %s, so sandboxes do not show them. To get them here, rename them there:", host), refused)
	return out
}

// withFiles appends as many of the files to the advice as fit in the notice.
func withFiles(advice string, files []string, at space.CommitID) string {
	for n := min(len(files), conflictsNamed); ; n-- {
		list := strings.Join(files[:n], ", ")
		if more := len(files) - n; more > 0 {
			rest := fmt.Sprintf("%d more (see commit %s)", more, at.Short())
			if n == 0 {
				rest = fmt.Sprintf("%d with long names (see commit %s)", more, at.Short())
			} else {
				rest = list + " and " + rest
			}
			list = rest
		}
		if text := advice + " " + list + "."; n == 0 || utf8.RuneCountInString(text) <= maxNotice {
			return text
		}
	}
}

func noticeEmptied(r space.Remote) string {
	return fmt.Sprintf("The repository at %s had been emptied. This space was pushed to it again; remove the remote if you do not want that.", hostOf(r.URL))
}

func noticeReplaced(r space.Remote, left space.CommitID) string {
	return fmt.Sprintf("As requested, the content of the space was replaced by the branch %s at %s. The former content is kept as commit %s; satchel space restore brings it back.", shown(r.Branch), hostOf(r.URL), left.Short())
}

func noticeDeleted(r space.Remote) string {
	return fmt.Sprintf("The branch %s had been deleted at %s. It was created again with the content of this space; remove the remote if you do not want that.", shown(r.Branch), hostOf(r.URL))
}

func noticeRenamed(r space.Remote, now string) string {
	return fmt.Sprintf("The branch %s at %s is now called %s, and this space follows it.", shown(r.Branch), hostOf(r.URL), shown(now))
}

// shown quotes a name that a remote chose, for use in a sentence: on one line, and not too long.
func shown(s string) string { return transport.Quote(s, 200) }
