package web

// routeActivity adds what happened lately in a space, how its pushes go, and the
// stream of what happens now.
func (s *Server) routeActivity(add adder) {}
