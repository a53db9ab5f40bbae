package tools

import (
	"fmt"
	"strings"

	"satchel/internal/service"
	"satchel/tools/index/present"
)

// Tokens counts tokens as the limits do.
func Tokens(s string) int { return present.EstimateTokens(s) }

// CommitMessage makes a commit's message of a comment.
func CommitMessage(comment string) string { return commitMessage(comment) }

// BashResult is the answer of bash about a command.
func BashResult(readOnly bool, command, writer string, r service.CommandResult) Result {
	return bashResult(bashCall{service.RunCommandInput{Command: command}, readOnly, nameRemember}, r, writer)
}

// Seeded is what an untouched overview is known by.
const Seeded = seeded

// Examples returns a valid call's arguments for every tool, by the name without prefix.
func (s *Registry) Examples() map[string]string {
	out := map[string]string{}
	for _, t := range s.tools {
		out[t.Name] = t.example
	}
	return out
}

// Table is the table of tools in docs/mcp.md.
func (s *Registry) Table() string {
	var b strings.Builder
	b.WriteString("| tool | what it does |\n| --- | --- |\n")
	for _, t := range s.tools {
		fmt.Fprintf(&b, "| `%s` | %s |\n", t.Name, t.docs)
	}
	return b.String()
}

// FormOfChatGPT reports whether ChatGPT demands the exact form of a tool.
func (s *Registry) FormOfChatGPT(listed string) bool {
	t, _ := s.find(listed)
	return t.forChatGPT != nil
}
