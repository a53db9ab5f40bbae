//go:build conformance

package mcp

import (
	"context"
	"fmt"
	"slices"
	"strings"

	protocol "github.com/mark3labs/mcp-go/mcp"
	"github.com/mark3labs/mcp-go/server"
)

// fixtures are the tools, resources and prompts that the protocol's
// conformance suite calls. Only a build with the tag "conformance" has any.
type fixtures struct {
	m         *server.MCPServer
	state     stateSigner
	tools     []string
	prompts   []string
	resources []string
}

func newFixtures() *fixtures { return &fixtures{state: newStateSigner()} }

func (f *fixtures) options() []server.ServerOption {
	return []server.ServerOption{server.WithToolCapabilities(true)}
}

func (f *fixtures) register(m *server.MCPServer) {
	f.m = m
	m.EnableSampling()
	f.contentTools()
	f.noticeTools()
	f.legacyInputTools()
	f.inputTools()
	f.addResources()
	f.addPrompts()
}

func (f *fixtures) hasTool(name string) bool { return slices.Contains(f.tools, name) }

func (f *fixtures) hasPrompt(name string) bool { return slices.Contains(f.prompts, name) }

func (f *fixtures) hasResource(uri string) bool {
	return slices.Contains(f.resources, uri) || strings.HasPrefix(uri, "test://template/")
}

// The smallest picture and sound that the suite's clients decode.
const (
	fixturePNG = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8DwHwAFBQIAX8jx0gAAAABJRU5ErkJggg=="
	fixtureWAV = "UklGRiYAAABXQVZFZm10IBAAAAABAAEAQB8AAAB9AAACABAAZGF0YQIAAAA="
)

type toolFunc func(context.Context, protocol.CallToolRequest) (*protocol.CallToolResult, error)

func (f *fixtures) tool(name, description string, run toolFunc, options ...protocol.ToolOption) {
	f.tools = append(f.tools, name)
	options = append(options, protocol.WithDescription(description), protocol.WithReadOnlyHintAnnotation(true),
		protocol.WithDestructiveHintAnnotation(false), protocol.WithIdempotentHintAnnotation(true), protocol.WithOpenWorldHintAnnotation(false))
	f.m.AddTool(protocol.NewTool(name, options...), server.ToolHandlerFunc(run))
}

func always(parts ...protocol.Content) toolFunc {
	return func(context.Context, protocol.CallToolRequest) (*protocol.CallToolResult, error) {
		return &protocol.CallToolResult{Content: parts}, nil
	}
}

func fixtureText(uri, mime, text string) protocol.TextResourceContents {
	return protocol.TextResourceContents{URI: uri, MIMEType: mime, Text: text}
}

func (f *fixtures) contentTools() {
	picture := protocol.NewImageContent(fixturePNG, "image/png")
	f.tool("test_simple_text", "Answers one text.", always(protocol.NewTextContent("This is a simple text response for testing.")))
	f.tool("test_image_content", "Answers one image.", always(picture))
	f.tool("test_audio_content", "Answers one sound.", always(protocol.NewAudioContent(fixtureWAV, "audio/wav")))
	f.tool("test_embedded_resource", "Answers an embedded resource.",
		always(protocol.NewEmbeddedResource(fixtureText("test://embedded-resource", "text/plain", "This is an embedded resource content."))))
	f.tool("test_multiple_content_types", "Answers a text, an image and a resource.",
		always(protocol.NewTextContent("Multiple content types test:"), picture,
			protocol.NewEmbeddedResource(fixtureText("test://mixed-content-resource", "application/json", `{"test":"data","value":123}`))))
	f.tool("test_error_handling", "Always fails.", func(context.Context, protocol.CallToolRequest) (*protocol.CallToolResult, error) {
		return protocol.NewToolResultError("This tool intentionally returns an error for testing"), nil
	})
	f.tool("test_header_param", "Has an argument that travels in a header.", always(protocol.NewTextContent("ok")),
		protocol.WithString("region", protocol.Description("A region."), func(schema map[string]any) { schema["x-mcp-header"] = "Region" }))
	schema := protocol.NewToolWithRawSchema("json_schema_2020_12_tool", "Has a schema with words of JSON Schema 2020-12.", []byte(`{
		"$schema": "https://json-schema.org/draft/2020-12/schema", "type": "object",
		"$defs": {"address": {"$anchor": "addressDef", "type": "object", "properties": {"street": {"type": "string"}, "city": {"type": "string"}}}},
		"properties": {"name": {"type": "string"}, "address": {"$ref": "#/$defs/address"},
			"contactMethod": {"type": "string", "enum": ["phone", "email"]}, "phone": {"type": "string"}, "email": {"type": "string"}},
		"allOf": [{"anyOf": [{"required": ["phone"]}, {"required": ["email"]}]}],
		"if": {"properties": {"contactMethod": {"const": "phone"}}, "required": ["contactMethod"]},
		"then": {"required": ["phone"]}, "else": {"required": ["email"]},
		"additionalProperties": false}`))
	f.tools = append(f.tools, schema.Name)
	f.m.AddTool(schema, server.ToolHandlerFunc(always(protocol.NewTextContent("ok"))))
}

// noticeTools adds tools that send notifications before they answer. Notifications to the caller
// alone use the request's own stream, because messages in mcp-go's channel can be lost.
func (f *fixtures) noticeTools() {
	f.tool("test_tool_with_logging", "Logs three messages.", logThrice)
	f.tool("test_logging_tool", "Logs where the request asked for it.", logThrice)
	f.tool("test_tool_with_progress", "Reports progress.", func(ctx context.Context, _ protocol.CallToolRequest) (*protocol.CallToolResult, error) {
		rq := requestFrom(ctx)
		if token, ok := rq.m.meta["progressToken"]; ok {
			for _, done := range []int{0, 50, 100} {
				rq.out.notify(string(protocol.MethodNotificationProgress), map[string]any{"progressToken": token, "progress": done, "total": 100})
			}
		}
		return protocol.NewToolResultText("done"), nil
	})
	f.tool("test_trigger_tool_change", "Says that the tools changed.", f.broadcast(protocol.MethodNotificationToolsListChanged))
	f.tool("test_trigger_prompt_change", "Says that the prompts changed.", f.broadcast(protocol.MethodNotificationPromptsListChanged))
	f.tool("test_missing_capability", "Needs a client that samples.", func(ctx context.Context, _ protocol.CallToolRequest) (*protocol.CallToolResult, error) {
		if !declares(ctx, "sampling") {
			requestFrom(ctx).failed = missingCapability("sampling")
			return nil, fmt.Errorf("sampling is not declared")
		}
		return protocol.NewToolResultText("ok"), nil
	})
	f.tool("test_reconnection", "Answers like every other tool: streams are not resumed.", always(protocol.NewTextContent("ok")))
}

func logThrice(ctx context.Context, _ protocol.CallToolRequest) (*protocol.CallToolResult, error) {
	rq := requestFrom(ctx)
	if _, asked := rq.m.meta[protocol.MetaKeyLogLevel]; asked || !rq.modern {
		for _, text := range []string{"Tool execution started", "Tool processing data", "Tool execution completed"} {
			rq.out.notify("notifications/message", map[string]any{"level": "info", "logger": "fixtures", "data": text})
		}
	}
	return protocol.NewToolResultText("logged"), nil
}

func (f *fixtures) broadcast(method string) toolFunc {
	return func(context.Context, protocol.CallToolRequest) (*protocol.CallToolResult, error) {
		f.m.SendNotificationToAllClients(method, nil)
		return protocol.NewToolResultText("told"), nil
	}
}

// declares reports whether the client declared a capability for this request.
func declares(ctx context.Context, capability string) bool {
	rq := requestFrom(ctx)
	if !rq.modern {
		return true // in the handshake, the suite's client declared every capability
	}
	f, err := readObject(rq.m.meta[protocol.MetaKeyClientCapabilities], nil)
	return err == nil && f[capability] != nil
}

// missingCapability returns the error of protocol version 2026-07-28 for a request that needs
// a capability that its client did not declare.
func missingCapability(name string) *rpcError {
	e := errorf(protocol.MISSING_REQUIRED_CLIENT_CAPABILITY, "The request needs the client capability %s.", name)
	e.Data = map[string]any{"requiredCapabilities": map[string]any{name: map[string]any{}}}
	return e
}

func (f *fixtures) addResources() {
	add := func(uri, name, mime string, content protocol.ResourceContents) {
		f.resources = append(f.resources, uri)
		f.m.AddResource(protocol.NewResource(uri, name, protocol.WithResourceDescription("A fixture."), protocol.WithMIMEType(mime)),
			func(context.Context, protocol.ReadResourceRequest) ([]protocol.ResourceContents, error) {
				return []protocol.ResourceContents{content}, nil
			})
	}
	add("test://static-text", "static-text", "text/plain", fixtureText("test://static-text", "text/plain", "This is the content of the static text resource."))
	add("test://static-binary", "static-binary", "image/png", protocol.BlobResourceContents{URI: "test://static-binary", MIMEType: "image/png", Blob: fixturePNG})
	add("test://watched-resource", "watched-resource", "text/plain", fixtureText("test://watched-resource", "text/plain", "Watch me."))
	f.m.AddResourceTemplate(protocol.NewResourceTemplate("test://template/{id}/data", "template",
		protocol.WithTemplateDescription("A fixture."), protocol.WithTemplateMIMEType("application/json")),
		func(_ context.Context, r protocol.ReadResourceRequest) ([]protocol.ResourceContents, error) {
			id := strings.TrimSuffix(strings.TrimPrefix(r.Params.URI, "test://template/"), "/data")
			return []protocol.ResourceContents{fixtureText(r.Params.URI, "application/json",
				fmt.Sprintf(`{"id":%q,"templateTest":true,"data":%q}`, id, "Data for ID: "+id))}, nil
		})
}

func (f *fixtures) addPrompts() {
	add := func(name string, run func(protocol.GetPromptRequest) *protocol.GetPromptResult, args ...string) {
		f.prompts = append(f.prompts, name)
		options := []protocol.PromptOption{protocol.WithPromptDescription("A fixture.")}
		for _, a := range args {
			options = append(options, protocol.WithArgument(a, protocol.ArgumentDescription("An argument."), protocol.RequiredArgument()))
		}
		f.m.AddPrompt(protocol.NewPrompt(name, options...), func(_ context.Context, r protocol.GetPromptRequest) (*protocol.GetPromptResult, error) {
			return run(r), nil
		})
	}
	said := func(parts ...protocol.Content) *protocol.GetPromptResult {
		r := &protocol.GetPromptResult{}
		for _, p := range parts {
			r.Messages = append(r.Messages, protocol.PromptMessage{Role: protocol.RoleUser, Content: p})
		}
		return r
	}
	add("test_simple_prompt", func(protocol.GetPromptRequest) *protocol.GetPromptResult {
		return said(protocol.NewTextContent("This is a simple prompt for testing."))
	})
	add("test_prompt_with_arguments", func(r protocol.GetPromptRequest) *protocol.GetPromptResult {
		return said(protocol.NewTextContent(fmt.Sprintf("Prompt with arguments: arg1='%s', arg2='%s'", r.Params.Arguments["arg1"], r.Params.Arguments["arg2"])))
	}, "arg1", "arg2")
	add("test_prompt_with_embedded_resource", func(r protocol.GetPromptRequest) *protocol.GetPromptResult {
		return said(protocol.NewEmbeddedResource(fixtureText(r.Params.Arguments["resourceUri"], "text/plain", "Embedded resource content for testing.")),
			protocol.NewTextContent("Please process the embedded resource above."))
	}, "resourceUri")
	add("test_prompt_with_image", func(protocol.GetPromptRequest) *protocol.GetPromptResult {
		return said(protocol.NewImageContent(fixturePNG, "image/png"), protocol.NewTextContent("Please analyze the image above."))
	})
	add("test_input_required_result_prompt", func(r protocol.GetPromptRequest) *protocol.GetPromptResult {
		if server.ElicitationResponse(r.Params.InputResponses, "user_context") == nil {
			return server.NewInputRequestBuilder("").Elicit("user_context", form("What context should the prompt use?", "context", "string")).PromptResult()
		}
		return said(protocol.NewTextContent("Thank you."))
	})
}
