package web

// routePublishing adds the pages on which spaces are published as sources, and
// those on which published ones are read.
func (s *Server) routePublishing(add adder) {}
