package tools

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"unicode"

	"satchel/internal/fault"
	"satchel/internal/service"
	"satchel/internal/space"
)

const (
	nameBashReadonly = "bash_readonly"
	nameBash         = "bash"
)

func (s *Registry) bashReadonlyTool() tool {
	return tool{
		Tool: Tool{
			Name: nameBashReadonly, Title: "Run bash, read-only", Description: s.describeRunner(describeBashReadonly),
			InputSchema: schema(bashReadonlyInput), Scope: space.ScopeRead,
			ReadOnly: true,
		},
		run: s.bashReadonly, example: `{"command":"true"}`,
		docs: "runs a command that cannot change anything",
	}
}

func (s *Registry) bashTool() tool {
	return tool{
		Tool: Tool{
			Name: nameBash, Title: "Run bash and commit changes", Description: s.describeRunner(describeBash),
			InputSchema: schema(bashInput), Scope: space.ScopeWrite,
			// A command may delete files. History keeps them, but clients should still ask
			// their user.
			Destructive: true,
		},
		run: s.bash, example: `{"command":"true"}`,
		docs: "runs a command on the space in a sandbox, and commits the changes ([shell.md](shell.md))",
	}
}

// describeRunner returns text, or describeBashOff if no command can run.
func (s *Registry) describeRunner(text string) string {
	if s.o.Service.NoCommands() != "" {
		return describeBashOff
	}
	return text
}

// describeBashOff replaces the two descriptions below if no command can run.
const describeBashOff = `Do not call this: commands are switched off on this server, and every call fails. Use {search} and {read} to look things up, and {write} and {edit} to save texts.`

const describeBashReadonly = `Run bash to look at the user's files in ways that {search} and {read} cannot: rg, find, git log -p, jq, python3, a pipeline. Runs in a private sandbox without network, in /space, where a write fails; /library holds the shared documentation, and /tmp is writable. A command that takes more than about 45 seconds goes on as a background job. An exit code other than 0 is not an error of the tool.`

const describeBash = `Run bash to change, move or delete the user's files in /space, or to compute something from them; to look without changing, use {bash_readonly}, which has the same sandbox. Changes are committed and pushed when the command ends. For one text file, {write} or {edit} is faster. .git is read-only: to undo a change, git show COMMIT:path > path. Never save passwords, keys or tokens. The answer names each file that was not saved.`

const bashReadonlyInput = `{
  "type": "object",
  "properties": {
    "command": {"type": "string"},
    "background": {"type": "boolean", "description": "Answer at once"}
  },
  "required": ["command"],
  "additionalProperties": false
}`

const bashInput = `{
  "type": "object",
  "properties": {
    "command": {"type": "string"},
    "comment": {"type": "string", "description": "Why, in one line: the message of the commit"},
    "background": {"type": "boolean", "description": "Answer at once"}
  },
  "required": ["command"],
  "additionalProperties": false
}`

func (s *Registry) bash(ctx context.Context, c Caller, raw json.RawMessage, p Progress) (Result, error) {
	return s.runBash(ctx, c, raw, p, nameBash, "command", "comment", "background")
}

func (s *Registry) bashReadonly(ctx context.Context, c Caller, raw json.RawMessage, p Progress) (Result, error) {
	return s.runBash(ctx, c, raw, p, nameBashReadonly, "command", "background")
}

// runBash returns an error if the command did not run. The Result has IsError if something ended
// the command early, or if its changes were not saved. A command that ran and failed is not an
// error: grep exits with 1 if nothing matches.
func (s *Registry) runBash(ctx context.Context, c Caller, raw json.RawMessage, p Progress, name string, known ...string) (Result, error) {
	a := parseArguments(raw, s.o.Limits.ArgumentBytes, known...)
	q := bashCall{readOnly: name == nameBashReadonly, remember: s.o.Prefix + nameRemember, RunCommandInput: service.RunCommandInput{
		Space: c.Space(), Tool: name,
		Command:    a.required("command", `"grep -rn deploy knowledge"`),
		Comment:    commitMessage(a.text("comment")),
		Background: a.flag("background"),
	}}
	if q.readOnly {
		a.explain("comment", fmt.Sprintf("The argument \"comment\" is for %s alone: %s changes nothing that a commit could describe. Leave it out.",
			s.o.Prefix+nameBash, s.o.Prefix+name))
	}
	switch {
	case len(q.Command) > s.o.Limits.CommandBytes:
		a.problem("The argument \"command\" has %s, and %s are allowed: write long content in several commands.",
			plural(len(q.Command), "byte", "bytes"), thousands(int64(s.o.Limits.CommandBytes)))
	case strings.ContainsRune(q.Command, 0):
		a.problem("The argument \"command\" contains a NUL character, which a shell command cannot contain.")
	}
	if err := a.err(); err != nil {
		return Result{}, err
	}
	if why := s.o.Service.NoCommands(); why != "" {
		return Result{}, fault.New(fault.Unavailable, "bash cannot run on this server: %s Nothing was run. %s and %s still work.",
			why, s.o.Prefix+nameSearch, s.o.Prefix+nameRead)
	}
	steps := 0
	ctx = service.WithProgress(ctx, func(step string) {
		steps++
		p(float64(steps), 0, step)
	})
	run := s.o.Service.RunCommand
	if q.readOnly {
		run = s.o.Service.RunReadOnlyCommand
	}
	r, err := run(ctx, c.Actor, q.RunCommandInput)
	if err != nil {
		return Result{}, err
	}
	writer := ""
	if c.Can(space.ScopeWrite) {
		writer = s.o.Prefix + nameBash
	}
	out := bashResult(q, r, writer)
	var written []space.Path
	for _, k := range r.Commits {
		for _, f := range k.Files {
			written = append(written, f.Path)
		}
	}
	s.addUnlisted(ctx, c, written, &out)
	s.remind(c, written, &out)
	return out, nil
}

// bashCall is a call of bash or bash_readonly.
type bashCall struct {
	service.RunCommandInput
	readOnly bool
	remember string // the name under which the remember tool is listed
}

func bashResult(q bashCall, r service.CommandResult, writer string) Result {
	return Result{
		Content: []Content{{Text: bashText(q, r, writer)}},
		Meta:    bashMeta(q, r),
		IsError: r.NotSaved != nil || r.End != service.Exited && r.End != service.Detached,
	}
}

// Limits of a commit message. The first line is short, because git shows it in lists.
const (
	maxSubjectChars = 72
	maxCommentChars = 2000
)

// commitMessage converts a comment to a commit message: one line of at most 72 characters and, if
// the comment is longer, a body of one paragraph. It replaces line breaks with blanks and removes
// control characters. So a comment can neither forge the trailers that name the tool and the
// client, nor control a terminal.
func commitMessage(comment string) string {
	clean := strings.Map(func(r rune) rune {
		if unicode.IsSpace(r) {
			return ' '
		}
		if unicode.IsControl(r) || unicode.In(r, unicode.Bidi_Control) || r == unicode.ReplacementChar {
			return -1
		}
		return r
	}, comment)
	clean = clip(strings.Join(strings.Fields(clean), " "), maxCommentChars)
	if runes := []rune(clean); len(runes) > maxSubjectChars {
		cut := maxSubjectChars - 1
		for i := cut; i > cut-30; i-- {
			if runes[i] == ' ' {
				cut = i
				break
			}
		}
		return strings.TrimRight(string(runes[:cut]), " ") + "…\n\n" + clean
	}
	return clean
}
