package web

import (
	"time"

	"satchel/internal/service"
	"satchel/internal/space"
)

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

// InBrowser describes a change that a person made on the pages.
const InBrowser = "in the browser"

// ToolWords describes the tool of a change.
func ToolWords(tool string) string {
	switch tool {
	case "web":
		return InBrowser
	case "import":
		return "by an import"
	case "restore":
		return "by a restore command"
	case "purge":
		return "by a purge command"
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
		return InBrowser
	case tool == "" || tool == space.Elsewhere:
		return "by a commit from elsewhere"
	case !space.IsAITool(tool):
		return ToolWords(tool)
	}
	return ""
}

// UndoFor is how long the confirmation of a change on the pages offers to undo the change.
const UndoFor = 15 * time.Minute

// IsFresh reports whether a person made a commit on the pages within the last UndoFor.
func IsFresh(c space.Commit, now time.Time) bool {
	return space.IsWebTool(c.Tool) && now.Sub(c.Time) <= UndoFor
}

// FreshChange returns the commit whose ID is in an address that confirms the visitor's last
// change. ok is false unless the commit is fresh, because anybody can send such a link.
func (s *Site) FreshChange(v *Visit, m service.View, id space.CommitID) (c space.Commit, ok bool) {
	if !id.Valid() {
		return c, false
	}
	list, err := m.Log(v.R.Context(), space.LogQuery{From: id, Limit: 1})
	if err != nil || len(list) == 0 || list[0].ID != id || !IsFresh(list[0], s.Now()) {
		return c, false
	}
	return list[0], true
}
