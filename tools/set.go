package tools

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"satchel/internal/fault"
	"satchel/internal/space"
)

// tool is one tool with what runs it. Its Name has no prefix.
type tool struct {
	Tool
	run func(ctx context.Context, c Caller, raw json.RawMessage, p Progress) (Result, error)
}

// The names, without a prefix.
const (
	nameInstructions = "instructions"
	nameSearch       = "search"
	nameRead         = "read"
	nameFetch        = "fetch"
	nameBashReadonly = "bash_readonly"
	nameBash         = "bash"
)

func (s *Set) allTools() []tool {
	readonly, bash := describeBashReadonly, describeBash
	if s.o.Runner == nil {
		readonly, bash = describeBashOff, describeBashOff
	}
	return []tool{
		{Tool{
			Name: nameInstructions, Title: "Instructions and memory", Description: s.named(describeInstructions),
			InputSchema: schema(noArguments), Scope: space.ScopeRead,
			ReadOnly: true, Idempotent: true,
		}, s.instructions},
		{Tool{
			Name: nameSearch, Title: "Search knowledge and memory", Description: s.named(describeSearch),
			InputSchema: schema(searchInput), OutputSchema: schema(searchOutput), Scope: space.ScopeRead,
			ReadOnly: true, Idempotent: true,
		}, s.search},
		{Tool{
			Name: nameFetch, Title: "Fetch one document", Description: s.named(describeFetch),
			InputSchema: schema(fetchInput), OutputSchema: schema(fetchOutput), Scope: space.ScopeRead,
			ReadOnly: true, Idempotent: true,
		}, s.fetch},
		{Tool{
			Name: nameRead, Title: "Read or list files", Description: s.named(describeRead),
			InputSchema: schema(readInput), Scope: space.ScopeRead,
			ReadOnly: true, Idempotent: true,
		}, s.read},
		{Tool{
			Name: nameBashReadonly, Title: "Run bash, read-only", Description: s.named(readonly),
			InputSchema: schema(bashReadonlyInput), Scope: space.ScopeRead,
			ReadOnly: true,
		}, s.bashReadonly},
		{Tool{
			Name: nameBash, Title: "Run bash and commit changes", Description: s.named(bash),
			InputSchema: schema(bashInput), Scope: space.ScopeWrite,
			// A command may delete files; history keeps them, but a person
			// should be asked all the same.
			Destructive: true,
		}, s.bash},
	}
}

// named puts tools' listed names in place of {read} and the like.
func (s *Set) named(text string) string {
	var pairs []string
	for _, n := range []string{nameInstructions, nameSearch, nameRead, nameFetch, nameBashReadonly, nameBash} {
		pairs = append(pairs, "{"+n+"}", s.o.Prefix+n)
	}
	return strings.NewReplacer(pairs...).Replace(text)
}

// chatGPT tells whether the caller is listed, and answered in, the forms that
// ChatGPT's deep research demands.
func (s *Set) chatGPT(c Caller) bool {
	return c.ChatGPT
}

// List returns the tools that the caller's scopes allow, always in the same
// order.
func (s *Set) List(_ context.Context, c Caller) []Tool {
	chat := s.chatGPT(c)
	var list []Tool
	for _, t := range s.tools {
		if !slices.Contains(c.Scopes, t.Scope) || t.Name == nameFetch && !chat {
			continue
		}
		if t.Name == nameSearch && chat {
			t.InputSchema, t.OutputSchema = schema(chatGPTSearchInput), schema(chatGPTSearchOutput)
			t.Description = s.named(describeChatGPTSearch)
		}
		t.Tool.Name = s.o.Prefix + t.Name
		list = append(list, t.Tool)
	}
	return list
}

// Find returns a tool by its listed name, whatever a caller may do with it and
// whether or not it is listed.
func (s *Set) Find(name string) (Tool, bool) {
	t, ok := s.find(name)
	t.Tool.Name = name
	return t.Tool, ok
}

func (s *Set) find(name string) (tool, bool) {
	bare, ok := strings.CutPrefix(name, s.o.Prefix)
	if ok {
		for _, t := range s.tools {
			if t.Name == bare {
				return t, true
			}
		}
	}
	return tool{}, false
}

// Call runs a tool. What the model can mend (bad arguments, a missing file, a
// limit, no sandbox) is a Result with IsError. The errors are
// fault.NotFound (no such tool), fault.Forbidden (the caller lacks the scope),
// fault.Canceled, and others that are internal. p may be nil.
func (s *Set) Call(ctx context.Context, c Caller, name string, args json.RawMessage, p Progress) (Result, error) {
	t, ok := s.find(name)
	if !ok {
		var known []string
		for _, l := range s.List(ctx, c) {
			known = append(known, l.Name)
		}
		if near := nearest(name, known); near != "" {
			return Result{}, fault.New(fault.NotFound, "There is no tool %q. Did you mean %q?", clip(name, 64), near)
		}
		return Result{}, fault.New(fault.NotFound, "There is no tool %q. The tools are %s.", clip(name, 64), strings.Join(known, ", "))
	}
	if err := need(c, t.Scope, "The tool "+name); err != nil {
		return Result{}, err
	}
	if p == nil {
		p = func(float64, float64, string) {}
	}
	r, err := t.run(ctx, c, args, p)
	if err == nil {
		return r, nil
	}
	return s.failed(ctx, name, err)
}

// need checks a scope.
func need(c Caller, scope space.Scope, what string) error {
	if slices.Contains(c.Scopes, scope) {
		return nil
	}
	return fault.New(fault.Forbidden, "%s needs the scope %q, which this connection was not given.", what, scope)
}

// failed tells a fault that the caller can act on as a Result, and returns the
// rest.
func (s *Set) failed(ctx context.Context, name string, err error) (Result, error) {
	if ctx.Err() != nil || errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		return Result{}, fault.Wrap(err, fault.Canceled, "The call was canceled.")
	}
	switch fault.CodeOf(err) {
	case fault.Invalid, fault.NotFound, fault.Conflict, fault.TooLarge, fault.Limited, fault.Unavailable, fault.Damaged:
	case fault.Internal:
		return Result{}, fmt.Errorf("tool %s: %w", name, err)
	default:
		return Result{}, err
	}
	text := fault.PublicOf(err)
	var f *fault.Error
	if errors.As(err, &f) && f.RetryAfter > 0 {
		text += fmt.Sprintf("\nTry again in %s.", max(f.RetryAfter.Round(time.Second), time.Second))
	}
	return Result{
		Content: []Content{{Text: text}},
		Meta:    map[string]any{"error": string(fault.CodeOf(err))},
		IsError: true,
	}, nil
}

// structured makes the answer of a tool with an output schema: the value, and
// the same JSON as the one text content.
func structured(v any) (Result, error) {
	var buf bytes.Buffer
	enc := json.NewEncoder(&buf)
	enc.SetEscapeHTML(false) // \u003c would cost a model six characters for each <
	if err := enc.Encode(v); err != nil {
		return Result{}, err
	}
	b := bytes.TrimSuffix(buf.Bytes(), []byte("\n"))
	return Result{Content: []Content{{Text: string(b)}}, Structured: b}, nil
}
