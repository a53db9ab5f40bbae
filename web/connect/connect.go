// Package connect serves the pages that connect a client, and bring existing content into a
// space. Call [Register].
package connect

import (
	"embed"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"satchel/integrations"
	"satchel/internal/service"
	"satchel/web"
)

//go:embed templates
var templates embed.FS

type pages struct {
	*web.Site
	integrations []integrations.Client
}

// Register adds the pages to a site.
func Register(site *web.Site) error {
	all, err := integrations.For(site.MCPURL)
	if err != nil {
		return err
	}
	s := &pages{site, all}
	s.Handle("GET /connect", web.LimitPage, web.SignedIn, s.showConnect)
	s.Handle("GET /connect/status", web.LimitPage, web.SignedIn, s.connectStatus)
	s.Handle("GET /connect/{client}", web.LimitPage, web.SignedIn, s.showClient)
	// The command on the page downloads the files in a shell, which has no session.
	s.Handle("GET /connect/{client}/files.tar.gz", web.LimitPage, web.Anyone, s.downloadFiles)
	s.Handle("GET /spaces/{id}/bring", web.LimitPage, web.SignedIn, s.showBring)
	s.Handle("POST /spaces/{id}/bring/questions", web.LimitPage, web.SignedIn, s.answerQuestions)
	s.Handle("GET /spaces/{id}/bring/import", web.LimitPage, web.SignedIn, s.showImport)
	s.Handle("POST /spaces/{id}/bring/import", web.LimitSignIn, web.SignedIn, s.beginImport)
	s.HandleLarge("POST /spaces/{id}/bring/export", maxExport(), s.CanWrite, s.importExport)
	s.HandleLarge("POST /spaces/{id}/bring/folder", s.maxFolder(), s.CanWrite, s.importFolder)
	return s.AddTemplates(templates)
}

// connectPage lists the clients.
type connectPage struct {
	MCPURL string
	// Local reports that clients that run elsewhere cannot reach the server.
	Local   bool
	Clients []client
	Waiting waiting
}

// clientPage explains how to connect a client.
type clientPage struct {
	MCPURL  string
	Local   bool
	Client  client
	Waiting waiting
	// Own reports that the snippet starts this server's own program.
	Own bool
}

// waiting lists the clients that connected or called since a page was opened.
type waiting struct {
	Since   int64  // Unix time in milliseconds
	Client  string // slug of the client that the page is about; empty for any
	Name    string // the name of that client in a sentence
	Arrived []arrival
	Ticked  bool   // the client that the page is about has called
	Called  bool   // any client has called
	Again   string // address that reloads the page
	Refused []refusal
}

// KeyRefused reports whether a refused request had a key or a token.
func (w waiting) KeyRefused() bool {
	return slices.ContainsFunc(w.Refused, func(r refusal) bool { return r.Key })
}

// Failed reports whether a request was refused for another reason than a sign-in that is missing.
func (w waiting) Failed() bool {
	return slices.ContainsFunc(w.Refused, func(r refusal) bool { return !r.SignIn })
}

// refusal is a request that the server refused.
type refusal struct {
	web.RefusedRequest
	// SignIn reports that the client has not signed in yet. Clients learn from this answer where
	// to sign in.
	SignIn bool `json:"signIn"`
}

// arrival is a client that connected or called.
type arrival struct {
	Name  string `json:"name"`
	Key   string `json:"key"` // name of the key that it used
	Space string `json:"space"`
	// Other reports that the name belongs to another client than the one that the page is about.
	Other  bool      `json:"other"`
	Called bool      `json:"called"`
	At     time.Time `json:"at"`
}

// showConnect handles GET /connect.
func (s *pages) showConnect(v *web.Visit) error {
	w, err := s.awaited(v, client{})
	if err != nil {
		return err
	}
	return s.Page(v, http.StatusOK, "connect", web.Page{
		Title: "Connect a client", Script: true, Scripts: []string{"connect.js"}, Styles: []string{"connect.css", "clients.css"}, Current: "connect",
		Body: connectPage{MCPURL: s.MCPURL, Local: !s.Secure, Clients: s.clients(), Waiting: w},
	})
}

// showClient handles GET /connect/{client}.
func (s *pages) showClient(v *web.Visit) error {
	for _, c := range s.clients() {
		if c.Slug != v.R.PathValue("client") {
			continue
		}
		w, err := s.awaited(v, c)
		if err != nil {
			return err
		}
		own := c.Slug == "claude-desktop" && v.User.Admin && s.Loopback() && len(s.Stdio) > 1
		if own {
			c.Snippet = desktopOf(s.Stdio)
		}
		return s.Page(v, http.StatusOK, "connectclient", web.Page{
			Title: "Connect " + c.Called(), Script: true, Scripts: []string{"connect.js"}, Styles: []string{"connect.css", "clients.css"}, Current: "connect",
			Body: clientPage{MCPURL: s.MCPURL, Local: !s.Secure, Client: c, Waiting: w, Own: own},
		})
	}
	return web.ErrNoPage
}

// downloadFiles handles GET /connect/{client}/files.tar.gz.
func (s *pages) downloadFiles(v *web.Visit) error {
	c, ok := s.integration(v.R.PathValue("client"))
	if !ok {
		return web.ErrNoPage
	}
	h := v.W.Header()
	h.Set("Content-Type", "application/gzip")
	h.Set("Content-Disposition", web.Attachment("satchel-"+c.Slug+".tar.gz"))
	return c.WriteArchive(v.W)
}

// awaited returns the clients that arrived since the page of a client was opened.
func (s *pages) awaited(v *web.Visit, c client) (w waiting, err error) {
	since, ok := sinceOf(v.R)
	if !ok {
		since = s.Now()
	}
	w.Since, w.Client, w.Name = since.UnixMilli(), c.Slug, c.Called()
	// The time makes each address new. If a link led to the current address, a browser would
	// scroll and not reload.
	w.Again = v.R.URL.Path + "?since=" + strconv.FormatInt(w.Since, 10) + "&at=" + strconv.FormatInt(s.Now().UnixMilli(), 10)
	if !ok {
		return w, nil
	}
	if w.Arrived, err = s.arrived(v, since, c.Slug); err != nil {
		return w, err
	}
	w.Refused = s.refusedSince(v, since, c.Slug, w.Arrived)
	for _, a := range w.Arrived {
		w.Called = w.Called || a.Called
		w.Ticked = w.Ticked || a.Called && !a.Other
	}
	return w, nil
}

// maxWaiting limits how far back since may be.
const maxWaiting = 24 * time.Hour

func sinceOf(r *http.Request) (time.Time, bool) {
	ms, err := strconv.ParseInt(r.URL.Query().Get("since"), 10, 64)
	if err != nil || ms <= 0 {
		return time.Time{}, false
	}
	return time.UnixMilli(ms), true
}

// maxArrivals limits the list of arrivals.
const maxArrivals = 10

// arrived lists the clients that connected or called since a time, for the page of a
// client.
func (s *pages) arrived(v *web.Visit, since time.Time, client string) ([]arrival, error) {
	if early := s.Now().Add(-maxWaiting); since.Before(early) {
		since = early
	}
	grants, err := s.Service.ListGrants(v.R.Context(), v.Actor(), service.ListGrantsInput{})
	if err != nil {
		return nil, err
	}
	out := []arrival{}
	for _, g := range grants {
		called := !g.LastUsed.IsZero() && !g.LastUsed.Before(since)
		if !called && (g.Created.Before(since) || g.Kind == "key") {
			continue
		}
		a := arrival{Name: web.Shorten(g.Name, 80), Space: web.Shorten(g.SpaceName, 80), Called: called, At: g.Created}
		if called {
			a.At = g.LastUsed
		}
		a.Other = !isClient(client, g, g.Name)
		of := len(out)
		for _, as := range s.Called(g.ID) {
			if !called || as.At.Before(since) {
				continue
			}
			b := a
			b.Other = !isClient(client, g, as.Name) && (g.Kind == "key" || a.Other)
			if g.Kind == "key" {
				b.Name, b.Key = web.Shorten(as.Name, 80), a.Name
			} else if len(out) > of { // one client that uses several names
				out[of].Other = out[of].Other && b.Other
				continue
			}
			out = append(out, b)
		}
		if len(out) == of {
			out = append(out, a)
		}
	}
	for i := range out {
		if out[i].Name == "" {
			out[i].Name = "A client without a name"
		}
	}
	// The client that the page is about comes first, so that it is never cut off.
	slices.SortStableFunc(out, func(a, b arrival) int {
		if a.Other != b.Other {
			if b.Other {
				return -1
			}
			return 1
		}
		return b.At.Compare(a.At)
	})
	// Once the client that the page is about has called, the others do not matter.
	if slices.ContainsFunc(out, func(a arrival) bool { return a.Called && !a.Other }) {
		out = slices.DeleteFunc(out, func(a arrival) bool { return a.Other })
	}
	return out[:min(len(out), maxArrivals)], nil
}

// maxRefusals limits the list of refused requests.
const maxRefusals = 5

// refusedSince returns the requests from the visitor's address that were refused since a time. An
// admin gets those from all addresses, because clients such as Claude on the web run elsewhere. After
// the arrival of the client that the page is about, earlier requests without a sign-in are left out.
func (s *pages) refusedSince(v *web.Visit, since time.Time, client string, arrived []arrival) []refusal {
	keyed := client == "key" || client == "code" // a client that does not sign in
	out := []refusal{}
	for _, r := range s.Refused(s.Address(v.R), v.User.Admin) {
		signIn := !keyed && r.Status == http.StatusUnauthorized && !r.Key && strings.HasSuffix(r.Asked, " /mcp")
		over := signIn && slices.ContainsFunc(arrived, func(a arrival) bool { return !a.Other && a.At.After(r.At) })
		if !r.At.Before(since) && !over && len(out) < maxRefusals {
			out = append(out, refusal{r, signIn})
		}
	}
	return out
}

// connectStatus handles GET /connect/status, which the script polls.
func (s *pages) connectStatus(v *web.Visit) error {
	since, ok := sinceOf(v.R)
	if !ok {
		since = s.Now()
	}
	client := v.R.URL.Query().Get("client")
	list, err := s.arrived(v, since, client)
	if err != nil {
		return err
	}
	s.JSON(v, http.StatusOK, map[string]any{"clients": list, "refused": s.refusedSince(v, since, client, list)})
	return nil
}
