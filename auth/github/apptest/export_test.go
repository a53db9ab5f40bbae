package apptest

// Endpoints returns the patterns of the API.
func Endpoints(s *Server) (all []string) {
	for _, e := range s.endpoints() {
		all = append(all, e.pattern)
	}
	return all
}
