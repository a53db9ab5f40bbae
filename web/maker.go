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
