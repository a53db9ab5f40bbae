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

// Tools calls what AI clients call, over the library and a space that is empty;
// see *tools.Registry.
type Tools interface {
	Call(ctx context.Context, c tools.Caller, name string, args json.RawMessage, p tools.Progress) (tools.Result, error)
}

// Shells runs commands in sandboxes over the library alone.
type Shells interface {
	// Run returns when the command has ended, and ends it when ctx does. A command
	// that failed is no error: errors are fault.Unavailable, Limited, Invalid and
	// the like, where it did not run or nothing is known of it.
	Run(ctx context.Context, s Shell, command string) (Ran, error)
}

// Shell names one sandbox. No two grants ever meet in one.
type Shell struct {
	User    space.UserID
	Grant   space.GrantID
	Session string // the caller's own name for it; empty: the grant's sandbox without one
}

// Ran is how a command went.
type Ran struct {
	Stdout, Stderr       string // cut where they are long, with a line that says so
	StdoutCut, StderrCut int64  // bytes that are left out
	// End is "exited", "timed_out", "canceled", "stopped", "out_of_memory" or
	// "lost"; in the last two the sandbox has ended, and nothing is known of the
	// command.
	End      string
	ExitCode int
	Signal   string
	Duration time.Duration
	// Fresh reports that the sandbox was started for this command: nothing of
	// earlier ones is in it.
	Fresh bool
	Notes []string
}

// Options is what a Server is made from. Tools, Service, Verifier and URL are
// required.
type Options struct {
	Tools   Tools
	Service *service.Service
	// Shells runs commands; nil if none can, and ShellProblem says why.
	Shells       Shells
	ShellProblem string
	Verifier     auth.Verifier
	// URL is the server's origin, such as https://example.com, and Version its
	// version.
	URL, Version string
	// Origin returns the URL at which a request's client reached the server, the base
	// of the URLs in its answers. nil means URL.
	Origin func(*http.Request) string

	// HostAllowed reports whether the server may be reached under a Host; nil: any.
	HostAllowed func(host string) bool
	// ResourceMetadataURL and ScopeNames are as in package mcp.
	ResourceMetadataURL func(*http.Request) string
	ScopeNames          func([]space.Scope) string
	// LimitUnauthenticated counts a request without a valid token, and tells where
	// its sender had too many how long to wait; nil: no limit.
	LimitUnauthenticated func(*http.Request) (wait time.Duration, ok bool)

	Limits Limits
	// Logger gets what callers are not told; nil discards.
	Logger *slog.Logger
	// Now is the clock; nil means time.Now.
	Now func() time.Time
}

// Limits bound what callers may ask for; a zero field means its default.
type Limits struct {
	Rate         float64       // requests per minute of one user, in the long run; default 600
	Burst        int           // of them at once; default 100
	Concurrent   int           // requests of one user in progress; default 16
	Body         int64         // bytes of one request; default 1 MiB
	Commands     int           // of one request; default 10
	CommandBytes int           // of each; default 100,000
	Paths        int           // of one request; default 20
	Results      int           // of one search; default 50
	Recheck      time.Duration // between looks whether who runs a command still may; default 1 s
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
	if o.ShellProblem == "" {
		o.ShellProblem = "No sandbox can start on this server."
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
