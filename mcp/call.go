package mcp

import (
	"cmp"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"runtime/debug"
	"slices"
	"sync"
	"time"

	protocol "github.com/mark3labs/mcp-go/mcp"

	"satchel/auth"
	"satchel/internal/fault"
	"satchel/internal/space"
	"satchel/tools"
)

// content is one part of a tool's or prompt's answer.
type content struct {
	Type string  `json:"type"`
	Text *string `json:"text,omitempty"`
	Data string  `json:"data,omitempty"`
	MIME string  `json:"mimeType,omitempty"`
}

type toolResult struct {
	resultBase
	Content    []content       `json:"content"`
	Structured json.RawMessage `json:"structuredContent,omitempty"`
	IsError    bool            `json:"isError,omitempty"`
}

func textResult(text string, isError bool) toolResult {
	return toolResult{Content: []content{{Type: "text", Text: &text}}, IsError: isError}
}

// callTool runs a tool for tools/call.
func callTool(ctx context.Context, rq *request) (any, *rpcError, bool) {
	name, present, ok := rq.m.params.text("name")
	if !ok || !present || name == "" {
		return nil, errorf(protocol.INVALID_PARAMS, "tools/call needs the name of a tool."), true
	}
	args := rq.m.params["arguments"]
	if args == nil || string(args) == "null" {
		args = json.RawMessage("{}")
	}
	if args[0] != '{' {
		return nil, errorf(protocol.INVALID_PARAMS, "The arguments of a tool must be an object."), true
	}
	tool, ok := rq.s.o.Tools.Find(name)
	if !ok {
		if rq.s.fixtures.hasTool(name) {
			return nil, nil, false
		}
		// Call the unknown tool anyway, to get the error message.
		_, err := rq.run(ctx, name, args, func(float64, float64, string) {})
		return rq.toolFailure(ctx, cmp.Or(err, errUnknownTool))
	}
	rq.tool = name
	defer rq.logCall()
	if e := rq.checkScope(tool); e != nil {
		return nil, e, true
	}
	progress, stop := rq.progress()
	defer stop()
	rq.out.keepAlive(rq.s.o.KeepAlive)
	result, err := rq.run(ctx, name, args, progress)
	stop()
	if err != nil {
		return rq.toolFailure(ctx, err)
	}
	out, err := rq.toolResult(result)
	if err != nil {
		return nil, rq.internal("tool result", err), true
	}
	if out.IsError {
		rq.outcome = "tool_error"
	}
	return out, nil, true
}

// checkScope refuses a call that needs a scope that the grant lacks. The HTTP status and
// challenge make the client ask its user for more scopes. If the user's role is the limit, a
// new grant would not help, so there is no challenge.
func (rq *request) checkScope(t tools.Tool) *rpcError {
	if t.Scope == "" {
		return nil
	}
	err := rq.p.Require(t.Scope)
	if err == nil {
		return nil
	}
	rq.outcome = string(fault.Forbidden)
	if f := rq.s.o.Observer.Refused; f != nil {
		f("scope")
	}
	if rq.p.Role != space.Reader {
		// List all scopes that the client then needs, so that it asks its user only once.
		needed := append(slices.Clone(rq.p.Scopes), t.Scope)
		for name, values := range rq.s.challenge(rq.http, auth.ChallengeOf(err), needed) {
			rq.out.extra[name] = values
		}
	}
	return errorf(codeServer, "%s", fault.PublicOf(err)).withStatus(http.StatusForbidden)
}

var (
	errPanic       = errors.New("panic in a tool")
	errUnknownTool = error(fault.New(fault.NotFound, "There is no such tool."))
)

// run calls the tool. It turns a panic of the tool into an error.
func (rq *request) run(ctx context.Context, name string, args json.RawMessage, p tools.Progress) (r tools.Result, err error) {
	defer func() {
		if v := recover(); v != nil {
			err = fmt.Errorf("%w: %v\n%s", errPanic, v, debug.Stack())
		}
	}()
	return rq.s.o.Tools.Call(ctx, rq.caller(), name, args, p)
}

// toolFailure answers a call that returned an error. An error that the model or its user
// can fix is a result, because models read results.
func (rq *request) toolFailure(ctx context.Context, err error) (any, *rpcError, bool) {
	code := fault.CodeOf(err)
	if ctx.Err() != nil && (code == fault.Internal && !errors.Is(err, errPanic)) {
		code = fault.Canceled
	}
	rq.outcome = string(code)
	switch code {
	case fault.NotFound:
		return nil, errorf(protocol.INVALID_PARAMS, "%s", fault.PublicOf(err)), true
	case fault.Canceled:
		return nil, errorf(codeCanceled, "The request was cancelled."), true
	case fault.Invalid, fault.Conflict, fault.Forbidden, fault.Unauthenticated, fault.TooLarge, fault.Limited, fault.Unavailable, fault.Damaged:
		text := fault.PublicOf(err)
		if f, ok := asFault(err); ok && f.RetryAfter > 0 {
			text += " Try again in " + seconds(f.RetryAfter) + " s."
		}
		out := textResult(text, true)
		out.resultBase = rq.base(nil)
		return out, nil, true
	}
	return nil, rq.internal("tool failed", err), true
}

// toolResult converts the result of a tool to the protocol's type.
func (rq *request) toolResult(r tools.Result) (toolResult, error) {
	var meta map[string]any
	if len(r.Meta) > 0 {
		meta = map[string]any{"satchel/result": r.Meta}
	}
	out := toolResult{resultBase: rq.base(meta), Content: make([]content, 0, len(r.Content)+1), Structured: r.Structured, IsError: r.IsError}
	for _, c := range r.Content {
		if c.Image != nil {
			out.Content = append(out.Content, content{Type: "image", Data: base64.StdEncoding.EncodeToString(c.Image), MIME: c.MIME})
			continue
		}
		out.Content = append(out.Content, content{Type: "text", Text: &c.Text})
	}
	if r.Structured != nil {
		if !json.Valid(r.Structured) {
			return out, errors.New("the structured content is not JSON")
		}
		if len(out.Content) == 0 {
			text := string(r.Structured)
			out.Content = append(out.Content, content{Type: "text", Text: &text})
		}
	}
	return out, nil
}

// progress returns a function that reports progress to the client, if the client asked for
// reports, and a function that ends the reports. The reported values increase. In each
// ProgressInterval, only the latest notification is sent.
func (rq *request) progress() (tools.Progress, func()) {
	token, ok := rq.m.meta["progressToken"]
	if !ok || !validID(token) {
		return func(float64, float64, string) {}, func() {}
	}
	p := &progress{gap: rq.s.o.ProgressInterval, send: func(v progressParams) {
		v.Token = token
		rq.out.notify(string(protocol.MethodNotificationProgress), v)
	}}
	return p.update, p.stop
}

type progressParams struct {
	Token    json.RawMessage `json:"progressToken"`
	Progress float64         `json:"progress"`
	Total    float64         `json:"total,omitempty"`
	Message  string          `json:"message,omitempty"`
}

type progress struct {
	gap  time.Duration
	send func(progressParams)

	mu      sync.Mutex
	sent    bool
	last    float64
	at      time.Time
	pending *progressParams
	timer   *time.Timer
	stopped bool
}

func (p *progress) update(done, total float64, message string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.stopped {
		return
	}
	p.pending = &progressParams{Progress: done, Total: total, Message: message}
	if wait := p.gap - time.Since(p.at); p.sent && wait > 0 {
		if p.timer == nil {
			p.timer = time.AfterFunc(wait, p.late)
		}
		return
	}
	p.flush()
}

// late sends the notification that the rate limit delayed.
func (p *progress) late() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.timer = nil
	if !p.stopped && p.pending != nil {
		p.flush()
	}
}

func (p *progress) flush() {
	v := *p.pending
	p.pending = nil
	if p.sent && v.Progress <= p.last {
		// The amount has not grown, but the message may have changed. The protocol requires
		// a higher value.
		step := 1.0
		if v.Total > p.last {
			step = (v.Total - p.last) / 1000
		}
		v.Progress = p.last + step
		if v.Total > 0 && v.Progress > v.Total {
			v.Total = 0
		}
	}
	p.sent, p.last, p.at = true, v.Progress, time.Now()
	p.send(v)
}

// stop ends the notifications. It drops a delayed one, because the result follows.
func (p *progress) stop() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.stopped = true
	if p.timer != nil {
		p.timer.Stop()
	}
}
