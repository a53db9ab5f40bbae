package space

import (
	"slices"
	"strings"
)

// The tools that commits name, besides those that AIs call. On the pages, a person sees
// everything that ToolWeb writes. The other tools of the pages bring back or move content
// that nobody has seen, so that they confirm nothing that an AI changed.
const (
	ToolWeb        = "web"
	ToolWebMove    = "web-move"
	ToolWebRestore = "web-restore"
	ToolWebRevert  = "web-revert"
	ToolWebUndo    = "web-undo"
	ToolImport     = "import"
	ToolPurge      = "purge"
	ToolRestore    = "restore" // of the command line
	ToolStart      = "satchel" // starts a space
	ToolSync       = "sync"    // merges what the remote has
)

// Elsewhere stands for the tool of a commit that says Satchel made it, of which the
// server knows nothing: whoever made it wrote that.
const Elsewhere = "git"

// WebTools are the tools of the pages.
func WebTools() []string {
	return []string{ToolWeb, ToolWebMove, ToolWebRestore, ToolWebRevert, ToolWebUndo}
}

// IsWebTool reports whether a tool is one of the pages.
func IsWebTool(tool string) bool { return tool == ToolWeb || strings.HasPrefix(tool, ToolWeb+"-") }

// AITools are the tools by which AIs change spaces. The server alone says by which tool a
// commit was made, but a client chooses its own name: search for the commits of a client
// only among those of these tools.
func AITools() []string { return []string{"bash", "write", "edit", "remember", "forget"} }

// IsAITool reports whether AIs change spaces by the tool.
func IsAITool(tool string) bool { return slices.Contains(AITools(), tool) }
