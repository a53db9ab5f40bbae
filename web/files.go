package web

// routeFiles adds the pages that show what a space holds and held: files,
// history, differences, search, downloads.
func (s *Server) routeFiles(add adder) {}
