package space

import (
	"slices"
	"strings"
)

// ClientBrowser is the client in commits and facts that a person saves on the pages.
const ClientBrowser = "browser"

// The tools in commits, besides the tools that AIs call. On the pages, a person sees
// everything that ToolWeb writes. The other tools of the pages restore or move content that
// the person may not have seen, so they do not confirm what an AI changed.
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

// Elsewhere is the tool of a commit that claims to be made by Satchel, but that the server
// does not know. The author of the commit wrote the claim.
const Elsewhere = "git"

// WebTools returns the tools of the pages.
func WebTools() []string {
	return []string{ToolWeb, ToolWebMove, ToolWebRestore, ToolWebRevert, ToolWebUndo}
}

// IsWebTool reports whether a tool belongs to the pages.
func IsWebTool(tool string) bool { return tool == ToolWeb || strings.HasPrefix(tool, ToolWeb+"-") }

// AITools returns the tools with which AIs change spaces. Only the server sets the tool of
// a commit, but a client chooses its own name. So search for the commits of a client only
// among the commits of these tools.
func AITools() []string { return []string{"bash", "write", "edit", "remember", "forget"} }

// IsAITool reports whether AIs change spaces with the tool.
func IsAITool(tool string) bool { return slices.Contains(AITools(), tool) }

// ClientName returns the name of a client without its version: name for name/1.2.
func ClientName(client string) string {
	if i := strings.LastIndexByte(client, '/'); i > 0 {
		return client[:i]
	}
	return client
}
