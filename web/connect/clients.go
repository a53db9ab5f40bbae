package connect

import (
	"encoding/base64"
	"encoding/json"
	"html/template"
	"net/url"
	"slices"
	"strings"

	"satchel/internal/service"
)

// client is a client that people can connect, with what they need for that.
type client struct {
	Slug, Name, About string
	// Public reports that the client runs elsewhere and reaches only public addresses.
	Public bool

	Command  string       // for a shell
	Snippet  string       // JSON for a file
	Open     template.URL // opens the program with everything filled in
	OpenWhat string
}

// Called returns the client's name for use in a sentence.
func (c client) Called() string {
	switch c.Slug {
	case "other":
		return "another client"
	case "key":
		return "a program with a key"
	}
	return c.Name
}

// isClient reports whether a name belongs to the client of a page. Clients choose their
// names; these are the ones in use today. name is the grant's own name if the client has
// not said another.
func isClient(slug string, g service.Grant, name string) bool {
	n := strings.NewReplacer(" ", "", "-", "", "_", "").Replace(strings.ToLower(name))
	says := func(words ...string) bool {
		return slices.ContainsFunc(words, func(w string) bool { return strings.Contains(n, w) })
	}
	switch slug {
	case "claude-code":
		return says("claudecode")
	case "claude-desktop": // uses a connector or runs a local program
		return says("claude", "anthropic") && !says("claudecode")
	case "claude": // uses only a connector
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
	return true // the page is not about a certain client
}

// serverName is the name of the server in the settings of clients.
const serverName = "satchel"

// desktopOf returns the settings with which Claude Desktop starts a command, as the server
// prints them at startup.
func desktopOf(command []string) string {
	return snippet(map[string]any{"mcpServers": map[string]any{serverName: struct {
		Command string   `json:"command"`
		Args    []string `json:"args"`
	}{command[0], command[1:]}}})
}

// clients returns the clients that have a page. Nothing in it is secret.
func (s *pages) clients() []client {
	mcp := s.MCPURL
	// A shell does not interpret text in single quotes.
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

// cursorLink returns Cursor's install link, which contains the configuration of the server
// as JSON in base64 (cursor.com/docs/context/mcp/install-links).
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

// Lines returns the number of lines of the snippet.
func (c client) Lines() int { return strings.Count(c.Snippet, "\n") + 1 }
