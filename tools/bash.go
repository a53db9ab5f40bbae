package tools

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"unicode"

	"satchel/internal/fault"
	"satchel/internal/space"
)

func (s *Set) bash(ctx context.Context, c Caller, raw json.RawMessage, p Progress) (Result, error) {
	return s.runBash(ctx, c, raw, p, nameBash, "command", "comment", "background")
}

func (s *Set) bashReadonly(ctx context.Context, c Caller, raw json.RawMessage, p Progress) (Result, error) {
	return s.runBash(ctx, c, raw, p, nameBashReadonly, "command", "background")
}

// runBash answers with an error if the command did not run, a limit ended it, its end
// is not known, or its changes were not saved. A command that ran and failed is no
// error: grep exits with 1 if nothing matches.
func (s *Set) runBash(ctx context.Context, c Caller, raw json.RawMessage, p Progress, name string, known ...string) (Result, error) {
	a := parseArguments(raw, s.o.Limits.ArgumentBytes, known...)
	r := RunRequest{
		User: c.User, Space: c.Space, Author: c.Author, Client: c.Client, Tool: name,
		Command:    a.required("command", `"grep -rn deploy knowledge"`),
		Comment:    commitMessage(a.text("comment")),
		Background: a.flag("background"),
		ReadOnly:   name == nameBashReadonly,
	}
	if r.ReadOnly {
		a.explain("comment", fmt.Sprintf("The argument \"comment\" is for %s alone: %s changes nothing that a commit could describe. Leave it out.",
			s.o.Prefix+nameBash, s.o.Prefix+name))
	}
	switch {
	case len(r.Command) > s.o.Limits.CommandBytes:
		a.problem("The argument \"command\" has %s, and %s are allowed: write long content in several commands.",
			plural(len(r.Command), "byte", "bytes"), thousands(int64(s.o.Limits.CommandBytes)))
	case strings.ContainsRune(r.Command, 0):
		a.problem("The argument \"command\" holds a NUL character, which no shell command can.")
	}
	if err := a.err(); err != nil {
		return Result{}, err
	}
	if s.o.Runner == nil {
		return Result{}, fault.New(fault.Unavailable, "%s", s.noSandbox())
	}
	res, err := s.o.Runner.Run(ctx, r, p)
	if err != nil {
		return Result{}, err
	}
	writer := ""
	if slices.Contains(c.Scopes, space.ScopeWrite) {
		writer = s.o.Prefix + nameBash
	}
	return Result{
		Content: []Content{{Text: bashText(r, res, writer)}},
		Meta:    bashMeta(r, res),
		IsError: res.NotSaved != "" || res.End != RunExited && res.End != RunJob,
	}, nil
}

// noSandbox says why bash cannot run here and what works instead.
func (s *Set) noSandbox() string {
	return fmt.Sprintf("bash cannot run on this server: %s Nothing was run. %s and %s still work.",
		sentence(s.o.RunnerProblem()), s.o.Prefix+nameSearch, s.o.Prefix+nameRead)
}

// Limits of a comment: git shows the first line of a message in lists.
const (
	maxSubjectChars = 72
	maxCommentChars = 2000
)

// commitMessage makes a commit message of a comment: one line of at most 72
// characters and, where there is more, a body of one paragraph. Line breaks
// become blanks and control characters go, so that a comment can neither forge
// the trailers that name the tool and the client nor write to a terminal.
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

// sentence ends a text with a full stop.
func sentence(s string) string {
	s = strings.TrimSpace(s)
	if s == "" || strings.HasSuffix(s, ".") || strings.HasSuffix(s, "!") || strings.HasSuffix(s, "?") {
		return s
	}
	return s + "."
}
