package web

// routeGitHub adds the pages on which an admin makes the GitHub App, and people
// connect a repository to a space.
func (s *Server) routeGitHub(add adder) {}
