package integrations

import (
	"encoding/base64"
	"net/url"
	"strings"
)

// pasted returns a client for which people paste the instructions.
func pasted(slug, name, about, place string) Client {
	return Client{Slug: slug, Name: name, About: about, Text: whole(), Place: place, textFile: "instructions.md", Files: []File{{"instructions.md", whole()}}}
}

func claude() Client {
	return pasted("claude", "Claude", "These instructions make Claude recall and save in every chat, on the web, in Claude Desktop and on\nphones.",
		"at claude.ai under Settings → Profile, into the field for your preferences.")
}

func chatGPT() Client {
	return pasted("chatgpt", "ChatGPT", "These instructions make ChatGPT recall and save in every chat in which the Satchel app is on.",
		"in ChatGPT under Settings → Personalization, into Custom instructions.")
}

func other() Client {
	return pasted("other", "other clients", "These instructions make a client recall and save.",
		"where the client takes instructions for all conversations.")
}

// codex returns the settings and the instructions for Codex.
func codex(mcp string) Client {
	text := "## Satchel\n\n" + whole()
	settings := "[mcp_servers." + ServerName + "]\nurl = \"" + mcp + "\"\n"
	return Client{
		Slug: "codex", Name: "Codex",
		About:    "These instructions make Codex recall and save in every session.",
		Command:  "codex mcp add " + ServerName + " --url '" + mcp + "'",
		Settings: settings,
		Text:     text, Place: "at the end of `~/.codex/AGENTS.md`. Create the file if it is missing.", textFile: "AGENTS.md",
		Files: []File{
			{"AGENTS.md", text},
			{"config.toml", settings},
		},
	}
}

// cursor returns the settings and the rule for Cursor.
func cursor(mcp string) Client {
	settings := strings.ReplaceAll(cursorJSON, "{URL}", mcp)
	return Client{
		Slug: "cursor", Name: "Cursor",
		About:    "This rule makes Cursor recall and save in every chat.",
		Link:     cursorLink(mcp),
		Settings: settings,
		Text:     whole(), Place: "into a new user rule, in the settings of Cursor under Rules.", textFile: "instructions.md", project: "`.cursor`",
		Files: []File{
			{".cursor/mcp.json", settings},
			{".cursor/rules/satchel.mdc", "---\ndescription: " + ruleAbout + "\nalwaysApply: true\n---\n\n" + whole()},
			{"instructions.md", whole()},
		},
	}
}

const ruleAbout = "Recall from Satchel and save to it"

const cursorJSON = `{
  "mcpServers": {
    "satchel": {
      "url": "{URL}"
    }
  }
}
`

// cursorLink returns Cursor's install link, which contains the settings of the server as
// JSON in base64 (cursor.com/docs/context/mcp/install-links).
func cursorLink(mcp string) string {
	q := url.Values{"name": {ServerName}, "config": {base64.StdEncoding.EncodeToString([]byte(compact(map[string]string{"url": mcp})))}}
	return "cursor://anysphere.cursor-deeplink/mcp/install?" + q.Encode()
}

// vscode returns the settings and the instructions for VS Code.
func vscode(mcp string) Client {
	settings := strings.ReplaceAll(vscodeJSON, "{URL}", mcp)
	file := "---\ndescription: " + ruleAbout + "\napplyTo: '**'\n---\n\n" + whole()
	return Client{
		Slug: "vscode", Name: "VS Code",
		About:    "These instructions make Copilot in VS Code recall and save in every chat.",
		Command:  "code --add-mcp '" + compact(map[string]string{"name": ServerName, "type": "http", "url": mcp}) + "'",
		Settings: settings,
		Text:     file, Place: "into a new instructions file: run `Chat: New Instructions File` from the command palette, choose your user profile, and name the file `satchel`.",
		textFile: ".github/instructions/satchel.instructions.md", project: "`.github` and `.vscode`",
		Files: []File{
			{".github/instructions/satchel.instructions.md", file},
			{".vscode/mcp.json", settings},
		},
	}
}

const vscodeJSON = `{
  "servers": {
    "satchel": {
      "type": "http",
      "url": "{URL}"
    }
  }
}
`

// gemini returns the extension for Gemini CLI.
func gemini(mcp string) Client {
	return Client{
		Slug: "gemini-cli", Name: "Gemini CLI",
		About:   "This extension connects the server, makes Gemini recall and save in every session, and adds the\ncommand `/recall`. Gemini also offers the server's prompts as commands: `/onboarding`, `/remember` and\n`/review`.",
		Command: "gemini mcp add --transport http --scope user " + ServerName + " '" + mcp + "'",
		install: func(dir string) string { return "gemini extensions install " + dir },
		Files: []File{
			{"gemini-extension.json", strings.ReplaceAll(extensionJSON, "{URL}", mcp)},
			{"GEMINI.md", "# Satchel\n\n" + whole()},
			{"commands/recall.toml", commandTOML(recallAbout, recallPrompt("{{args}}"))},
		},
	}
}

const extensionJSON = `{
  "name": "satchel",
  "version": "` + version + `",
  "description": "Recall from Satchel and save to it without being asked",
  "mcpServers": {
    "satchel": {
      "httpUrl": "{URL}"
    }
  },
  "contextFileName": "GEMINI.md"
}
`

// commandTOML returns a command of Gemini CLI. about must not contain a double quote, and
// prompt must not contain three single quotes.
func commandTOML(about, prompt string) string {
	return "description = \"" + about + "\"\nprompt = '''\n" + prompt + "'''\n"
}
