package space

import "strings"

// Elsewhere stands for the tool of a commit that names one of MadeHere and that the
// server knows nothing of: whoever made it wrote that.
const Elsewhere = "git"

// MadeHere tells whether commits that name a tool are people's, by a page or a command,
// or the server's own. Anybody can write such a name into a commit: only those that the
// server knows to have made are believed; see Elsewhere. No AI has such a tool.
func MadeHere(tool string) bool {
	switch tool {
	case "web", "import", "restore", "satchel":
		return true
	}
	return strings.HasPrefix(tool, "web-")
}
