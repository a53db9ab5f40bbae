package tools

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"satchel/internal/service"
	"satchel/internal/space"
)

const nameForget = "forget"

func (s *Registry) forgetTool() tool {
	return tool{
		Tool: Tool{
			Name: nameForget, Title: "Forget facts", Description: describeForget,
			InputSchema: schema(forgetInput), Scope: space.ScopeWrite, Destructive: true, Idempotent: true,
		},
		run: s.forget, example: `{"keys":["preference/seat"]}`,
		docs: "removes facts about you",
	}
}

const describeForget = `Remove facts that are wrong or unwanted. To correct a fact, {remember} it again instead. Returns what was removed; the history keeps it.`

const forgetInput = `{
  "type": "object",
  "properties": {
    "keys": {"type": "array", "items": {"type": "string"}, "description": "type/key, such as preference/seat, or paths under memory/"},
    "query": {"type": "string", "description": "Instead of keys: removes the facts that have all these words, at most 20"}
  },
  "additionalProperties": false
}`

func (s *Registry) forget(ctx context.Context, c Caller, raw json.RawMessage, _ Progress) (Result, error) {
	a := parseArguments(raw, s.o.Limits.ArgumentBytes, "keys", "query")
	in := service.ForgetInput{Space: c.Space(), Paths: true, Query: a.text("query")}
	if _, ok := a.get("keys"); ok {
		in.Keys = a.texts("keys", `["preference/seat"]`, service.MaxFactsAtOnce)
	}
	if err := a.err(); err != nil {
		return Result{}, err
	}
	done, err := s.o.Service.Forget(ctx, c.Actor, in)
	if err != nil {
		return Result{}, err
	}
	var b strings.Builder
	names := []string{}
	for _, f := range done.Removed {
		names = append(names, f.Name())
		if f.Problem != "" {
			fmt.Fprintf(&b, "Removed %s.\n", quotePath(f.Name()))
			continue
		}
		fmt.Fprintf(&b, "Removed %s: %q%s.\n", oneLine(f.Name(), 200), oneLine(f.Value, 400), origin(f))
	}
	for _, k := range done.Missing {
		fmt.Fprintf(&b, "There is no fact %q.\n", clip(k, 100))
	}
	meta := map[string]any{"removed": names}
	switch {
	case done.Commit != "":
		fmt.Fprintf(&b, "The commit is %s. The user can revert it on the page Activity.\n", done.Commit.Short())
		meta["commit"] = string(done.Commit)
		c.Conversation.saved()
	case in.Query != "":
		b.WriteString("No fact contains all these words.\n")
	}
	return Result{Content: []Content{{Text: strings.TrimSuffix(b.String(), "\n")}}, Meta: meta, IsError: len(done.Removed) == 0}, nil
}
