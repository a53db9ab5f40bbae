package api

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"net/http"
	"time"

	"satchel/auth"
	"satchel/internal/service"
	"satchel/internal/space"
	"satchel/tools"
)

// Tools calls the tools of AI clients; *tools.Registry implements it.
type Tools interface {
	Call(ctx context.Context, c tools.Caller, name string, args json.RawMessage, p tools.Progress) (tools.Result, error)
}

// Options configure a Server. Tools, Service, Verifier and URL are required.
type Options struct {
	Tools    Tools
	Service  *service.Service
	Verifier auth.Verifier
	// URL is the server's origin, such as https://example.com.
	URL, Version string
	// Origin returns the URL at which a request reached the server. The URLs in the answer
	// begin with it. nil means URL.
	Origin func(*http.Request) string

	// HostAllowed reports whether requests with a Host are accepted; nil accepts any.
	HostAllowed func(host string) bool
	// ResourceMetadataURL and ScopeNames are described at mcp.Options.
	ResourceMetadataURL func(*http.Request) string
	ScopeNames          func([]space.Scope) string
	// LimitUnauthenticated counts a request without a valid token. If its sender has made
	// too many, ok is false and wait is how long to wait. nil means no limit.
	LimitUnauthenticated func(*http.Request) (wait time.Duration, ok bool)

	Limits Limits
	// Logger receives the errors that callers do not see; nil discards them.
	Logger *slog.Logger
	// Now is the clock; nil means time.Now.
	Now func() time.Time
}

// Limits are the limits of requests. Zero means the default.
type Limits struct {
	Rate         float64       // requests of a user per minute, in the long run; default 600
	Burst        int           // requests that a user can make at once; default 100
	Concurrent   int           // requests of a user in progress; default 16
	Body         int64         // bytes of a request; default 1 MiB
	Commands     int           // commands in a request; default 10
	CommandBytes int           // bytes of a command; default 100,000
	Paths        int           // paths in a request; default 20
	Results      int           // results of a search; default 50
	Recheck      time.Duration // time between token checks while a command runs; default 1 s
}

func (l *Limits) setDefaults() {
	def(&l.Rate, 600)
	def(&l.Burst, 100)
	def(&l.Concurrent, 16)
	def(&l.Body, 1<<20)
	def(&l.Commands, 10)
	def(&l.CommandBytes, 100_000)
	def(&l.Paths, 20)
	def(&l.Results, 50)
	def(&l.Recheck, time.Second)
}

func def[T comparable](v *T, d T) {
	var zero T
	if *v == zero {
		*v = d
	}
}

func (o *Options) setDefaults() error {
	if o.Tools == nil || o.Service == nil || o.Verifier == nil || o.URL == "" {
		return errors.New("api: Tools, Service, Verifier and URL are required")
	}
	if o.HostAllowed == nil {
		o.HostAllowed = func(string) bool { return true }
	}
	if o.Origin == nil {
		o.Origin = func(*http.Request) string { return o.URL }
	}
	if o.ScopeNames == nil {
		o.ScopeNames = auth.ScopeList
	}
	if o.LimitUnauthenticated == nil {
		o.LimitUnauthenticated = func(*http.Request) (time.Duration, bool) { return 0, true }
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	o.Limits.setDefaults()
	return nil
}
