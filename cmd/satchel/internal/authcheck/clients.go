package authcheck

// client is a kind of client that people connect.
type client int

const (
	claude client = iota
	claudeCode
	chatGPT
	cursor
	vsCode
	tools
	clients // the number of clients
)

func allClients() (all []client) {
	for c := range clients {
		all = append(all, c)
	}
	return all
}

// hosted returns the clients that run on their vendor's machines. For these, the server must be
// on the public internet.
func hosted() []client { return []client{claude, chatGPT} }

func (c client) name() string {
	return [...]string{"Claude (web, Desktop, mobile)", "Claude Code", "ChatGPT", "Cursor", "VS Code", "mcp-remote, Inspector"}[c]
}

func names(cs []client) (all []string) {
	for _, c := range cs {
		all = append(all, c.name())
	}
	return all
}

// reason is the reason why a client may not connect.
type reason struct {
	verdict Verdict
	why     string
}

// blame records the first reason against each client. A reason with Cannot replaces one with
// Doubtful.
func (c *checker) blame(v Verdict, why string, who []client) {
	for _, id := range who {
		if r, ok := c.reasons[id]; !ok || v == Cannot && r.verdict != Cannot {
			c.reasons[id] = reason{v, why}
		}
	}
}

// known is a client with a metadata document. The client uses the same id at every server. redirect
// is a redirect URI that the client sends.
type known struct {
	client       client
	id, redirect string
}

// knownClients returns clients from the vendors' documents. ChatGPT uses the same redirect URI
// for all its connectors if the server's answers name their issuer (RFC 9207).
func knownClients() []known {
	return []known{
		{claude, "https://claude.ai/oauth/mcp-oauth-client-metadata", "https://claude.ai/api/mcp/auth_callback"},
		{claudeCode, "https://claude.ai/oauth/claude-code-client-metadata", "http://localhost:49152/callback"},
		{claudeCode, "https://claude.ai/oauth/claude-code-client-metadata", "http://127.0.0.1:49153/callback"},
		{chatGPT, "https://chatgpt.com/oauth/client.json", "https://chatgpt.com/connector_platform_oauth_redirect"},
		{vsCode, "https://vscode.dev/oauth/client-metadata.json", "http://127.0.0.1:33418/"},
		{vsCode, "https://vscode.dev/oauth/client-metadata.json", "https://vscode.dev/redirect"},
	}
}
