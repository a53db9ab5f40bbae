package mcp

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/url"
	"strings"
	"time"

	"satchel/auth"
	"satchel/internal/space"
	"satchel/tools"
)

// Toolset is what the server offers. *tools.Registry implements it.
type Toolset interface {
	// ServerInstructions is sent to every client when it connects.
	ServerInstructions() string
	// List returns the tools that the caller may use, in a stable order.
	List(ctx context.Context, c tools.Caller) []tools.Tool
	// Find returns a tool by its listed name, even if the caller may not call the tool.
	Find(name string) (tools.Tool, bool)
	// Call runs a tool. Its errors are fault.NotFound, fault.Forbidden, fault.Canceled and
	// faults that the model cannot fix. The server never passes a nil p.
	Call(ctx context.Context, c tools.Caller, name string, args json.RawMessage, p tools.Progress) (tools.Result, error)

	Resources(ctx context.Context, c tools.Caller) ([]tools.Resource, error)
	// ReadResource returns fault.NotFound for an unknown URI.
	ReadResource(ctx context.Context, c tools.Caller, uri string) (contents []tools.Content, mime string, err error)
	ResourceTemplates() []tools.ResourceTemplate
	// CompletePath completes the path in a URI of a resource template.
	CompletePath(ctx context.Context, c tools.Caller, value string) (tools.Completion, error)
	// ResourcePath returns the path of a resource in the caller's space. The errors are
	// fault.NotFound and, for a resource of a source, fault.Invalid.
	ResourcePath(ctx context.Context, c tools.Caller, uri string) (space.Path, error)
	Prompts(ctx context.Context, c tools.Caller) ([]tools.Prompt, error)
	GetPrompt(ctx context.Context, c tools.Caller, name string, args map[string]string) (description, text string, err error)
	Skills(ctx context.Context, c tools.Caller) ([]tools.Skill, error)
	GetSkill(ctx context.Context, c tools.Caller, uri string) (tools.Skill, error)
}

var _ Toolset = (*tools.Registry)(nil)

// Options configures a [Server]. Tools, Verifier, Name and Version are required. The zero
// value of every other field means its default.
type Options struct {
	Tools    Toolset
	Verifier auth.Verifier // asked on every request

	// Name, Title, Version and WebsiteURL describe the server to the users of clients.
	Name       string
	Title      string
	Version    string
	WebsiteURL string

	// AllowedHosts are the host names (without port) of the server. Loopback names and IP
	// addresses are always allowed, because DNS rebinding, the attack that the check
	// prevents, needs another name.
	AllowedHosts []string
	// AllowedOrigins are the web origins ("https://app.example.com") whose pages may call the
	// server. Loopback origins and the server's own origin are always allowed. A request without
	// an Origin does not come from a page.
	AllowedOrigins []string

	// ResourceMetadataURL returns the absolute URL of the RFC 9728 document for a request.
	// 401 and 403 answers contain the URL. If the function is nil, they contain none.
	ResourceMetadataURL func(*http.Request) string
	// ScopeNames returns the names with which a client asks its authorization server for
	// scopes, separated by spaces. If the function is nil, the names are those of the scopes.
	ScopeNames func([]space.Scope) string
	// ResourceMetadata serves /.well-known/oauth-protected-resource and the same path with
	// /mcp appended. If it is nil, the answer is 404.
	ResourceMetadata http.Handler

	// LimitUnauthenticated counts a request without a valid token. If its sender has made
	// too many, ok is false and wait is how long to wait. If the function is nil, there is
	// no limit.
	LimitUnauthenticated func(*http.Request) (wait time.Duration, ok bool)

	MaxBody       int64   // bytes of one request; default 4 MiB
	Rate          float64 // requests per second and user; default 50
	Burst         int     // requests of a user that may come at once; default 200
	MaxConcurrent int     // calls in progress per user; default 64
	MaxStreams    int     // open listening streams per user; default 32
	// MaxSubscriptions is how many resources a session or a listening stream can subscribe
	// to; default 50.
	MaxSubscriptions int

	SessionTTL     time.Duration // idle life of a legacy session; default 24 h
	MaxSessions    int           // legacy sessions per user; the least recently used one ends; default 64
	MaxAllSessions int           // legacy sessions of everyone; default 20,000

	KeepAlive        time.Duration // time between two comments on a silent stream; default 15 s
	ProgressInterval time.Duration // least time between two progress notifications; default 100 ms
	WriteTimeout     time.Duration // limit for one write, if the client does not read; default 30 s
	CacheTTL         time.Duration // how long clients may keep lists; default 1 min

	// StrictVersionHeader refuses requests of Claude clients whose MCP-Protocol-Version
	// header has an older version than their body (anthropics/claude-code#93290). By
	// default the version in the body counts for these clients.
	StrictVersionHeader bool

	// Origin returns the URL at which a request's client reached the server. URLs in the
	// answer begin with this URL. If Origin is nil, they begin with the URL in the
	// configuration of the tools.
	Origin func(*http.Request) string

	// Observer gets every call and refusal.
	Observer Observer
	// Logger gets the errors that clients do not see. Default: discard.
	Logger *slog.Logger
	// RequestID returns the request's id in other logs. By default the id is random.
	RequestID func(context.Context) string
	// Now is the clock of sessions and limits; default time.Now.
	Now func() time.Time
}

// Observer receives measurements. Its functions may be nil, must not block and
// are called from many goroutines.
type Observer struct {
	// Call gets every finished request.
	Call func(CallInfo)
	// Refused gets the reason of every refusal: "host", "origin", "unauthenticated" (401),
	// "verifier" (authentication failed with another status), "scope", "rate",
	// "concurrency", "too_large", "malformed", "session" (unknown), "closing" or "panic".
	Refused func(reason string)
}

// CallInfo describes one finished request.
type CallInfo struct {
	Method string // as the client sent it, if it is known; otherwise "other"
	Tool   string // the tool that tools/call names, if the tool is known
	// Outcome is "ok", "tool_error" (the model can fix it) or the fault code of the error.
	Outcome  string
	Duration time.Duration
	Modern   bool // 2026-07-28 or newer
	// Client is the name that the client gives itself. It can be any text, so do not use it
	// as a label of a metric.
	Client string
	User   space.UserID
	Grant  space.GrantID
	// Answered counts the bytes of the answer, without notifications.
	Answered int
}

func (o Options) withDefaults() (Options, error) {
	var errs []error
	if o.Tools == nil {
		errs = append(errs, errors.New("Tools is needed"))
	}
	if o.Verifier == nil {
		errs = append(errs, errors.New("Verifier is needed"))
	}
	if o.Name == "" || o.Version == "" {
		errs = append(errs, errors.New("Name and Version are needed"))
	}
	for i, h := range o.AllowedHosts {
		if h == "" || strings.ContainsAny(h, "/ ") {
			errs = append(errs, fmt.Errorf("AllowedHosts[%d]: %q is not a host name", i, h))
		}
	}
	for i, origin := range o.AllowedOrigins {
		u, err := url.Parse(origin)
		if err != nil || u.Scheme == "" || u.Host == "" || u.Scheme+"://"+u.Host != origin {
			errs = append(errs, fmt.Errorf("AllowedOrigins[%d]: %q is not an origin such as https://example.com", i, origin))
		}
	}
	if len(errs) > 0 {
		return o, fmt.Errorf("mcp options: %w", errors.Join(errs...))
	}
	setDefault(&o.MaxBody, 4<<20)
	setDefault(&o.Rate, 50)
	setDefault(&o.Burst, 200)
	setDefault(&o.MaxConcurrent, 64)
	setDefault(&o.MaxStreams, 32)
	setDefault(&o.MaxSubscriptions, 50)
	setDefault(&o.SessionTTL, 24*time.Hour)
	setDefault(&o.MaxSessions, 64)
	setDefault(&o.MaxAllSessions, 20_000)
	setDefault(&o.KeepAlive, 15*time.Second)
	setDefault(&o.ProgressInterval, 100*time.Millisecond)
	setDefault(&o.WriteTimeout, 30*time.Second)
	setDefault(&o.CacheTTL, time.Minute)
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	if o.RequestID == nil {
		o.RequestID = func(context.Context) string { return newToken() }
	}
	if o.Origin == nil {
		o.Origin = func(*http.Request) string { return "" }
	}
	if o.ScopeNames == nil {
		o.ScopeNames = auth.ScopeList
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	return o, nil
}

func setDefault[T int | int64 | float64 | time.Duration](p *T, v T) {
	if *p <= 0 {
		*p = v
	}
}
