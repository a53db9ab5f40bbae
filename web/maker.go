package web

import "satchel/internal/space"

// MakerOf reports what made a commit.
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

// OnPages is what pages call what people did on them.
const OnPages = "on the pages"

// ToolWords says with what a change was made.
func ToolWords(tool string) string {
	switch tool {
	case "web":
		return OnPages
	case "import":
		return "by an import"
	case "restore":
		return "by a command that restores"
	case "sync":
		return "from the connected repository"
	case "satchel":
		return "by Satchel itself"
	}
	return "with " + Shorten(tool, 40)
}

// HowMade says how a tool other than an AI's changed a file that waits; it is "" for an
// AI's.
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
