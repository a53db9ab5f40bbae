package web

import (
	"net/http"
	"strconv"
	"time"

	"satchel/auth/store"
)

// routeConnect adds the pages that say how each client is connected.
func (s *Server) routeConnect(add adder) {
	add("GET /connect", LimitPage, signedIn, s.showConnect)
	add("GET /connect/status", LimitPage, signedIn, s.connectStatus)
	add("GET /connect/{client}", LimitPage, signedIn, s.showClient)
}

// connectPage lists the clients.
type connectPage struct {
	MCPURL string
	// Local: the server is reached from its own machine alone, and clients that
	// run elsewhere cannot.
	Local   bool
	Clients []client
	Waiting waiting
}

// clientPage is how one client is connected.
type clientPage struct {
	MCPURL  string
	Local   bool
	Client  client
	Waiting waiting
	// Own: the snippet starts this server's own program.
	Own bool
}

// waiting is what came since a page was opened.
type waiting struct {
	Since   int64 // milliseconds of Unix
	Arrived []arrival
	Called  bool   // one of them has called
	Again   string // where the page is looked at once more
}

// arrival is a client that was connected, or that called, since.
type arrival struct {
	Name   string    `json:"name"`
	Space  string    `json:"space"`
	Called bool      `json:"called"`
	At     time.Time `json:"at"`
}

// showConnect is GET /connect.
func (s *Server) showConnect(v *visit) error {
	w, err := s.awaited(v)
	if err != nil {
		return err
	}
	return s.page(v, http.StatusOK, "connect", page{
		Title: "Connect a client", Script: true, Scripts: []string{"connect.js"}, Styles: []string{"connect.css"}, Current: "connect",
		Body: connectPage{MCPURL: s.o.MCPURL, Local: !s.secure, Clients: s.clients(), Waiting: w},
	})
}

// showClient is GET /connect/{client}.
func (s *Server) showClient(v *visit) error {
	for _, c := range s.clients() {
		if c.Slug != v.r.PathValue("client") {
			continue
		}
		w, err := s.awaited(v)
		if err != nil {
			return err
		}
		own := c.Slug == "claude-desktop" && v.user.Admin && s.loopback() && len(s.o.Stdio) > 1
		if own {
			c.Snippet = desktopOf(s.o.Stdio)
		}
		return s.page(v, http.StatusOK, "connectclient", page{
			Title: "Connect " + c.Called(), Script: true, Scripts: []string{"connect.js"}, Styles: []string{"connect.css"}, Current: "connect",
			Body: clientPage{MCPURL: s.o.MCPURL, Local: !s.secure, Client: c, Waiting: w, Own: own},
		})
	}
	return errNoPage
}

// awaited reads since when the page waits, and what came.
func (s *Server) awaited(v *visit) (w waiting, err error) {
	since, ok := sinceOf(v.r)
	if !ok {
		since = s.now()
	}
	w.Since = since.UnixMilli()
	// Browsers only scroll where a link leads to the address that they are at.
	w.Again = v.r.URL.Path + "?since=" + strconv.FormatInt(w.Since, 10) + "&at=" + strconv.FormatInt(s.now().UnixMilli(), 10)
	if !ok {
		return w, nil
	}
	if w.Arrived, err = s.arrived(v, since); err != nil {
		return w, err
	}
	for _, a := range w.Arrived {
		w.Called = w.Called || a.Called
	}
	return w, nil
}

// maxWaiting bounds how far back somebody may ask.
const maxWaiting = 24 * time.Hour

func sinceOf(r *http.Request) (time.Time, bool) {
	ms, err := strconv.ParseInt(r.URL.Query().Get("since"), 10, 64)
	if err != nil || ms <= 0 {
		return time.Time{}, false
	}
	return time.UnixMilli(ms), true
}

// maxArrivals bounds the list: nobody connects more at once.
const maxArrivals = 10

// arrived lists the clients that were connected or called since then. The store
// knows of a call at once and to the minute, so that one in the minute in which the
// page was opened counts.
func (s *Server) arrived(v *visit, since time.Time) ([]arrival, error) {
	if early := s.now().Add(-maxWaiting); since.Before(early) {
		since = early
	}
	grants, err := s.o.Accounts.Grants(v.r.Context(), v.user.ID)
	if err != nil {
		return nil, err
	}
	out := []arrival{}
	for _, g := range grants {
		if !s.inUse(g) || len(out) == maxArrivals {
			continue
		}
		called, made := s.calledSince(g, since), !g.Created.Before(since)
		if !called && (!made || g.Kind == "key") {
			continue
		}
		a := arrival{Name: shorten(g.Name, 80), Space: shorten(g.SpaceName, 80), Called: called, At: g.Created}
		if called {
			a.At = g.LastUsed
		}
		if a.Name == "" {
			a.Name = "A client without a name"
		}
		out = append(out, a)
	}
	return out, nil
}

func (s *Server) calledSince(g store.GrantInfo, since time.Time) bool {
	return !g.LastUsed.IsZero() && (!g.Created.Before(since) || !g.LastUsed.Before(since.Truncate(time.Minute)))
}

// connectStatus is GET /connect/status, which the script asks.
func (s *Server) connectStatus(v *visit) error {
	since, ok := sinceOf(v.r)
	if !ok {
		since = s.now()
	}
	list, err := s.arrived(v, since)
	if err != nil {
		return err
	}
	s.json(v, http.StatusOK, map[string]any{"clients": list})
	return nil
}
