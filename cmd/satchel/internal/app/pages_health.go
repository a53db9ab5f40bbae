package app

import "satchel/web"

// addHealth gives the pages what an admin sees of the server.
func (s *Server) addHealth(_ *web.Options) {}
