package connect

import (
	"cmp"
	"encoding/json"
	"html/template"
	"slices"
	"strings"

	"satchel/integrations"
	"satchel/internal/service"
)

// client is a client that people can connect, with the texts that they need for this.
type client struct {
	Slug, Name, About string
	// Mark is two letters that stand for the client in lists. Icon, if set, replaces Mark.
	Mark, Icon string
	// Public means that the client runs elsewhere and reaches only public addresses.
	Public bool

	Command  string       // for a shell
	Snippet  string       // settings for a file
	Open     template.URL // opens the program with everything filled in
	OpenWhat string

	Samples []sample // programs that use the server

	Install string // installs the integration, in a shell
	Text    string // the instructions to paste
	Place   string // where to paste them, with code between backticks
}

// Called returns the client's name for use in a sentence.
func (c client) Called() string {
	switch c.Slug {
	case "other":
		return "another client"
	case "key":
		return "a program with a key"
	case "code":
		return "your own agent"
	case "mcp-remote":
		return "a client through mcp-remote"
	}
	return c.Name
}

// isClient reports whether a name belongs to the client of a page. name is a name that the
// client sent, or the name of its grant. Clients choose their names; the words below are
// part of the names in use today.
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
		return says("chatgpt", "openai") && !says("codex")
	case "cursor":
		return says("cursor")
	case "vscode":
		return says("visualstudiocode", "vscode") && !says("cursor")
	case "copilot-cli":
		return says("copilot") && !says("visualstudiocode", "vscode")
	case "opencode", "qwen-code":
		return says(strings.TrimSuffix(slug, "-code"))
	case "mcp-remote": // adds a suffix to the name of the client that starts it
		return says("mcpremote", "mcpcliproxy")
	case "codex":
		return says("codex")
	case "gemini-cli":
		return says("gemini")
	case "key", "code":
		return g.Kind == "key" && !g.Stdio()
	}
	return true // the page is not about a certain client
}

// desktopOf returns the settings with which Claude Desktop starts a command, as the server
// prints them at startup.
func desktopOf(command []string) string {
	return snippet(map[string]any{"mcpServers": map[string]any{integrations.ServerName: struct {
		Command string   `json:"command"`
		Args    []string `json:"args"`
	}{command[0], command[1:]}}})
}

// clients returns the clients that have a page. The result contains no secrets.
func (s *pages) clients() []client {
	mcp := s.MCPURL
	all := []client{
		{Slug: "claude-code", Mark: "CC", Name: "Claude Code", About: "one command in a terminal, with a plugin"},
		{Slug: "claude", Mark: "Cl", Name: "Claude on the web", About: "a custom connector in the settings", Public: true},
		{Slug: "claude-desktop", Mark: "CD", Name: "Claude Desktop", About: "the same connector, or a local one",
			Snippet: snippet(map[string]any{"mcpServers": map[string]any{integrations.ServerName: map[string]any{"command": "satchel", "args": []string{"stdio", "--url", mcp}, "env": map[string]string{"SATCHEL_TOKEN": "YOUR_KEY"}}}})},
		{Slug: "chatgpt", Mark: "Gp", Name: "ChatGPT", About: "an app in developer mode", Public: true},
		{Slug: "codex", Mark: "Cx", Name: "Codex", About: "one command in a terminal"},
		{Slug: "cursor", Mark: "Cu", Name: "Cursor", About: "a link that fills everything in", OpenWhat: "Add Satchel to Cursor"},
		{Slug: "vscode", Mark: "VS", Name: "VS Code", About: "one command, or a file in the workspace"},
		{Slug: "gemini-cli", Mark: "Ge", Name: "Gemini CLI", About: "one command in a terminal, with an extension"},
		{Slug: "opencode", Mark: "oc", Name: "opencode", About: "two commands in a terminal"},
		{Slug: "qwen-code", Mark: "Qw", Name: "Qwen Code", About: "one command in a terminal"},
		{Slug: "copilot-cli", Mark: "Co", Name: "Copilot CLI", About: "one command in a terminal"},
		{Slug: "mcp-remote", Icon: "plug", Name: "Client for local servers only", About: "through the program mcp-remote",
			Snippet: snippet(map[string]any{"mcpServers": map[string]any{integrations.ServerName: map[string]any{"command": "npx", "args": []string{"-y", "mcp-remote", mcp}}}})},
		{Slug: "code", Icon: "code", Name: "Your own agent", About: "TypeScript, LangChain, the AI SDK, Python", Samples: samples(mcp, s.URL("/api"))},
		{Slug: "other", Icon: "ellipsis", Name: "Any other client", About: "that speaks MCP and signs in by OAuth",
			Snippet: snippet(map[string]any{"mcpServers": map[string]any{integrations.ServerName: map[string]any{"type": "http", "url": mcp}}})},
		{Slug: "key", Icon: "key-round", Name: "Any other, with a key", About: "for scripts that cannot sign in",
			Snippet: snippet(map[string]any{"mcpServers": map[string]any{integrations.ServerName: map[string]any{"type": "http", "url": mcp, "headers": map[string]string{"Authorization": "Bearer YOUR_KEY"}}}})},
	}
	for i := range all {
		s.integrate(&all[i])
	}
	return all
}

// integrate adds the commands and texts of the client's integration.
func (s *pages) integrate(c *client) {
	slug := c.Slug
	if slug == "claude-desktop" { // shares the preferences of the Claude account with the web
		slug = "claude"
	}
	x, ok := s.integration(slug)
	if !ok {
		return
	}
	c.Command, c.Open = x.Command, template.URL(x.Link) //nolint:gosec // consists of this server's own address
	c.Snippet = cmp.Or(c.Snippet, strings.TrimSuffix(x.Settings, "\n"))
	c.Text, c.Place = x.Text, x.Place
	const dir = "~/.satchel"
	if install := x.Install(dir + "/" + slug); install != "" {
		c.Install = "mkdir -p " + dir + " &&\ncurl -fsSL '" + strings.ReplaceAll(s.URL("/connect/"+slug+"/files.tar.gz"), "'", "%27") + "' |\ntar -xzf - -C " + dir + " &&\n" + install
	}
}

func (s *pages) integration(slug string) (integrations.Client, bool) {
	i := slices.IndexFunc(s.integrations, func(x integrations.Client) bool { return x.Slug == slug })
	if i < 0 {
		return integrations.Client{}, false
	}
	return s.integrations[i], true
}

func snippet(v any) string {
	b, err := json.MarshalIndent(v, "", "  ")
	if err != nil {
		return "" // cannot happen, because v contains only strings
	}
	return string(b)
}
