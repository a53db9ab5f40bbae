// Package integrations creates the files with which AI clients recall from Satchel and save
// to it without being asked: plugins, extensions, rules and settings. Call [For] first: it
// returns the clients with their files. The directories beside this file hold the files for
// a server at [ExampleURL].
package integrations

import (
	"encoding/json"
	"net/url"
	"slices"
	"strings"

	"satchel/internal/fault"
)

// ServerName is the name of the server in the settings of clients.
const ServerName = "satchel"

// ExampleURL is the MCP address in the committed files.
const ExampleURL = "http://127.0.0.1:8080/mcp"

// version is the version of the plugin and the extension. Clients compare it with the
// version that they installed, to find an update.
const version = "1.0.0"

// Client is an AI client. It holds the settings that connect the client to a server, and
// the files that make it recall and save.
type Client struct {
	Slug  string
	Name  string
	About string // what the files do

	Command  string // a shell command that adds the server
	Link     string // a link that adds the server when a browser opens it
	Settings string // the content of a file of settings that adds the server

	// Text is for people to paste. Place says where, and has code between backticks.
	// Place ends a sentence that begins with "Paste".
	Text, Place string

	Files []File
	// textFile is the path of the file with the text. project names the directories with the
	// files for one project.
	textFile, project string
	// install returns the shell command that installs the files of a directory. It is nil
	// if people copy or paste the files.
	install func(dir string) string
}

// File is a file of an integration.
type File struct {
	Path    string // relative to the directory of the client
	Content string
}

// For returns all clients. Their files connect to the server with the address mcp.
func For(mcp string) ([]Client, error) {
	mcp, err := address(mcp)
	if err != nil {
		return nil, err
	}
	all := []Client{claudeCode(mcp), claude(), chatGPT(), codex(mcp), cursor(mcp), vscode(mcp), gemini(mcp), openCode(mcp), qwen(mcp), copilot(mcp), other()}
	for i := range all {
		all[i].Files = append(all[i].Files, File{"README.md", all[i].readme(mcp)})
	}
	return all, nil
}

// address checks an MCP address, and returns it in a form that JSON, TOML and a shell can
// hold between quotes.
func address(mcp string) (string, error) {
	u, err := url.Parse(mcp)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" || u.User != nil || u.RawQuery != "" || u.Fragment != "" || strings.ContainsAny(u.String(), "\"<>\\") {
		return "", fault.New(fault.Invalid, "%q is not the address of an MCP server. Give one that looks like https://satchel.example.com/mcp.", mcp)
	}
	return strings.ReplaceAll(u.String(), "'", "%27"), nil
}

// Install returns the shell command that installs the files from the directory dir, or "".
func (c Client) Install(dir string) string {
	if c.install == nil {
		return ""
	}
	return c.install(dir)
}

// readme returns the text that explains the files.
func (c Client) readme(mcp string) string {
	var b strings.Builder
	b.WriteString("# Satchel for " + c.Name + "\n\n" + c.About + "\n")
	switch {
	case c.install != nil:
		b.WriteString("\n## Install\n\nRun this in the directory that contains this directory:\n\n    " + c.Install("./"+c.Slug) + "\n")
	case c.Command != "":
		b.WriteString("\n## Connect\n\nRun this in a terminal:\n\n    " + c.Command + "\n")
	case c.Link != "":
		b.WriteString("\n## Connect\n\nOpen this link:\n\n    " + c.Link + "\n")
	}
	if c.Text != "" {
		b.WriteString("\n## Instructions\n\nPaste the text of `" + c.textFile + "` " + c.Place + "\n")
	}
	if c.project != "" {
		b.WriteString("\nFor one project only, copy " + c.project + " into the project instead.\n")
	}
	if slices.ContainsFunc(c.Files, func(f File) bool { return strings.Contains(f.Content, mcp) }) {
		b.WriteString("\n## The server\n\nThe files name the server at " + mcp + ". They contain no key: the client signs in at the\nserver. To get the files for another server, run\n`satchel integration " + c.Slug + " --url URL`.\n")
	}
	return b.String()
}

// compact returns JSON without spaces.
func compact(v any) string {
	b, _ := json.Marshal(v) // cannot fail, because v contains only strings
	return string(b)
}
