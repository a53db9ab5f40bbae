package web

import "strings"

// What acts on these pages name as their tool in commits. A person had the whole
// content before them that byHand writes; what the others bring back or move nobody
// was shown, so that it confirms nothing that an AI changed.
const (
	byHand    = "web"
	byRevert  = "web-revert"
	byRestore = "web-restore"
	byMove    = "web-move"
	byUndo    = "web-undo"
)

// pageTools are all of them.
func pageTools() []string { return []string{byHand, byRevert, byRestore, byMove, byUndo} }

// byPage reports whether a commit was made on these pages.
func byPage(tool string) bool { return tool == byHand || strings.HasPrefix(tool, byHand+"-") }
