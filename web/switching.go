package web

// routeSpaces adds the list of a person's spaces, and making one.
func (s *Server) routeSpaces(add adder) {}
