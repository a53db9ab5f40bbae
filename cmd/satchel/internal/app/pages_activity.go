package app

import "satchel/web"

// addActivity gives the pages what happens in spaces.
func (s *Server) addActivity(_ *web.Options) {}
