package app

import "net/http"

// routeAPI adds the REST API.
func (s *Server) routeAPI(_ *http.ServeMux) {}
