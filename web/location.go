package web

import (
	"cmp"
	"html/template"
	"net/http"
	"net/url"
	"strings"

	"satchel/internal/fault"
)

// maxReturn limits the length of an address to return to; authorization requests are the
// longest.
const maxReturn = 32 << 10

// LocalPath returns s if it is a path of this server, with its query, and else "/".
// Browsers take `//host` and `/\host` as another host, and drop control characters before
// they parse an address.
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

// See redirects the browser to a path of this server, with a GET. The address is
// absolute, so that no path can be taken for a host.
func (s *Site) See(v *Visit, path string) error {
	v.W.Header().Set("Location", s.URL(path))
	v.W.WriteHeader(http.StatusSeeOther)
	return nil
}

// SendTo sends the browser to another site or program. client is the name of the client, or
// empty. asked reports that the person just submitted a form to go there. If the content
// security policy for forms could block the redirect, SendTo answers with a page that goes
// there by itself. If the person did not ask, a program opens only from a link on that page.
func (s *Site) SendTo(v *Visit, location, client string, asked bool) error {
	u, err := wayBack(location)
	if err != nil {
		return err
	}
	if IsWeb(u) && (!asked || FormSources(u) != "") {
		// With status 303 the form is not sent along (RFC 9700 section 4.12).
		v.W.Header().Set("Location", location)
		v.W.WriteHeader(http.StatusSeeOther)
		return nil
	}
	return s.leave(v, u, location, client, asked)
}

// wayBack parses an address of a client and checks that a browser may be sent there.
func wayBack(location string) (*url.URL, error) {
	u, err := url.Parse(location)
	if err != nil || !mayLeaveFor(u) {
		return nil, &PageError{Status: http.StatusBadRequest, Title: "Cannot return to the client", Text: "The client gave an address that this server does not redirect to."}
	}
	return u, nil
}

// IsWeb reports whether an address is http or https, so that it does not open a program.
func IsWeb(u *url.URL) bool { return u.Scheme == "https" || u.Scheme == "http" }

// OfferToSend answers with a page that links to another site or program, without going
// there by itself.
func (s *Site) OfferToSend(v *Visit, location string) error {
	u, err := wayBack(location)
	if err != nil {
		return err
	}
	return s.leave(v, u, location, "", false)
}

// leave answers with the page that leads to the address of a client.
func (s *Site) leave(v *Visit, u *url.URL, location, client string, auto bool) error {
	client = cmp.Or(client, "the client")
	return s.Page(v, http.StatusOK, "leave", Page{
		Bare: true, Title: "Return to " + client, Body: leaving{URL: template.URL(location), Host: hostOf(u), Client: client, App: !IsWeb(u), Auto: auto}, //nolint:gosec // mayLeaveFor checked it
	})
}

// leaving is the body of the page that leads to another site or program.
type leaving struct {
	URL    template.URL
	Host   string
	Client string // how the page calls the client
	App    bool   // the address opens a program
	Auto   bool   // the page goes there by itself
}

// hostOf returns how pages name the target of an address.
func hostOf(u *url.URL) string {
	if IsWeb(u) {
		return u.Host
	}
	return strings.ToLower(u.Scheme) + ":"
}

// mayLeaveFor reports whether a browser may be sent to the address. Addresses that could
// run as a page of this server are rejected.
func mayLeaveFor(u *url.URL) bool {
	switch strings.ToLower(u.Scheme) {
	case "", "javascript", "data", "vbscript", "file", "blob", "about", "view-source", "filesystem":
		return false
	case "http", "https":
		return u.Host != ""
	}
	return true
}

// FormSources returns the sources in a content security policy that let the answer to a
// form redirect to the address. It is "" if they cannot be written or would not suffice.
// Chromium checks all further redirects too, and clients redirect to pages of their
// vendor, so any https address is allowed. The forms of these pages contain nothing that
// another site could use.
func FormSources(u *url.URL) string {
	if !IsWeb(u) || u.Hostname() == "" || strings.ContainsAny(u.Host, "[]'\"; ,*") {
		return "" // a source cannot be an IPv6 address
	}
	switch strings.ToLower(u.Hostname()) {
	case "vscode.dev", "insiders.vscode.dev":
		return "" // pages at these hosts redirect to programs
	}
	return u.Scheme + "://" + u.Host + " https:"
}

// SendToProvider sends the browser to a provider. After a form, it answers with a page that
// goes there by itself, because a policy for forms cannot list where the provider redirects to.
func (s *Site) SendToProvider(v *Visit, location string) error {
	u, err := url.Parse(location)
	if err != nil || !IsWeb(u) || u.Host == "" {
		return fault.New(fault.Unavailable, "The sign-in service returned no usable address.")
	}
	if v.R.Method == http.MethodGet {
		v.W.Header().Set("Location", location)
		v.W.WriteHeader(http.StatusSeeOther)
		return nil
	}
	return s.Page(v, http.StatusOK, "leave", Page{
		Bare: true, Title: "Redirecting", Body: leaving{URL: template.URL(location), Host: u.Host, Auto: true}, //nolint:gosec // http or https
	})
}
