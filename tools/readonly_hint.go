package tools

import (
	"strings"

	"satchel/internal/service"
)

// gitNote says what to do in place of the git commands that fail in a space.
const gitNote = "git cannot write, because .git is read-only. To undo a change: git show COMMIT:path > path. Changes in /space are committed when the command ends"

// readOnlyHint says what to do in place of a command that tried to write to a read-only
// file system. For other commands it returns "". writer is as in bashText.
func readOnlyHint(q bashCall, r service.CommandResult, writer string) string {
	denied := strings.Contains(r.Stderr.Text, "Read-only file system")
	for l := range strings.Lines(r.Stderr.Text) {
		// "Permission denied" also appears for a file that cannot be read. The conditions select
		// the messages about writing.
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
