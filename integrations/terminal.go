package integrations

import "strings"

// openCode returns the settings and the instructions for opencode.
func openCode(mcp string) Client {
	return terminal(Client{
		Slug: "opencode", Name: "opencode",
		Command: "opencode mcp add " + ServerName + " --url '" + mcp + "'",
		Place:   "at the end of `~/.config/opencode/AGENTS.md`. Create the file if it is missing.", textFile: "AGENTS.md",
	}, "opencode.json", openCodeJSON, mcp)
}

// qwen returns the settings and the instructions for Qwen Code.
func qwen(mcp string) Client {
	return terminal(Client{
		Slug: "qwen-code", Name: "Qwen Code",
		Command: "qwen mcp add --transport http " + ServerName + " '" + mcp + "'",
		Place:   "at the end of `~/.qwen/QWEN.md`. Create the file if it is missing.", textFile: "QWEN.md",
	}, "settings.json", qwenJSON, mcp)
}

// copilot returns the settings and the instructions for GitHub Copilot CLI.
func copilot(mcp string) Client {
	return terminal(Client{
		Slug: "copilot-cli", Name: "Copilot CLI",
		Command: "copilot mcp add --transport http " + ServerName + " '" + mcp + "'",
		Place:   "at the end of `~/.copilot/copilot-instructions.md`. Create the file if it is missing.", textFile: "copilot-instructions.md",
	}, "mcp-config.json", copilotJSON, mcp)
}

// terminal adds the texts and files of a client that runs in a terminal and reads its
// instructions from one file. settings is the name of the file with the client's servers. format
// is the content of that file, with {URL} in place of the address mcp.
func terminal(c Client, settings, format, mcp string) Client {
	c.About = "These instructions make " + c.Name + " recall and save in every session."
	c.Text = "## Satchel\n\n" + whole()
	c.Settings = strings.ReplaceAll(format, "{URL}", mcp)
	c.Files = []File{{c.textFile, c.Text}, {settings, c.Settings}}
	return c
}

const openCodeJSON = `{
  "mcp": {
    "satchel": {
      "type": "remote",
      "url": "{URL}"
    }
  }
}
`

const qwenJSON = `{
  "mcpServers": {
    "satchel": {
      "httpUrl": "{URL}"
    }
  }
}
`

const copilotJSON = `{
  "mcpServers": {
    "satchel": {
      "type": "http",
      "url": "{URL}",
      "tools": ["*"]
    }
  }
}
`
