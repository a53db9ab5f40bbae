package htmlmark

import (
	"net/url"
	"strconv"
	"strings"
	"unicode"

	"golang.org/x/net/html"
	"golang.org/x/net/html/atom"
)

// maxLinks bounds the links of a page that Convert returns.
const maxLinks = 10_000

// maxAddress is the longest address that Convert keeps.
const maxAddress = 4096

func baseOf(doc *html.Node, at *url.URL) *url.URL {
	b := first(doc, func(n *html.Node) bool { return n.DataAtom == atom.Base && attr(n, "href") != "" })
	if b == nil {
		return at
	}
	if u := resolve(at, attr(b, "href")); u != nil && u.Host != "" {
		return u
	}
	return at
}

func resolve(base *url.URL, address string) *url.URL {
	address = strings.TrimSpace(address)
	if len(address) > maxAddress {
		return nil
	}
	u, err := base.Parse(address)
	if err != nil {
		return nil
	}
	return u
}

// titleOf returns the h1 heading of the main content. If there is none, it prefers a heading
// that is part of the document's title to the title itself, which often names the site too.
func titleOf(doc, main *html.Node) string {
	title := ""
	if n := first(doc, func(n *html.Node) bool { return n.DataAtom == atom.Title && n.Namespace == "" }); n != nil {
		title = line(textOf(n))
	}
	named := func(n *html.Node) string {
		if n == nil {
			return ""
		}
		return strings.TrimRight(line(textOf(n)), "#¶§ ")
	}
	isH1 := func(n *html.Node) bool { return n.DataAtom == atom.H1 }
	if t := named(first(main, isH1)); t != "" {
		return t
	}
	for _, t := range []string{named(first(main, heading)), named(first(doc, isH1))} {
		if t != "" && (title == "" || strings.Contains(title, t)) {
			return t
		}
	}
	return title
}

func canonicalOf(doc *html.Node, base *url.URL) *url.URL {
	n := first(doc, func(n *html.Node) bool {
		return n.DataAtom == atom.Link && strings.EqualFold(attr(n, "rel"), "canonical") && attr(n, "href") != ""
	})
	if n == nil {
		return nil
	}
	u := resolve(base, attr(n, "href"))
	if u == nil || u.Host == "" {
		return nil
	}
	u.Fragment, u.RawFragment = "", ""
	return u
}

func linksOf(doc *html.Node, base *url.URL) []*url.URL {
	var all []*url.URL
	seen := map[string]bool{}
	each(doc, func(n *html.Node) {
		if n.DataAtom != atom.A && n.DataAtom != atom.Area || len(all) == maxLinks {
			return
		}
		href, ok := lookup(n, "href")
		if !ok || strings.HasPrefix(href, "#") {
			return
		}
		u := resolve(base, href)
		if u == nil || u.Host == "" || u.Scheme != "https" && u.Scheme != "http" {
			return
		}
		u.Fragment, u.RawFragment = "", ""
		if s := u.String(); !seen[s] {
			seen[s] = true
			all = append(all, u)
		}
	})
	return all
}

// readdress changes the addresses of links and images. A link within the page leads to the
// anchor of its heading in Markdown.
func readdress(root *html.Node, base, at *url.URL, target func(*url.URL) string) {
	anchors := anchorsOf(root)
	var lost []*html.Node
	each(root, func(n *html.Node) {
		switch n.DataAtom {
		case atom.A:
			u := resolve(base, attr(n, "href"))
			switch {
			case u == nil || strings.TrimSpace(attr(n, "href")) == "" || !linkable(u.Scheme):
				lost = append(lost, n)
			case u.Host == "":
				setAttr(n, "href", u.String()) // mailto
			case samePage(u, at) && u.Fragment != "" && anchors[u.Fragment] != "":
				setAttr(n, "href", "#"+anchors[u.Fragment])
			default:
				setAttr(n, "href", target(u))
			}
			n.Attr = keep(n.Attr, "href")
		case atom.Img:
			src := attr(n, "src")
			if lazy := attr(n, "data-src"); lazy != "" && (src == "" || strings.HasPrefix(src, "data:")) {
				src = lazy
			}
			u := resolve(base, src)
			if u == nil || u.Host == "" || src == "" {
				n.Attr = keep(n.Attr, "alt") // no address; the converter leaves it out
				return
			}
			setAttr(n, "src", target(u))
			n.Attr = keep(n.Attr, "src", "alt")
		}
	})
	for _, n := range lost {
		unwrap(n)
	}
}

func linkable(scheme string) bool {
	switch scheme {
	case "http", "https", "mailto", "tel", "ftp":
		return true
	}
	return false
}

func samePage(u, at *url.URL) bool {
	return u.Host == at.Host && u.Path == at.Path && u.RawQuery == at.RawQuery
}

func keep(all []html.Attribute, keys ...string) []html.Attribute {
	var kept []html.Attribute
	for _, a := range all {
		for _, k := range keys {
			if a.Key == k && a.Namespace == "" && len(a.Val) <= 2*maxAddress {
				kept = append(kept, a)
			}
		}
	}
	return kept
}

// anchorsOf returns the anchors that Markdown gives the headings, by the ids of the page. An
// id between headings has the anchor of the heading above it, and an id directly before a
// heading has the anchor of this heading.
func anchorsOf(root *html.Node) map[string]string {
	anchors := map[string]string{}
	var open []string // ids without text after them
	current := ""
	taken := map[string]int{}
	settle := func() {
		for _, id := range open {
			if _, ok := anchors[id]; !ok {
				anchors[id] = current
			}
		}
		open = open[:0]
	}
	begins := map[*html.Node][]string{} // ids of the elements that a heading begins
	var walk func(n *html.Node)
	walk = func(n *html.Node) {
		if n.Type == html.TextNode && strings.TrimSpace(n.Data) != "" {
			settle()
			return
		}
		if heading(n) {
			text := line(textOf(n))
			if text == "" {
				return
			}
			current = unique(taken, Anchor(text))
			each(n, func(n *html.Node) { open = append(open, ids(n)...) })
			open = append(open, begins[n]...)
			settle()
			return
		}
		if all := ids(n); len(all) > 0 {
			if h := firstHeading(n); h != nil {
				begins[h] = append(begins[h], all...)
			} else {
				open = append(open, all...)
			}
		}
		for c := n.FirstChild; c != nil; c = c.NextSibling {
			walk(c)
		}
	}
	walk(root)
	settle()
	return anchors
}

// maxPreamble is how much text an element can have before the heading that begins it, such
// as a version.
const maxPreamble = 60

// firstHeading returns the heading that begins an element, or nil.
func firstHeading(n *html.Node) *html.Node {
	size := 0
	return first(n, func(n *html.Node) bool {
		if n.Type == html.TextNode {
			size += len(strings.TrimSpace(n.Data))
		}
		return size <= maxPreamble && heading(n)
	})
}

func ids(n *html.Node) []string {
	var all []string
	if id := attr(n, "id"); id != "" {
		all = append(all, id)
	}
	if n.DataAtom == atom.A && attr(n, "name") != "" {
		all = append(all, attr(n, "name"))
	}
	return all
}

// Anchor returns the fragment that Markdown gives the first heading with a text: lower case,
// without punctuation, with hyphens for spaces. GitHub and the search index have the same rule.
func Anchor(heading string) string {
	var b strings.Builder
	for _, r := range strings.ToLower(heading) {
		switch {
		case unicode.IsLetter(r), unicode.IsDigit(r), unicode.IsMark(r), unicode.Is(unicode.Pc, r), r == '-':
			b.WriteRune(r)
		case r == ' ':
			b.WriteByte('-')
		}
	}
	return b.String()
}

func unique(taken map[string]int, plain string) string {
	anchor := plain
	for {
		if _, ok := taken[anchor]; !ok {
			taken[anchor] = 0
			return anchor
		}
		taken[plain]++
		anchor = plain + "-" + strconv.Itoa(taken[plain])
	}
}
