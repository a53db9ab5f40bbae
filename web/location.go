package web

import (
	"html/template"
	"net/http"
	"net/url"
	"strings"

	"satchel/internal/fault"
)

// maxReturn bounds an address to return to; the longest are authorization
// requests.
const maxReturn = 32 << 10

// LocalPath returns the path to which somebody may be sent back: one of this
// server, with its query, else "/". Browsers read `//host` and `/\host` as
// another host and drop control characters before they read.
func LocalPath(s string) string {
	if !strings.HasPrefix(s, "/") || strings.HasPrefix(s, "//") || len(s) > maxReturn || strings.Contains(s, `\`) {
		return "/"
	}
	for _, c := range []byte(s) {
		if c < 0x20 || c == 0x7f {
			return "/"
		}
	}
	u, err := url.Parse(s)
	if err != nil || u.IsAbs() || u.Host != "" || u.User != nil || u.Opaque != "" || strings.HasPrefix(u.Path, "//") || strings.Contains(u.Path, `\`) {
		return "/"
	}
	out := url.URL{Path: u.Path, RawPath: u.RawPath, RawQuery: u.RawQuery}
	return out.String()
}

// See sends the browser on to a path of this server, with a GET. The address is
// absolute, so that no path can be read as a host.
func (s *Site) See(v *Visit, path string) error {
	v.W.Header().Set("Location", s.URL(path))
	v.W.WriteHeader(http.StatusSeeOther)
	return nil
}

// SendTo sends the browser on to another site or program. asked reports whether the
// person just sent it there by a form. Where the policy for forms could stop it
// on the way, it is a page that leads there by itself; and to a program only a
// person leads, unless they asked.
func (s *Site) SendTo(v *Visit, location string, asked bool) error {
	u, err := wayBack(location)
	if err != nil {
		return err
	}
	if IsWeb(u) && (!asked || FormSources(u) != "") {
		// 303: what the form held is not sent along (RFC 9700 section 4.12).
		v.W.Header().Set("Location", location)
		v.W.WriteHeader(http.StatusSeeOther)
		return nil
	}
	return s.Page(v, http.StatusOK, "leave", Page{
		Title: "Going back", Body: leaving{URL: template.URL(location), Host: hostOf(u), App: !IsWeb(u), Auto: asked}, //nolint:gosec // mayLeaveFor checked it
	})
}

// wayBack reads an address of a client's, to which a browser may be sent.
func wayBack(location string) (*url.URL, error) {
	u, err := url.Parse(location)
	if err != nil || !mayLeaveFor(u) {
		return nil, &PageError{Status: http.StatusBadRequest, Title: "There is no way back", Text: "The address that the program gave cannot be opened."}
	}
	return u, nil
}

func IsWeb(u *url.URL) bool { return u.Scheme == "https" || u.Scheme == "http" }

// OfferToSend is a page with a link to another site or program, to which nobody
// said that they want to go.
func (s *Site) OfferToSend(v *Visit, location string) error {
	u, err := wayBack(location)
	if err != nil {
		return err
	}
	return s.Page(v, http.StatusOK, "leave", Page{
		Title: "Going back", Body: leaving{URL: template.URL(location), Host: hostOf(u), App: !IsWeb(u)}, //nolint:gosec // mayLeaveFor checked it
	})
}

// leaving is the page that leads to another site or program.
type leaving struct {
	URL  template.URL
	Host string
	App  bool
	Auto bool // goes there by itself
}

// hostOf is what an address is called on pages.
func hostOf(u *url.URL) string {
	if IsWeb(u) {
		return u.Host
	}
	return strings.ToLower(u.Scheme) + ":"
}

// mayLeaveFor reports whether a browser may be sent to the address: never to one
// that would run as a page of this server.
func mayLeaveFor(u *url.URL) bool {
	switch strings.ToLower(u.Scheme) {
	case "", "javascript", "data", "vbscript", "file", "blob", "about", "view-source", "filesystem":
		return false
	case "http", "https":
		return u.Host != ""
	}
	return true
}

// FormSources are the sources of a content security policy by which the answer
// to a form may redirect to the address; "" where they cannot be written, or
// would not be enough. Chromium checks every further redirect too, and hosted
// clients and programs do redirect on, to pages of their vendor: so that any
// https goes besides. The forms of these pages hold nothing of worth to another
// site.
func FormSources(u *url.URL) string {
	if !IsWeb(u) || u.Hostname() == "" || strings.ContainsAny(u.Host, "[]'\"; ,*") {
		return "" // a source cannot be an IPv6 address
	}
	switch strings.ToLower(u.Hostname()) {
	case "vscode.dev", "insiders.vscode.dev":
		return "" // they redirect on, to programs
	}
	return u.Scheme + "://" + u.Host + " https:"
}

// SendToProvider sends the browser to a provider: after a form by a page, since where
// a provider redirects on no policy for forms can say.
func (s *Site) SendToProvider(v *Visit, location string) error {
	u, err := url.Parse(location)
	if err != nil || !IsWeb(u) || u.Host == "" {
		return fault.New(fault.Unavailable, "The sign-in service gave no usable address.")
	}
	if v.R.Method == http.MethodGet {
		v.W.Header().Set("Location", location)
		v.W.WriteHeader(http.StatusSeeOther)
		return nil
	}
	return s.Page(v, http.StatusOK, "leave", Page{
		Title: "Going on", Body: leaving{URL: template.URL(location), Host: u.Host, Auto: true}, //nolint:gosec // http or https
	})
}
