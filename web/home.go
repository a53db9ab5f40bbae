package web

import "net/http"

// routeHome adds the first page, and those that connect a client.
func (s *Server) routeHome(add adder) {
	add("GET /{$}", LimitPage, anyone, s.home)
	add("GET /connect", LimitPage, signedIn, s.home)
}

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
	return s.page(v, http.StatusOK, "home", page{Title: "Connect a client", Script: true, Current: "connect", Body: homePage{MCPURL: s.o.MCPURL, Name: name, Local: !s.secure}})
}
