package server

import (
	"context"
	"encoding/json"
	"net/http"

	"satchel/mcp"
	"satchel/tools"
	"satchel/web/api"
)

// openAPI makes the REST API. o is what the tools are made from.
func (s *Server) openAPI(o tools.Options) error {
	o.Workspace, o.Searcher = libraryWorkspace{o.Workspace}, librarySearcher{o.Searcher}
	o.Runner, o.Trouble = nil, nil
	set, err := tools.New(o)
	if err != nil {
		return err
	}
	opts := api.Options{
		Tools: apiTools{set}, Service: s.Service, Verifier: s.verifier(), URL: s.issuer, Origin: s.originFor, Version: s.version,
		ShellProblem:         "This server's configuration switches bash off (sandbox.runtime: none).",
		HostAllowed:          func(host string) bool { return mcp.HostAllowed(host, s.hostNames()) },
		ResourceMetadataURL:  s.resourceMetadataURL,
		ScopeNames:           s.scopeNames,
		LimitUnauthenticated: s.guess,
		Limits:               api.Limits{CommandBytes: o.Limits.CommandBytes},
		Logger:               s.Log.With("part", "api"),
	}
	if s.bash != nil {
		opts.Shells = newShells(s.bash.pool, apiShells)
	}
	if s.api, err = api.New(opts); err != nil {
		return err
	}
	s.closers = append(s.closers, s.api.Close)
	return nil
}

// routeAPI adds the REST API.
func (s *Server) routeAPI(mux *http.ServeMux) {
	h := s.api.Handler()
	mux.Handle("/api", h)
	mux.Handle("/api/", h)
}

// apiTools calls tools over the library alone.
type apiTools struct{ set *tools.Registry }

func (a apiTools) Call(ctx context.Context, c tools.Caller, name string, args json.RawMessage, p tools.Progress) (tools.Result, error) {
	c.Space, c.SpaceName = libraryAlone, "library"
	return a.set.Call(ctx, c, name, args, p)
}
