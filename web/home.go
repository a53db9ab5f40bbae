package web

import "net/http"

// homePage is what a signed-in person gives to their clients.
type homePage struct {
	MCPURL string
	Name   string
	// Local: the server is reached from its own machine alone, and clients that
	// run elsewhere cannot.
	Local bool
}

// home is GET /.
func (s *Server) home(v *visit) error {
	if !v.in {
		return s.see(v, "/signin")
	}
	name := v.user.Display
	if name == "" {
		name = v.user.Name
	}
	return s.page(v, http.StatusOK, "home", page{Title: "Connect a client", Script: true, Current: "/", Body: homePage{MCPURL: s.o.MCPURL, Name: name, Local: !s.secure}})
}
