package tools

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"satchel/internal/fault"
	"satchel/internal/space"
)

// tool is a tool in the registry: the entry in lists, and the function that runs it. Its
// Name has no prefix. {name} in its description becomes the listed name of a tool.
type tool struct {
	Tool
	run func(ctx context.Context, c Caller, raw json.RawMessage, p Progress) (Result, error)
	// forChatGPT is the tool as ChatGPT's deep research sees it. If it is nil, ChatGPT sees
	// the same tool as other callers. With onlyChatGPT no other caller sees the tool.
	forChatGPT  *Tool
	onlyChatGPT bool
	// example is the arguments of a valid call, for tests of all tools.
	example string
	// docs says in docs/mcp.md what the tool does.
	docs string
}

// all lists every tool, in the order in which clients list them. Each tool is in the file with
// its name, except that bash_readonly is in bash.go.
func (s *Registry) all() []tool {
	return []tool{
		s.instructionsTool(), s.searchTool(), s.fetchTool(), s.readTool(), s.rememberTool(), s.forgetTool(), s.writeTool(), s.editTool(), s.bashReadonlyTool(), s.bashTool(),
	}
}

// named replaces each {name} with the listed name of the tool.
func (s *Registry) named(text string) string {
	var pairs []string
	for _, t := range s.tools {
		pairs = append(pairs, "{"+t.Name+"}", s.o.Prefix+t.Name)
	}
	return strings.NewReplacer(pairs...).Replace(text)
}

// List returns the tools that the caller's scopes allow, always in the same order.
func (s *Registry) List(_ context.Context, c Caller) []Tool {
	var list []Tool
	for _, t := range s.tools {
		if !c.Can(t.Scope) || t.onlyChatGPT && !c.ChatGPT {
			continue
		}
		form := t.Tool
		if c.ChatGPT && t.forChatGPT != nil {
			form = *t.forChatGPT
		}
		form.Name, form.Description = s.o.Prefix+form.Name, s.named(form.Description)
		list = append(list, form)
	}
	return list
}

// Find returns a tool by its listed name, even a tool that a caller may not call or does not see.
func (s *Registry) Find(name string) (Tool, bool) {
	t, ok := s.find(name)
	t.Tool.Name, t.Tool.Description = name, s.named(t.Description)
	return t.Tool, ok
}

func (s *Registry) find(name string) (tool, bool) {
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

// Call runs a tool. An error that the model should know (bad arguments, a missing file, a
// limit, no sandbox) is a Result with IsError. The returned error is a fault.NotFound (unknown
// tool), a fault.Forbidden (the caller lacks the scope), a fault.Canceled or internal. p
// may be nil.
func (s *Registry) Call(ctx context.Context, c Caller, name string, args json.RawMessage, p Progress) (Result, error) {
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

// need checks that the caller has a scope.
func need(c Caller, scope space.Scope, what string) error {
	if c.Can(scope) {
		return nil
	}
	return fault.New(fault.Forbidden, "%s needs the scope %q, which this connection was not given.", what, scope)
}

// failed converts an error that the model should know to a Result, and returns other errors.
func (s *Registry) failed(ctx context.Context, name string, err error) (Result, error) {
	if ctx.Err() != nil || errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		return Result{}, fault.Wrap(err, fault.Canceled, "The call was cancelled.")
	}
	switch fault.CodeOf(err) {
	case fault.Invalid, fault.NotFound, fault.Conflict, fault.Forbidden, fault.TooLarge, fault.Limited, fault.Unavailable, fault.Damaged:
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

// structured returns the result of a tool with an output schema: the value, and its JSON as
// the only text content.
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
