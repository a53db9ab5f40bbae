package web

import "satchel/internal/space"

// MakerOf returns the kind of maker of a commit: an AI, the pages, git or the server.
func MakerOf(c space.Commit) string {
	switch {
	case space.IsAITool(c.Tool):
		return "ai"
	case space.IsWebTool(c.Tool):
		return "web"
	case c.Tool == "":
		return "git"
	}
	return "server"
}

// OnPages describes a change that a person made on the pages.
const OnPages = "on the pages"

// ToolWords describes the tool of a change.
func ToolWords(tool string) string {
	switch tool {
	case "web":
		return OnPages
	case "import":
		return "by an import"
	case "restore":
		return "by a restore command"
	case "sync":
		return "from the connected repository"
	case "satchel":
		return "by Satchel itself"
	}
	return "with " + Shorten(tool, 40)
}

// HowMade describes how a change that waits for review was made. It returns "" for changes
// by AI tools.
func HowMade(tool string) string {
	switch {
	case space.IsWebTool(tool):
		return OnPages
	case tool == "" || tool == space.Elsewhere:
		return "by a commit from elsewhere"
	case !space.IsAITool(tool):
		return ToolWords(tool)
	}
	return ""
}
