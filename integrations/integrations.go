// Package integrations creates the files with which AI clients recall from Satchel and save
// to it without being asked: plugins, extensions, rules and settings. The directories beside
// this file hold the files for a server at ExampleURL.
package integrations

import (
	"encoding/json"
	"net/url"
	"strings"

	"satchel/internal/fault"
)

// ServerName is the name of the server in the settings of clients.
const ServerName = "satchel"

// ExampleURL is the MCP address in the committed files.
const ExampleURL = "http://127.0.0.1:8080/mcp"

// version is the version of the plugin and the extension. A client that copied the files
// compares it to find an update.
const version = "1.0.0"

// Client is an AI client, with what connects it to a server and what makes it recall and
// save.
type Client struct {
	Slug  string
	Name  string
	About string // what the files do

	Command  string // adds the server, in a shell
	Link     string // adds the server, if a browser opens it
	Settings string // adds the server, in a file of settings

	// Text is for people to paste. Place ends a sentence that begins with "Paste this text".
	Text, Place string

	Files []File
	// textFile is the file with the text, and project the directories of the files that are
	// for one project.
	textFile, project string
	// install installs the files of the directory DIR, in a shell. It is empty if people copy
	// or paste them.
	install string
}

// File is a file of an integration.
type File struct {
	Path    string // relative to the directory of the client
	Content string
}

// For returns all clients, for the server with the address mcp.
func For(mcp string) ([]Client, error) {
	mcp, err := address(mcp)
	if err != nil {
		return nil, err
	}
	all := []Client{claudeCode(mcp), claude(), chatGPT(), codex(mcp), cursor(mcp), vscode(mcp), gemini(mcp), other()}
	for i := range all {
		all[i].Files = append(all[i].Files, File{"README.md", all[i].readme(mcp)})
	}
	return all, nil
}

// address returns an MCP address that JSON, TOML and a shell can hold between quotes.
func address(mcp string) (string, error) {
	u, err := url.Parse(mcp)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" || u.User != nil || u.RawQuery != "" || u.Fragment != "" || strings.ContainsAny(u.String(), "\"<>\\") {
		return "", fault.New(fault.Invalid, "%q is not the address of an MCP server. Give one that looks like https://satchel.example.com/mcp.", mcp)
	}
	return strings.ReplaceAll(u.String(), "'", "%27"), nil
}

// Install returns the shell command that installs the files from the directory dir, or "".
func (c Client) Install(dir string) string { return strings.ReplaceAll(c.install, "DIR", dir) }

// readme returns the text that explains the files.
func (c Client) readme(mcp string) string {
	var b strings.Builder
	b.WriteString("# Satchel for " + c.Name + "\n\n" + c.About + "\n")
	switch {
	case c.install != "":
		b.WriteString("\n## Install\n\nRun this in the directory that contains this directory:\n\n    " + c.Install("./"+c.Slug) + "\n")
	case c.Command != "":
		b.WriteString("\n## Connect\n\n    " + c.Command + "\n")
	}
	if c.Link != "" {
		b.WriteString("\nOr open this link:\n\n    " + c.Link + "\n")
	}
	if c.Text != "" {
		b.WriteString("\n## Instructions\n\nPaste the text of `" + c.textFile + "` " + c.Place + "\n")
	}
	if c.project != "" {
		b.WriteString("\nFor one project only, copy " + c.project + " into the project instead.\n")
	}
	b.WriteString("\n## The server\n\nThe files name the server at " + mcp + ". They contain no key: the client signs in at the\nserver. To get the files for another server, run\n`satchel integration " + c.Slug + " --url URL`.\n")
	return b.String()
}

func compact(v any) string {
	b, _ := json.Marshal(v) // cannot fail: v consists of texts
	return string(b)
}
