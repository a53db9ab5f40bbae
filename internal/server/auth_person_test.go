package server

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"testing"

	"golang.org/x/net/html"
)

// browser is a person's, without scripts: it keeps cookies, follows redirects
// within the server's origin, and sends the forms of its pages.
type browser struct {
	t      *testing.T
	origin string
	http   *http.Client
}

// newBrowser returns a browser that reaches the server at origin by way of next.
func newBrowser(t *testing.T, origin string, next http.RoundTripper) *browser {
	t.Helper()
	jar, err := cookiejar.New(nil)
	if err != nil {
		t.Fatal(err)
	}
	return &browser{t: t, origin: origin, http: &http.Client{Transport: next, Jar: jar, CheckRedirect: func(r *http.Request, via []*http.Request) error {
		if r.URL.Scheme+"://"+r.URL.Host != origin {
			return http.ErrUseLastResponse
		}
		if len(via) > 10 {
			return errors.New("more than 10 redirects")
		}
		return nil
	}}}
}

// shown is a page as the browser has it. Away is set where the browser was sent
// elsewhere.
type shown struct {
	url    *url.URL
	status int
	body   *html.Node
	text   string
	away   *url.URL
}

func (b *browser) do(r *http.Request) shown {
	b.t.Helper()
	res, err := b.http.Do(r)
	if err != nil {
		b.t.Fatal(err)
	}
	defer res.Body.Close()
	text, err := io.ReadAll(res.Body)
	if err != nil {
		b.t.Fatal(err)
	}
	s := shown{url: res.Request.URL, status: res.StatusCode, text: string(text)}
	if l := res.Header.Get("Location"); l != "" && res.StatusCode >= 300 && res.StatusCode < 400 {
		if s.away, err = res.Request.URL.Parse(l); err != nil {
			b.t.Fatal(err)
		}
		return s
	}
	if s.body, err = html.Parse(strings.NewReader(s.text)); err != nil {
		b.t.Fatal(err)
	}
	return s
}

// open goes to an address.
func (b *browser) open(address string) shown {
	b.t.Helper()
	r, err := http.NewRequestWithContext(b.t.Context(), http.MethodGet, address, nil)
	if err != nil {
		b.t.Fatal(err)
	}
	r.Header.Set("Accept", "text/html")
	return b.do(r)
}

// press sends the first form that has a button whose words match.
func (b *browser) press(s shown, button *regexp.Regexp) shown {
	b.t.Helper()
	for form := range elements(s.body, "form") {
		fields, buttons := formOf(form)
		i := slices.IndexFunc(buttons, func(x *html.Node) bool { return button.MatchString(words(x)) })
		if i < 0 {
			continue
		}
		if name := attr(buttons[i], "name"); name != "" {
			fields.Add(name, attr(buttons[i], "value"))
		}
		target, err := s.url.Parse(attr(form, "action"))
		if err != nil {
			b.t.Fatal(err)
		}
		r, err := http.NewRequestWithContext(b.t.Context(), http.MethodPost, target.String(), strings.NewReader(fields.Encode()))
		if err != nil {
			b.t.Fatal(err)
		}
		r.Header.Set("Accept", "text/html")
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		r.Header.Set("Origin", b.origin)
		r.Header.Set("Sec-Fetch-Site", "same-origin")
		return b.do(r)
	}
	b.t.Fatalf("%s (%d) has no button %s:\n%s", s.url, s.status, button, s.text)
	return shown{}
}

var (
	signInButton = regexp.MustCompile(`(?i)sign in|continue`)
	allowButton  = regexp.MustCompile(`(?i)^(allow|connect|approve)`)
)

// consent goes to a client's authorization request and lets it in, and returns
// where the browser ends up: at the client.
func (b *browser) consent(authorize string) *url.URL {
	b.t.Helper()
	page := b.open(authorize)
	if page.status != http.StatusOK || page.body == nil {
		b.t.Fatalf("%s: %d\n%s", page.url, page.status, page.text)
	}
	page = b.press(page, allowButton)
	if page.away != nil {
		return page.away
	}
	// To a scheme of the client's own, and where the client's page redirects to
	// one, a page leads by itself.
	for m := range elements(page.body, "meta") {
		if _, to, ok := strings.Cut(attr(m, "content"), "0;url="); ok && attr(m, "http-equiv") == "refresh" {
			u, err := url.Parse(to)
			if err != nil {
				b.t.Fatal(err)
			}
			return u
		}
	}
	b.t.Fatalf("nothing leads back to the client: %s (%d)\n%s", page.url, page.status, page.text)
	return nil
}

// formOf returns what the form would send as it is, and its buttons.
func formOf(form *html.Node) (url.Values, []*html.Node) {
	fields, buttons := url.Values{}, []*html.Node(nil)
	for n := range form.Descendants() {
		if n.Type != html.ElementNode || has(n, "disabled") {
			continue
		}
		switch n.Data {
		case "button":
			buttons = append(buttons, n)
		case "input":
			switch attr(n, "type") {
			case "checkbox", "radio":
				if has(n, "checked") {
					fields.Add(attr(n, "name"), attr(n, "value"))
				}
			case "submit", "button":
			default:
				fields.Add(attr(n, "name"), attr(n, "value"))
			}
		case "select":
			var chosen *html.Node
			for o := range elements(n, "option") {
				if chosen == nil || has(o, "selected") {
					chosen = o
				}
			}
			if chosen != nil {
				fields.Add(attr(n, "name"), attr(chosen, "value"))
			}
		}
	}
	return fields, buttons
}

func elements(n *html.Node, name string) func(yield func(*html.Node) bool) {
	return func(yield func(*html.Node) bool) {
		for d := range n.Descendants() {
			if d.Type == html.ElementNode && d.Data == name && !yield(d) {
				return
			}
		}
	}
}

func attr(n *html.Node, name string) string {
	for _, a := range n.Attr {
		if a.Key == name {
			return a.Val
		}
	}
	return ""
}

func has(n *html.Node, name string) bool {
	return slices.ContainsFunc(n.Attr, func(a html.Attribute) bool { return a.Key == name })
}

func words(n *html.Node) string {
	var b strings.Builder
	for d := range n.Descendants() {
		if d.Type == html.TextNode {
			b.WriteString(d.Data)
		}
	}
	return strings.Join(strings.Fields(b.String()), " ")
}

// frontDoor is a reverse proxy that speaks https to the world and leaves Host as
// it was; every other request goes its own way. It keeps no connection.
type frontDoor struct {
	origins []string // of the world
	direct  *http.Transport
}

// newFrontDoor leads to the host and port to.
func newFrontDoor(t *testing.T, to string, origins ...string) *frontDoor {
	d := &frontDoor{origins: origins, direct: &http.Transport{DialContext: func(ctx context.Context, network, _ string) (net.Conn, error) {
		// A client that looked for the server anywhere else would leave this machine.
		return (&net.Dialer{}).DialContext(ctx, network, to)
	}}}
	t.Cleanup(d.direct.CloseIdleConnections)
	return d
}

// RoundTrip refuses everything that is not for the server.
func (d *frontDoor) RoundTrip(r *http.Request) (*http.Response, error) {
	if got := r.URL.Scheme + "://" + r.URL.Host; !slices.Contains(d.origins, got) {
		return nil, fmt.Errorf("a request to %s, which is none of the server's origins %v", got, d.origins)
	}
	behind := r.Clone(r.Context())
	behind.Host, behind.URL.Scheme = r.URL.Host, "http"
	res, err := d.direct.RoundTrip(behind)
	if err == nil {
		res.Request = r
	}
	return res, err
}
