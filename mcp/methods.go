package mcp

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"slices"

	protocol "github.com/mark3labs/mcp-go/mcp"

	"satchel/internal/fault"
	"satchel/tools"
)

// The names of the skills extension (SEP-2640), which mcp-go does not support, and of its methods.
const (
	skillsExtension  = "io.modelcontextprotocol/skills"
	methodSkillsList = "skills/list"
	methodSkillsGet  = "skills/get"
)

// method answers a request. If handled is false, mcp-go answers the request.
type method func(ctx context.Context, rq *request) (result any, e *rpcError, handled bool)

func (s *Server) methods() map[string]method {
	m := map[string]method{
		string(protocol.MethodToolsCall):     callTool,
		string(protocol.MethodPromptsGet):    getPrompt,
		string(protocol.MethodResourcesRead): readResource,
		methodComplete:                       complete,
		methodSkillsList:                     listSkills,
		methodSkillsGet:                      getSkill,
		string(protocol.MethodSetLogLevel):   setLevel,
	}
	if s.fixtures == nil {
		m[string(protocol.MethodResourcesSubscribe)] = subscribe
		m[string(protocol.MethodResourcesUnsubscribe)] = unsubscribe
		m[string(protocol.MethodSubscriptionsListen)] = listenTo
	}
	return m
}

// resultBase holds the members that every result has from protocol version 2026-07-28 on. Older
// versions require none.
type resultBase struct {
	ResultType string         `json:"resultType,omitempty"`
	Meta       map[string]any `json:"_meta,omitempty"`
}

func (rq *request) base(meta map[string]any) resultBase {
	if !rq.modern {
		return resultBase{Meta: meta}
	}
	if meta == nil {
		meta = make(map[string]any, 1)
	}
	info := map[string]string{"name": rq.s.o.Name, "version": rq.s.o.Version}
	if rq.s.o.Title != "" {
		info["title"] = rq.s.o.Title
	}
	meta[protocol.MetaKeyServerInfo] = info
	return resultBase{ResultType: string(protocol.ResultTypeComplete), Meta: meta}
}

// cacheHints are part of the answers to lists and reads from protocol version 2026-07-28 on. All
// of these answers are private to one caller.
type cacheHints struct {
	TTL   *int64 `json:"ttlMs,omitempty"`
	Scope string `json:"cacheScope,omitempty"`
}

func (rq *request) cache(ms int64) cacheHints {
	if !rq.modern {
		return cacheHints{}
	}
	return cacheHints{TTL: &ms, Scope: string(protocol.CacheScopePrivate)}
}

// failure converts an error of the Toolset to one of the protocol, for methods other than
// tools/call. notFound is the code for fault.NotFound.
func (rq *request) failure(err error, notFound int) *rpcError {
	code := fault.CodeOf(err)
	rq.outcome = string(code)
	switch code {
	case fault.NotFound:
		return errorf(notFound, "%s", fault.PublicOf(err))
	case fault.Invalid, fault.TooLarge:
		return errorf(protocol.INVALID_PARAMS, "%s", fault.PublicOf(err))
	case fault.Canceled:
		return errorf(codeCanceled, "The request was cancelled.")
	case fault.Forbidden, fault.Conflict, fault.Limited, fault.Unavailable, fault.Damaged:
		return errorf(codeServer, "%s", fault.PublicOf(err))
	}
	return rq.internal(rq.m.method, err)
}

type promptMessage struct {
	Role    string  `json:"role"`
	Content content `json:"content"`
}

func getPrompt(ctx context.Context, rq *request) (any, *rpcError, bool) {
	name, present, ok := rq.m.params.text("name")
	if !ok || !present {
		return nil, errorf(protocol.INVALID_PARAMS, "prompts/get needs a name."), true
	}
	var args map[string]string
	if raw, ok := rq.m.params["arguments"]; ok && json.Unmarshal(raw, &args) != nil {
		return nil, errorf(protocol.INVALID_PARAMS, "The arguments of a prompt must be strings."), true
	}
	if rq.s.fixtures.hasPrompt(name) {
		return nil, nil, false
	}
	description, text, err := rq.s.o.Tools.GetPrompt(ctx, rq.caller(), name, args)
	if err != nil {
		return nil, rq.failure(err, protocol.INVALID_PARAMS), true
	}
	return struct {
		resultBase
		Description string          `json:"description,omitempty"`
		Messages    []promptMessage `json:"messages"`
	}{rq.base(nil), description, []promptMessage{{Role: "user", Content: content{Type: "text", Text: &text}}}}, nil, true
}

type resourceContent struct {
	URI  string  `json:"uri"`
	MIME string  `json:"mimeType,omitempty"`
	Text *string `json:"text,omitempty"`
	Blob *string `json:"blob,omitempty"`
}

// uri returns the param uri, which the method requires.
func (rq *request) uri() (string, *rpcError) {
	uri, _, ok := rq.m.params.text("uri")
	if !ok || uri == "" {
		return "", errorf(protocol.INVALID_PARAMS, "%s needs a uri.", rq.m.method)
	}
	return uri, nil
}

// resourceFailure converts an error of the Toolset about a resource to one of the protocol.
func (rq *request) resourceFailure(uri string, err error) *rpcError {
	notFound := protocol.RESOURCE_NOT_FOUND
	if rq.modern {
		notFound = protocol.INVALID_PARAMS
	}
	e := rq.failure(err, notFound)
	if fault.CodeOf(err) == fault.NotFound {
		e.Data = map[string]string{"uri": uri}
	}
	return e
}

func readResource(ctx context.Context, rq *request) (any, *rpcError, bool) {
	uri, e := rq.uri()
	if e != nil {
		return nil, e, true
	}
	if rq.s.fixtures.hasResource(uri) {
		return nil, nil, false
	}
	parts, mime, err := rq.s.o.Tools.ReadResource(ctx, rq.caller(), uri)
	if err != nil {
		return nil, rq.resourceFailure(uri, err), true
	}
	contents := make([]resourceContent, 0, len(parts))
	for _, p := range parts {
		c := resourceContent{URI: uri, MIME: mime, Text: &p.Text}
		if p.MIME != "" {
			c.MIME = p.MIME
		}
		if p.Image != nil {
			blob := base64.StdEncoding.EncodeToString(p.Image)
			c.Text, c.Blob = nil, &blob
		}
		contents = append(contents, c)
	}
	return struct {
		resultBase
		cacheHints
		Contents []resourceContent `json:"contents"`
	}{rq.base(nil), rq.cache(0), contents}, nil, true
}

const methodComplete = "completion/complete"

// complete answers completion/complete. It offers values only for paths in resource
// templates, because the arguments of prompts are free text.
func complete(ctx context.Context, rq *request) (any, *rpcError, bool) {
	if rq.s.fixtures != nil {
		return nil, nil, false
	}
	var ref struct {
		Type string `json:"type"`
		Name string `json:"name"`
		URI  string `json:"uri"`
	}
	var argument struct {
		Name  *string `json:"name"`
		Value *string `json:"value"`
	}
	p := rq.m.params
	if json.Unmarshal(p["ref"], &ref) != nil || json.Unmarshal(p["argument"], &argument) != nil || argument.Name == nil || argument.Value == nil {
		return nil, errorf(protocol.INVALID_PARAMS, "completion/complete needs a ref and an argument with name and value."), true
	}
	var found tools.Completion
	switch ref.Type {
	case "ref/prompt":
		known, err := rq.s.o.Tools.Prompts(ctx, rq.caller())
		if err != nil {
			return nil, rq.failure(err, protocol.INVALID_PARAMS), true
		}
		if !slices.ContainsFunc(known, func(p tools.Prompt) bool { return p.Name == ref.Name }) {
			return nil, errorf(protocol.INVALID_PARAMS, "There is no such prompt."), true
		}
	case "ref/resource":
		if !slices.ContainsFunc(rq.s.o.Tools.ResourceTemplates(), func(t tools.ResourceTemplate) bool { return t.URI == ref.URI }) {
			return nil, errorf(protocol.INVALID_PARAMS, "There is no such resource template."), true
		}
		var err error
		if found, err = rq.s.o.Tools.CompletePath(ctx, rq.caller(), *argument.Value); err != nil {
			return nil, rq.failure(err, protocol.INVALID_PARAMS), true
		}
	default:
		return nil, errorf(protocol.INVALID_PARAMS, "A ref is a ref/prompt or a ref/resource."), true
	}
	values := found.Values
	if values == nil {
		values = []string{} // [] and not null
	}
	type completion struct {
		Values  []string `json:"values"`
		Total   int      `json:"total"`
		HasMore bool     `json:"hasMore"`
	}
	return struct {
		resultBase
		Completion completion `json:"completion"`
	}{rq.base(nil), completion{values, found.Total, found.Total > len(values)}}, nil, true
}

type skill struct {
	URI         string          `json:"uri"`
	Frontmatter map[string]any  `json:"frontmatter"`
	Resources   []skillResource `json:"resources"`
}

type skillResource struct {
	URI    string `json:"uri"`
	Digest string `json:"digest"`
	Size   int64  `json:"size"`
}

func newSkill(s tools.Skill) skill {
	out := skill{URI: s.URI, Frontmatter: s.Frontmatter, Resources: make([]skillResource, 0, len(s.Resources))}
	if out.Frontmatter == nil {
		out.Frontmatter = map[string]any{}
	}
	for _, r := range s.Resources {
		out.Resources = append(out.Resources, skillResource(r))
	}
	return out
}

func listSkills(ctx context.Context, rq *request) (any, *rpcError, bool) {
	found, err := rq.s.o.Tools.Skills(ctx, rq.caller())
	if err != nil {
		return nil, rq.failure(err, protocol.INVALID_PARAMS), true
	}
	list := make([]skill, 0, len(found))
	for _, s := range found {
		list = append(list, newSkill(s))
	}
	return struct {
		resultBase
		cacheHints
		Skills []skill `json:"skills"`
	}{rq.base(nil), rq.cache(rq.s.o.CacheTTL.Milliseconds()), list}, nil, true
}

func getSkill(ctx context.Context, rq *request) (any, *rpcError, bool) {
	uri, e := rq.uri()
	if e != nil {
		return nil, e, true
	}
	found, err := rq.s.o.Tools.GetSkill(ctx, rq.caller(), uri)
	if err != nil {
		return nil, rq.failure(err, protocol.INVALID_PARAMS), true
	}
	return struct {
		resultBase
		cacheHints
		Skill skill `json:"skill"`
	}{rq.base(nil), rq.cache(rq.s.o.CacheTTL.Milliseconds()), newSkill(found)}, nil, true
}

// The hooks below put the tools, resources and prompts that the Toolset offers the caller at the
// front of mcp-go's lists. mcp-go's own entries (conformance fixtures) follow.

func (s *Server) listTools(ctx context.Context, _ any, _ *protocol.ListToolsRequest, result *protocol.ListToolsResult) {
	rq := requestFrom(ctx)
	own := s.o.Tools.List(ctx, rq.caller())
	list := make([]protocol.Tool, 0, len(own)+len(result.Tools))
	for _, t := range own {
		list = append(list, protocol.Tool{
			Name: t.Name, Description: t.Description,
			RawInputSchema: t.InputSchema, RawOutputSchema: t.OutputSchema,
			Annotations: protocol.ToolAnnotation{
				Title: t.Title, ReadOnlyHint: &t.ReadOnly, DestructiveHint: &t.Destructive,
				IdempotentHint: &t.Idempotent, OpenWorldHint: &t.OpenWorld,
			},
		})
	}
	result.Tools = append(list, result.Tools...)
}

func (s *Server) listResources(ctx context.Context, _ any, _ *protocol.ListResourcesRequest, result *protocol.ListResourcesResult) {
	rq := requestFrom(ctx)
	own, err := s.o.Tools.Resources(ctx, rq.caller())
	if err != nil {
		rq.failed = rq.failure(err, protocol.INVALID_PARAMS)
		return
	}
	list := make([]protocol.Resource, 0, len(own)+len(result.Resources))
	for _, r := range own {
		list = append(list, protocol.Resource{URI: r.URI, Name: r.Name, Title: r.Title, Description: r.Description, MIMEType: r.MIME, Size: &r.Size})
	}
	result.Resources = append(list, result.Resources...)
}

func (s *Server) listPrompts(ctx context.Context, _ any, _ *protocol.ListPromptsRequest, result *protocol.ListPromptsResult) {
	rq := requestFrom(ctx)
	own, err := s.o.Tools.Prompts(ctx, rq.caller())
	if err != nil {
		rq.failed = rq.failure(err, protocol.INVALID_PARAMS)
		return
	}
	list := make([]protocol.Prompt, 0, len(own)+len(result.Prompts))
	for _, p := range own {
		args := make([]protocol.PromptArgument, 0, len(p.Arguments))
		for _, a := range p.Arguments {
			args = append(args, protocol.PromptArgument{Name: a.Name, Description: a.Description, Required: a.Required})
		}
		list = append(list, protocol.Prompt{Name: p.Name, Title: p.Title, Description: p.Description, Arguments: args})
	}
	result.Prompts = append(list, result.Prompts...)
}
