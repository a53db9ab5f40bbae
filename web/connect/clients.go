package connect

import (
	"encoding/base64"
	"encoding/json"
	"html/template"
	"net/url"
	"slices"
	"strings"

	"satchel/auth/store"
)

// client is one that people connect, and what is needed for that.
type client struct {
	Slug, Name, About string
	// Public reports that it runs elsewhere and reaches only public addresses.
	Public bool

	Command  string       // for a shell
	Snippet  string       // JSON for a file
	Open     template.URL // opens the program with everything filled in
	OpenWhat string
}

// Called is its name in a sentence.
func (c client) Called() string {
	switch c.Slug {
	case "other":
		return "another client"
	case "key":
		return "a program with a key"
	}
	return c.Name
}

// isClient reports whether who calls itself so may be the client of a page: clients name
// themselves as they please, and this knows what they do today. With a grant's own name
// it is asked for one that says nothing else.
func isClient(slug string, g store.GrantInfo, name string) bool {
	n := strings.NewReplacer(" ", "", "-", "", "_", "").Replace(strings.ToLower(name))
	says := func(words ...string) bool {
		return slices.ContainsFunc(words, func(w string) bool { return strings.Contains(n, w) })
	}
	switch slug {
	case "claude-code":
		return says("claudecode")
	case "claude-desktop": // by a connector, or as a program of this computer
		return says("claude", "anthropic") && !says("claudecode")
	case "claude": // by a connector alone
		return g.Kind != "key" && says("claude", "anthropic") && !says("claudecode")
	case "chatgpt":
		return says("chatgpt", "openai")
	case "cursor":
		return says("cursor")
	case "vscode":
		return says("visualstudiocode", "vscode") && !says("cursor")
	case "key":
		return g.Kind == "key" && !g.Stdio()
	}
	return true // a page of any client
}

// serverName is what the server is called in clients' settings.
const serverName = "satchel"

// desktopOf is what Claude Desktop is told to start for a server that is known by
// its command: the same as the server prints when it starts.
func desktopOf(command []string) string {
	return snippet(map[string]any{"mcpServers": map[string]any{serverName: struct {
		Command string   `json:"command"`
		Args    []string `json:"args"`
	}{command[0], command[1:]}}})
}

// clients are those that have a page. None of what they are given is a secret.
func (s *pages) clients() []client {
	mcp := s.MCPURL
	// A shell takes what is in single quotes as it is, and no address has one.
	quoted := "'" + strings.ReplaceAll(mcp, "'", "%27") + "'"
	return []client{
		{Slug: "claude-code", Name: "Claude Code", About: "one command in a terminal",
			Command: "claude mcp add --transport http --scope user " + serverName + " " + quoted},
		{Slug: "claude", Name: "Claude on the web", About: "a custom connector in the settings", Public: true},
		{Slug: "claude-desktop", Name: "Claude Desktop", About: "the same connector, or a local one",
			Snippet: snippet(map[string]any{"mcpServers": map[string]any{serverName: map[string]any{"command": "satchel", "args": []string{"stdio", "--url", mcp}, "env": map[string]string{"SATCHEL_TOKEN": "YOUR_KEY"}}}})},
		{Slug: "chatgpt", Name: "ChatGPT", About: "an app in developer mode", Public: true},
		{Slug: "cursor", Name: "Cursor", About: "a link that fills everything in",
			Snippet: snippet(map[string]any{"mcpServers": map[string]any{serverName: map[string]any{"url": mcp}}}),
			Open:    cursorLink(mcp), OpenWhat: "Add it to Cursor"},
		{Slug: "vscode", Name: "VS Code", About: "one command, or a file in the workspace",
			Command: "code --add-mcp '" + compact(map[string]string{"name": serverName, "type": "http", "url": strings.ReplaceAll(mcp, "'", "%27")}) + "'",
			Snippet: snippet(map[string]any{"servers": map[string]any{serverName: map[string]any{"type": "http", "url": mcp}}})},
		{Slug: "other", Name: "Any other client", About: "that speaks MCP and signs in by OAuth",
			Snippet: snippet(map[string]any{"mcpServers": map[string]any{serverName: map[string]any{"type": "http", "url": mcp}}})},
		{Slug: "key", Name: "Any other, with a key", About: "for programs that cannot sign in",
			Snippet: snippet(map[string]any{"mcpServers": map[string]any{serverName: map[string]any{"type": "http", "url": mcp, "headers": map[string]string{"Authorization": "Bearer YOUR_KEY"}}}})},
	}
}

// cursorLink is Cursor's install link: the configuration of the one server, as JSON
// in base64 (cursor.com/docs/context/mcp/install-links).
func cursorLink(mcp string) template.URL {
	q := url.Values{"name": {serverName}, "config": {base64.StdEncoding.EncodeToString([]byte(compact(map[string]string{"url": mcp})))}}
	return template.URL("cursor://anysphere.cursor-deeplink/mcp/install?" + q.Encode()) //nolint:gosec // made of this server's own address
}

func compact(v any) string {
	b, err := json.Marshal(v)
	if err != nil {
		return "" // it is made of text alone
	}
	return string(b)
}

func snippet(v any) string {
	b, err := json.MarshalIndent(v, "", "  ")
	if err != nil {
		return "" // it is made of text alone
	}
	return string(b)
}

// Lines is how many the snippet has.
func (c client) Lines() int { return strings.Count(c.Snippet, "\n") + 1 }
