package oauth

import (
	"slices"
	"strings"

	"satchel/auth"
)

const chatGPT = "https://chatgpt.com/"

// pinned returns the metadata document of a known vendor's client without fetching it. The
// vendors' hosts refuse some networks, and a sign-in should not wait for them. The document
// has only the members that the server uses.
func pinned(id string) (auth.Client, bool) {
	c := auth.Client{ID: id, Kind: auth.ClientDocument}
	switch id {
	case "https://claude.ai/oauth/mcp-oauth-client-metadata":
		c.Name, c.URI = "Claude", "https://claude.ai"
		c.RedirectURIs = []string{"https://claude.ai/api/mcp/auth_callback", "https://claude.com/api/mcp/auth_callback"}
	case "https://claude.ai/oauth/claude-code-client-metadata":
		c.Name, c.URI = "Claude Code", "https://claude.ai"
		c.RedirectURIs = []string{"http://localhost/callback", "http://127.0.0.1/callback"}
	case chatGPT + "oauth/client.json":
		c.Name, c.URI = "ChatGPT", "https://chatgpt.com"
		c.RedirectURIs = []string{chatGPT + "connector_platform_oauth_redirect"}
	case chatGPT + "oauth/codex/client.json":
		c.Name, c.URI = "Codex", "https://chatgpt.com"
		c.RedirectURIs = []string{"http://127.0.0.1/callback", "http://localhost/callback"}
	case "https://vscode.dev/oauth/client-metadata.json":
		c.Name, c.URI = "Visual Studio Code", "https://code.visualstudio.com"
		c.RedirectURIs = []string{"http://127.0.0.1:33418/", "https://vscode.dev/redirect"}
	default:
		// Each connector of ChatGPT has its own document too.
		app, begins := strings.CutPrefix(id, chatGPT+"oauth/")
		app, ends := strings.CutSuffix(app, "/client.json")
		if !begins || !ends || !isName(app) {
			return auth.Client{}, false
		}
		c.Name, c.URI = "ChatGPT", "https://chatgpt.com"
		c.RedirectURIs = []string{chatGPT + "connector/oauth/" + app, chatGPT + "connector_platform_oauth_redirect"}
	}
	return c, true
}

// isName reports whether s is one plain segment of a path.
func isName(s string) bool {
	return s != "" && len(s) <= 128 && !slices.ContainsFunc([]byte(s), func(c byte) bool {
		return !(c|0x20 >= 'a' && c|0x20 <= 'z' || c >= '0' && c <= '9' || c == '-' || c == '_')
	})
}
