package tools

import "strings"

// gitNote says what to do instead of what git cannot do in a space.
const gitNote = "git cannot write, since .git is read-only. To take a change back: git show COMMIT:path > path. What changes in /space is committed when the command ends"

// writeNote says what works instead where a command met a file system that
// cannot be written; empty where it met none. writer is as for bashText.
func writeNote(q RunRequest, r RunResult, writer string) string {
	readOnly := strings.Contains(r.Stderr.Text, "Read-only file system")
	denied, git := false, stashFailed(q, r)
	for l := range strings.Lines(r.Stderr.Text) {
		git = git || gitFailed(l)
		// A file that cannot be read is denied too; only these speak of writing.
		denied = denied || strings.Contains(l, "Permission denied") &&
			(strings.Contains(l, ": cannot ") && !strings.Contains(l, "cannot open") && !strings.Contains(l, "cannot access") ||
				strings.Contains(l, ".git/") || strings.Contains(l, "bash: line ") && strings.Contains(q.Command, ">"))
	}
	switch {
	case !readOnly && !denied && !git:
		return ""
	case q.ReadOnly && writer != "":
		return "nothing can be saved here; use " + writer
	case q.ReadOnly:
		return "nothing can be saved here: this connection is read-only"
	case git || strings.Contains(r.Stderr.Text, ".git"):
		return gitNote
	}
	return ""
}

// gitFailed tells whether a line is git's word that it can put no object into
// its repository, which git notes says without naming one.
func gitFailed(line string) bool {
	return strings.HasPrefix(line, "error: insufficient permission for adding an object to repository database") ||
		strings.HasPrefix(line, "fatal: unable to write note object")
}

// stashFailed tells whether a command that failed asked git to stash something:
// where git cannot write, it then ends without a word.
func stashFailed(q RunRequest, r RunResult) bool {
	if r.End != RunExited || r.ExitCode == 0 || strings.TrimSpace(r.Stderr.Text) != "" {
		return false
	}
	words := strings.FieldsFunc(q.Command, func(c rune) bool { return strings.ContainsRune(" \t\n;&|()", c) })
	for i, w := range words {
		if w != "stash" || i == 0 || words[i-1] != "git" {
			continue
		}
		if i+1 == len(words) || words[i+1] != "list" && words[i+1] != "show" {
			return true
		}
	}
	return false
}
