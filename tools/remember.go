package tools

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"satchel/internal/facts"
	"satchel/internal/service"
	"satchel/internal/space"
)

const nameRemember = "remember"

func (s *Registry) rememberTool() tool {
	return tool{
		Tool: Tool{
			Name: nameRemember, Title: "Remember facts", Description: describeRemember,
			InputSchema: schema(rememberInput), Scope: space.ScopeWrite, Idempotent: true,
		},
		run: s.remember, example: `{"facts":[{"type":"preference","key":"seat","value":"Prefers window seats"}]}`,
		docs: "saves facts about you ([memory.md](memory.md))",
	}
}

const describeRemember = `Save facts that will matter in later conversations, as soon as you learn them. One short fact per entry; a new value replaces the fact with the same type and key. What the user said wins over what you inferred. Do not save secrets, or facts that {instructions} listed.`

const rememberInput = `{
  "type": "object",
  "properties": {
    "facts": {
      "type": "array",
      "items": {
        "type": "object",
        "properties": {
          "type": {"type": "string", "description": "preference, person, project, decision, procedure or fact"},
          "key": {"type": "string", "description": "A short name, such as seat"},
          "value": {"type": "string", "description": "One sentence"},
          "explicit": {"type": "boolean", "description": "The user said it"},
          "confidence": {"type": "number", "description": "0 to 1"},
          "expires": {"type": "string", "description": "The last day on which it is true, such as 2027-01-31"}
        },
        "required": ["type", "key", "value"],
        "additionalProperties": false
      }
    }
  },
  "required": ["facts"],
  "additionalProperties": false
}`

func (s *Registry) remember(ctx context.Context, c Caller, raw json.RawMessage, _ Progress) (Result, error) {
	a := parseArguments(raw, s.o.Limits.ArgumentBytes, "facts")
	in := service.RememberInput{Space: c.Space(), Facts: a.statements("facts")}
	if err := a.err(); err != nil {
		return Result{}, err
	}
	done, err := s.o.Service.Remember(ctx, c.Actor, in)
	if err != nil {
		return Result{}, err
	}
	var b strings.Builder
	outcomes := []map[string]any{}
	failed := true
	for _, f := range done.Facts {
		b.WriteString(s.rememberedText(f))
		failed = failed && (f.Outcome == facts.Invalid || f.Outcome == facts.Refused)
		outcomes = append(outcomes, map[string]any{"type": f.Type, "key": f.Key, "outcome": string(f.Outcome)})
	}
	for _, w := range done.Warnings {
		fmt.Fprintf(&b, "Warning: %s: %s\n", w.Path, w.Why)
	}
	meta := map[string]any{"facts": outcomes}
	if done.Commit != "" {
		meta["commit"] = string(done.Commit)
	}
	if !failed {
		c.Conversation.saved()
	}
	return Result{Content: []Content{{Text: strings.TrimSuffix(b.String(), "\n")}}, Meta: meta, IsError: failed}, nil
}

// rememberedText says what happened to a fact, and names the facts that it may repeat or
// contradict.
func (s *Registry) rememberedText(f service.RememberedFact) string {
	name, value := f.Name(), oneLine(f.Value, 200)
	var b strings.Builder
	switch f.Outcome {
	case facts.Added:
		fmt.Fprintf(&b, "Saved %s: %q.\n", name, value)
	case facts.Replaced:
		fmt.Fprintf(&b, "Saved %s: %q.", name, value)
		if f.Before != nil {
			fmt.Fprintf(&b, " Replaced %q%s.", oneLine(f.Before.Value, 200), origin(*f.Before))
		}
		b.WriteByte('\n')
	case facts.Confirmed:
		fmt.Fprintf(&b, "Confirmed %s: %q.\n", name, value)
	case facts.Unchanged:
		fmt.Fprintf(&b, "%s was already saved: %q.\n", name, value)
	default:
		fmt.Fprintf(&b, "Not saved %s: %s\n", name, oneLine(f.Why, 500))
	}
	for _, x := range f.Alike {
		fmt.Fprintf(&b, "  Compare %s: %q%s. If both say the same, or one is no longer true, %s that one.\n", oneLine(x.Name(), 200), oneLine(x.Value, 200), origin(x), s.o.Prefix+nameForget)
	}
	return b.String()
}

// origin says where a fact comes from, in brackets.
func origin(f service.MemoryFact) string {
	about := []string{cmp.Or(oneLine(f.Attribution(), 100), "said by the user")}
	if f.Confirmed != "" {
		about = append(about, f.Confirmed)
	}
	return " (" + strings.Join(about, ", ") + ")"
}

// statements returns a list of facts.
func (a *arguments) statements(name string) []facts.Statement {
	const example = `[{"type":"preference","key":"seat","value":"Prefers window seats"}]`
	var out []facts.Statement
	a.objects(name, example, []string{"type", "key", "value", "explicit", "confidence", "expires"}, func(one *arguments) {
		out = append(out, facts.Statement{
			Type: one.required("type", `"preference"`), Key: one.required("key", `"seat"`), Value: one.required("value", `"Prefers window seats"`),
			Explicit: one.flag("explicit"), Confidence: one.fraction("confidence"), Expires: one.text("expires"),
		})
	})
	return out
}

// fraction returns a number between 0 and 1, or nil if the argument is not given.
func (a *arguments) fraction(name string) *float64 {
	v, ok := a.get(name)
	if !ok {
		return nil
	}
	var f float64
	if json.Unmarshal(v, &f) != nil || f < 0 || f > 1 {
		a.wrongType(name, "a number between 0 and 1", v)
		return nil
	}
	return &f
}
