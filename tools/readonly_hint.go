package tools

import (
	"strings"

	"satchel/internal/service"
)

// gitNote says what to do instead of what git cannot do in a space.
const gitNote = "git cannot write, because .git is read-only. To undo a change: git show COMMIT:path > path. Changes in /space are committed when the command ends"

// readOnlyHint says what works instead if a command met a file system that cannot be
// written; otherwise it is empty. writer is as for bashText.
func readOnlyHint(q bashCall, r service.CommandResult, writer string) string {
	denied := strings.Contains(r.Stderr.Text, "Read-only file system")
	for l := range strings.Lines(r.Stderr.Text) {
		// A file that cannot be read is denied too; only these speak of writing.
		denied = denied || strings.Contains(l, "Permission denied") &&
			(strings.Contains(l, ": cannot ") && !strings.Contains(l, "cannot open") && !strings.Contains(l, "cannot access") ||
				strings.Contains(l, ".git/") || strings.Contains(l, "bash: line ") && strings.Contains(q.Command, ">"))
		denied = denied || strings.HasPrefix(l, "error: insufficient permission for adding an object to repository database")
	}
	switch {
	case !denied:
		return ""
	case q.readOnly && writer != "":
		return "nothing can be saved here; use " + writer
	case q.readOnly:
		return "nothing can be saved here: this connection is read-only"
	case strings.Contains(r.Stderr.Text, ".git"):
		return gitNote
	}
	return ""
}
