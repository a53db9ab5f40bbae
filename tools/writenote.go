package tools

import "strings"

// gitNote says what to do instead of what git cannot do in a space.
const gitNote = "git cannot write, since .git is read-only. To take a change back: git show COMMIT:path > path. What changes in /space is committed when the command ends"

// writeNote says what works instead if a command met a file system that cannot
// be written; else it is empty. writer is as for bashText.
func writeNote(q RunRequest, r RunResult, writer string) string {
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
	case q.ReadOnly && writer != "":
		return "nothing can be saved here; use " + writer
	case q.ReadOnly:
		return "nothing can be saved here: this connection is read-only"
	case strings.Contains(r.Stderr.Text, ".git"):
		return gitNote
	}
	return ""
}
