//go:build conformance

package mcp

import (
	"context"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"strings"

	protocol "github.com/mark3labs/mcp-go/mcp"
	"github.com/mark3labs/mcp-go/server"
)

// stateSigner signs the requestState of protocol version 2026-07-28, which the client sends
// back. A changed state is refused, and a state is valid for one grant and tool.
type stateSigner struct{ key [32]byte }

func newStateSigner() stateSigner {
	var s stateSigner
	rand.Read(s.key[:]) // never fails
	return s
}

func (s stateSigner) sign(ctx context.Context, step string) string {
	rq := requestFrom(ctx)
	name, _, _ := rq.m.params.text("name")
	h := hmac.New(sha256.New, s.key[:])
	fmt.Fprintf(h, "%s\x00%s\x00%s", rq.p.Grant, name, step)
	return step + "." + base64.RawURLEncoding.EncodeToString(h.Sum(nil))
}

// verify returns the step in a state. ok is false if this server did not create the state
// for this grant and tool.
func (s stateSigner) verify(ctx context.Context, state string) (step string, ok bool) {
	step, _, _ = strings.Cut(state, ".")
	return step, hmac.Equal([]byte(s.sign(ctx, step)), []byte(state))
}

func form(message, field, kind string) protocol.ElicitationParams {
	return protocol.ElicitationParams{Message: message, RequestedSchema: map[string]any{
		"type": "object", "properties": map[string]any{field: map[string]any{"type": kind}}, "required": []string{field},
	}}
}

func sample(prompt string, maxTokens int) protocol.CreateMessageParams {
	return protocol.CreateMessageParams{MaxTokens: maxTokens,
		Messages: []protocol.SamplingMessage{{Role: protocol.RoleUser, Content: protocol.NewTextContent(prompt)}}}
}

// answered returns a field of an accepted form as text.
func answered(responses protocol.InputResponses, id, field string) (string, bool) {
	r := server.ElicitationResponse(responses, id)
	if r == nil || r.Action != protocol.ElicitationResponseActionAccept {
		return "", false
	}
	values, _ := r.Content.(map[string]any)
	v, ok := values[field]
	return fmt.Sprint(v), ok
}

func sampled(r *protocol.CreateMessageResult) string {
	switch c := r.Content.(type) {
	case protocol.TextContent:
		return c.Text
	case map[string]any:
		text, _ := c["text"].(string)
		return text
	}
	return ""
}

// legacyInputTools adds tools that ask the client for input during the call. From 2026-07-28 on,
// a tool asks through its result. For older clients, mcp-go sends the request.
func (f *fixtures) legacyInputTools() {
	f.tool("test_sampling", "Asks the client's model.", func(ctx context.Context, r protocol.CallToolRequest) (*protocol.CallToolResult, error) {
		if got := server.SamplingResponse(r.Params.InputResponses, "answer"); got != nil {
			return protocol.NewToolResultText("LLM response: " + sampled(got)), nil
		}
		return server.NewInputRequestBuilder("").Sample("answer", sample(r.GetString("prompt", ""), 100)).ToolResult(), nil
	}, protocol.WithString("prompt", protocol.Description("The prompt."), protocol.Required()))
	f.elicits("test_elicitation", "User response", map[string]any{
		"username": map[string]any{"type": "string", "description": "User's response"},
		"email":    map[string]any{"type": "string", "description": "User's email address"},
	}, []string{"username", "email"}, protocol.WithString("message", protocol.Description("What to ask."), protocol.Required()))
	f.elicits("test_streaming_elicitation", "User response", map[string]any{"name": map[string]any{"type": "string"}}, nil)
	f.elicits("test_elicitation_sep1034_defaults", "Elicitation completed", map[string]any{
		"name":     map[string]any{"type": "string", "default": "John Doe"},
		"age":      map[string]any{"type": "integer", "default": 30},
		"score":    map[string]any{"type": "number", "default": 95.5},
		"status":   map[string]any{"type": "string", "enum": []string{"active", "inactive", "pending"}, "default": "active"},
		"verified": map[string]any{"type": "boolean", "default": true},
	}, nil)
	titled := func(names ...string) []any {
		var out []any
		for i, n := range names {
			out = append(out, map[string]any{"const": fmt.Sprintf("value%d", i+1), "title": n})
		}
		return out
	}
	plain := []string{"option1", "option2", "option3"}
	f.elicits("test_elicitation_sep1330_enums", "Elicitation completed", map[string]any{
		"untitledSingle": map[string]any{"type": "string", "enum": plain},
		"titledSingle":   map[string]any{"type": "string", "oneOf": titled("First Option", "Second Option", "Third Option")},
		"legacyEnum":     map[string]any{"type": "string", "enum": []string{"opt1", "opt2", "opt3"}, "enumNames": []string{"Option One", "Option Two", "Option Three"}},
		"untitledMulti":  map[string]any{"type": "array", "items": map[string]any{"type": "string", "enum": plain}},
		"titledMulti":    map[string]any{"type": "array", "items": map[string]any{"anyOf": titled("First Choice", "Second Choice", "Third Choice")}},
	}, nil)
}

// elicits adds a tool that shows a form and returns the client's answer.
func (f *fixtures) elicits(name, says string, properties map[string]any, required []string, options ...protocol.ToolOption) {
	f.tool(name, "Asks the user.", func(_ context.Context, r protocol.CallToolRequest) (*protocol.CallToolResult, error) {
		if got := server.ElicitationResponse(r.Params.InputResponses, "form"); got != nil {
			return protocol.NewToolResultText(fmt.Sprintf("%s: action=%s, content=%v", says, got.Action, got.Content)), nil
		}
		schema := map[string]any{"type": "object", "properties": properties}
		if required != nil {
			schema["required"] = required
		}
		return server.NewInputRequestBuilder("").
			Elicit("form", protocol.ElicitationParams{Message: r.GetString("message", "Please answer."), RequestedSchema: schema}).ToolResult(), nil
	}, options...)
}

// inputTools adds the tools that test SEP-2322, in which a result asks the client for input.
func (f *fixtures) inputTools() {
	f.tool("test_input_required_result_elicitation", "Asks for a name.", func(_ context.Context, r protocol.CallToolRequest) (*protocol.CallToolResult, error) {
		if name, ok := answered(r.Params.InputResponses, "user_name", "name"); ok {
			return protocol.NewToolResultText("Hello, " + name + "!"), nil
		}
		return server.NewInputRequestBuilder("").Elicit("user_name", form("What is your name?", "name", "string")).ToolResult(), nil
	})
	f.tool("test_input_required_result_sampling", "Asks the model.", func(_ context.Context, r protocol.CallToolRequest) (*protocol.CallToolResult, error) {
		if got := server.SamplingResponse(r.Params.InputResponses, "capital_question"); got != nil {
			return protocol.NewToolResultText(sampled(got)), nil
		}
		return server.NewInputRequestBuilder("").Sample("capital_question", sample("What is the capital of France?", 100)).ToolResult(), nil
	})
	f.tool("test_input_required_result_list_roots", "Asks for roots.", func(_ context.Context, r protocol.CallToolRequest) (*protocol.CallToolResult, error) {
		if got := server.RootsResponse(r.Params.InputResponses, "client_roots"); got != nil {
			return protocol.NewToolResultText(fmt.Sprintf("%d roots: %v", len(got.Roots), got.Roots)), nil
		}
		return server.NewInputRequestBuilder("").Roots("client_roots").ToolResult(), nil
	})
	confirm := func(done string) toolFunc {
		return f.stateful(func(ctx context.Context, step string, r protocol.CallToolRequest) (*protocol.CallToolResult, error) {
			if _, ok := answered(r.Params.InputResponses, "confirm", "ok"); ok && step == "confirm" {
				return protocol.NewToolResultText(done), nil
			}
			return server.NewInputRequestBuilder(f.state.sign(ctx, "confirm")).Elicit("confirm", form("Please confirm", "ok", "boolean")).ToolResult(), nil
		})
	}
	f.tool("test_input_required_result_request_state", "Keeps state in the client.", confirm("state-ok"))
	f.tool("test_input_required_result_tampered_state", "Refuses state that it did not make.", confirm("state-ok"))
	f.tool("test_input_required_result_multiple_inputs", "Asks for three things.", f.stateful(func(ctx context.Context, step string, r protocol.CallToolRequest) (*protocol.CallToolResult, error) {
		name, ok := answered(r.Params.InputResponses, "user_name", "name")
		greeting := server.SamplingResponse(r.Params.InputResponses, "greeting")
		roots := server.RootsResponse(r.Params.InputResponses, "client_roots")
		if step == "asked" && ok && greeting != nil && roots != nil {
			return protocol.NewToolResultText(fmt.Sprintf("%s %s, with %d roots", sampled(greeting), name, len(roots.Roots))), nil
		}
		return server.NewInputRequestBuilder(f.state.sign(ctx, "asked")).
			Elicit("user_name", form("What is your name?", "name", "string")).
			Sample("greeting", sample("Generate a greeting", 50)).Roots("client_roots").ToolResult(), nil
	}))
	f.tool("test_input_required_result_multi_round", "Asks twice.", f.stateful(func(ctx context.Context, step string, r protocol.CallToolRequest) (*protocol.CallToolResult, error) {
		_, first := answered(r.Params.InputResponses, "step1", "name")
		color, second := answered(r.Params.InputResponses, "step2", "color")
		switch {
		case step == "two" && second:
			return protocol.NewToolResultText("Both answered; the color is " + color + "."), nil
		case step == "one" && first, step == "two":
			return server.NewInputRequestBuilder(f.state.sign(ctx, "two")).Elicit("step2", form("Step 2: What is your favorite color?", "color", "string")).ToolResult(), nil
		}
		return server.NewInputRequestBuilder(f.state.sign(ctx, "one")).Elicit("step1", form("Step 1: What is your name?", "name", "string")).ToolResult(), nil
	}))
	f.tool("test_input_required_result_capabilities", "Asks only for what the client can do.", func(ctx context.Context, r protocol.CallToolRequest) (*protocol.CallToolResult, error) {
		if len(r.Params.InputResponses) > 0 {
			return protocol.NewToolResultText("ok"), nil
		}
		b, any := server.NewInputRequestBuilder(""), false
		if declares(ctx, "elicitation") {
			b, any = b.Elicit("user_name", form("What is your name?", "name", "string")), true
		}
		if declares(ctx, "sampling") {
			b, any = b.Sample("greeting", sample("Generate a greeting", 50)), true
		}
		if !any {
			return protocol.NewToolResultText("Nothing to ask with."), nil
		}
		return b.ToolResult(), nil
	})
}

var errTampered = errors.New("tampered state")

// stateful checks the state that the client sends back before it calls run. step is empty
// if there is no state.
func (f *fixtures) stateful(run func(ctx context.Context, step string, r protocol.CallToolRequest) (*protocol.CallToolResult, error)) toolFunc {
	return func(ctx context.Context, r protocol.CallToolRequest) (*protocol.CallToolResult, error) {
		if r.Params.RequestState == "" {
			return run(ctx, "", r)
		}
		step, ok := f.state.verify(ctx, r.Params.RequestState)
		if !ok {
			requestFrom(ctx).failed = errorf(protocol.INVALID_PARAMS, "The requestState is not one of this server's.")
			return nil, errTampered
		}
		return run(ctx, step, r)
	}
}
