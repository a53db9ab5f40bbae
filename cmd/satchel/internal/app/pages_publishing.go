package app

import "satchel/web"

// addPublishing gives the pages the published spaces.
func (s *Server) addPublishing(_ *web.Options) {}
