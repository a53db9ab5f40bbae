package server

import (
	"net/http"

	"satchel/mcp"
	"satchel/tools"
	"satchel/web/api"
)

// openAPI creates the REST API. o holds the options of the MCP tools. The API replaces some of
// them for its own tools.
func (s *Server) openAPI(o tools.Options) error {
	o.Workspace, o.Trouble, o.Prefix = libraryWorkspace{o.Workspace}, nil, ""
	set, err := tools.New(o)
	if err != nil {
		return err
	}
	opts := api.Options{
		Tools: set, Service: s.Service, Verifier: s.verifier(), URL: s.issuer, Origin: s.originFor, Version: s.version,
		HostAllowed:          func(host string) bool { return mcp.HostAllowed(host, s.hostNames()) },
		ResourceMetadataURL:  s.resourceMetadataURL,
		ScopeNames:           s.scopeNames,
		LimitUnauthenticated: s.guess,
		Limits:               api.Limits{CommandBytes: o.Limits.CommandBytes},
		Logger:               s.Log.With("part", "api"),
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
