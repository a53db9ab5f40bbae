package integrations

import "strings"

// claudeCode returns the plugin for Claude Code. Its directory is also a marketplace that
// lists the plugin.
func claudeCode(mcp string) Client {
	return Client{
		Slug: "claude-code", Name: "Claude Code",
		About:   "This plugin connects the server. It reminds Claude to recall when a conversation begins, and to\nsave before a conversation is summarized or ends. It adds the commands `/satchel:remember` and\n`/satchel:recall`.",
		Command: "claude mcp add --transport http --scope user " + ServerName + " '" + mcp + "'",
		install: func(dir string) string {
			return "claude plugin install " + ServerName + " --marketplace " + dir + " --config url='" + mcp + "'"
		},
		Files: []File{
			{".claude-plugin/marketplace.json", marketplaceJSON},
			{".claude-plugin/plugin.json", strings.ReplaceAll(pluginJSON, "{URL}", mcp)},
			{"commands/recall.md", commandMarkdown(recallAbout, "[what to find]", recallPrompt, "instructions", "search", "read")},
			{"commands/remember.md", commandMarkdown(rememberAbout, "[what to save]", rememberPrompt, "remember")},
			{"hooks/hooks.json", hooksJSON},
			{"hooks/start.txt", atStart},
			{"hooks/stop.json", compact(map[string]any{"hookSpecificOutput": map[string]string{"hookEventName": "Stop", "additionalContext": beforeStop}}) + "\n"},
			{"hooks/stop.sh", stopScript},
			{"hooks/summarize.txt", beforeSummary},
			{"hooks/summarized.txt", afterSummary},
			{"skills/memory/SKILL.md", "---\nname: memory\ndescription: " + skillAbout + "\n---\n\n# Satchel\n\n" + whole()},
		},
	}
}

const marketplaceJSON = `{
  "name": "satchel",
  "owner": {"name": "Satchel"},
  "description": "Satchel's plugin for Claude Code",
  "plugins": [
    {
      "name": "satchel",
      "source": "./",
      "description": "Recall from Satchel and save to it without being asked"
    }
  ]
}
`

const pluginJSON = `{
  "name": "satchel",
  "version": "` + version + `",
  "description": "Recall from Satchel and save to it without being asked",
  "author": {"name": "Satchel"},
  "license": "Apache-2.0",
  "userConfig": {
    "url": {
      "type": "string",
      "title": "MCP address",
      "description": "The MCP address of your Satchel server",
      "default": "{URL}"
    }
  },
  "mcpServers": {
    "satchel": {"type": "http", "url": "${user_config.url}"}
  }
}
`

// hooksJSON configures the reminders. A conversation that continues after a summary begins
// with the source "compact". A resumed conversation ("resume") still contains the first
// reminder.
const hooksJSON = `{
  "hooks": {
    "SessionStart": [
      {
        "matcher": "startup|clear",
        "hooks": [{"type": "command", "command": "cat \"${CLAUDE_PLUGIN_ROOT}/hooks/start.txt\""}]
      },
      {
        "matcher": "compact",
        "hooks": [{"type": "command", "command": "cat \"${CLAUDE_PLUGIN_ROOT}/hooks/summarized.txt\""}]
      }
    ],
    "PreCompact": [
      {
        "hooks": [{"type": "command", "command": "cat \"${CLAUDE_PLUGIN_ROOT}/hooks/summarize.txt\""}]
      }
    ],
    "Stop": [
      {
        "hooks": [{"type": "command", "command": "sh \"${CLAUDE_PLUGIN_ROOT}/hooks/stop.sh\""}]
      }
    ]
  }
}
`

// stopScript searches the file of a conversation for lines as Claude Code writes them. If a
// later version writes other lines, the script prints nothing.
const stopScript = `#!/bin/sh
# Reminds Claude once in a conversation to save, if the user wrote at least five messages and
# nothing was saved. The script reads the file of the conversation, writes nothing, and does
# not use the network.
input=$(cat)
case $input in *'"stop_hook_active":true'*) exit 0 ;; esac
conversation=$(printf '%s' "$input" | sed -n 's/.*"transcript_path":"\([^"]*\)".*/\1/p')
[ -r "$conversation" ] || exit 0
grep -q '` + beforeStopBegins + `' "$conversation" && exit 0
grep '"type":"tool_use"' "$conversation" | grep -qE '"name":"mcp__[^"]*satchel__(remember|forget|write|edit|bash)"' && exit 0
[ "$(grep -c '"role":"user","content":"' "$conversation")" -ge 5 ] || exit 0
cat "${0%/*}/stop.json"
`

const skillAbout = "Recall from Satchel, the user's memory and knowledge, and save to it. Use it at the start of a conversation, before an answer about the user, their work or a documented product, and when you learn something that will matter later."

// commandMarkdown returns a command that people call by name. It can call the tools without
// asking for permission, both as tools of the plugin and as tools of a server that people
// added themselves.
func commandMarkdown(about, hint string, prompt func(argument string) string, tools ...string) string {
	var allowed []string
	for _, t := range tools {
		allowed = append(allowed, "mcp__plugin_satchel_satchel__"+t, "mcp__satchel__"+t)
	}
	return "---\ndescription: " + about + "\nargument-hint: \"" + hint + "\"\nallowed-tools: " + strings.Join(allowed, ", ") + "\n---\n\n" + prompt("$ARGUMENTS")
}
