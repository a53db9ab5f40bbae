package web

import "strings"

// What acts on these pages name as their tool in commits. A person had the whole
// content before them that byHand writes; what the others bring back or move nobody
// was shown, so that it confirms nothing that an AI changed.
const (
	ByHand    = "web"
	ByRevert  = "web-revert"
	ByRestore = "web-restore"
	ByMove    = "web-move"
	ByUndo    = "web-undo"
)

// PageTools are all of them.
func PageTools() []string { return []string{ByHand, ByRevert, ByRestore, ByMove, ByUndo} }

// ByPage reports whether a commit was made on these pages.
func ByPage(tool string) bool { return tool == ByHand || strings.HasPrefix(tool, ByHand+"-") }
