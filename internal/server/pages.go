package server

import "satchel/web"

// addSpaces gives the pages what spaces hold.
func (s *Server) addSpaces(o *web.Options) {
	o.Workspace, o.History, o.Operations = workspace{s.Git, s.remotes}, s.Git, s.Service
	o.Editing = web.EditLimits{MaxFile: s.Config.Space.MaxFile, MaxChange: s.Config.Space.MaxChange()}
	s.addConnect(o)
}
