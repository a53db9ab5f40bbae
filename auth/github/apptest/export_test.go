package apptest

import (
	"maps"
	"slices"
)

// Endpoints are the patterns of the API.
func Endpoints(s *Server) []string { return slices.Sorted(maps.Keys(s.endpoints())) }
