package htmlmark

import (
	"strings"

	"golang.org/x/net/html"
	"golang.org/x/net/html/atom"
)

// each calls f for a node and every node below it, in the order of the document. f may change
// the node, but not remove it.
func each(n *html.Node, f func(*html.Node)) {
	f(n)
	for c := n.FirstChild; c != nil; c = c.NextSibling {
		each(c, f)
	}
}

// prune removes the nodes below n for which f is true.
func prune(n *html.Node, f func(*html.Node) bool) {
	for c := n.FirstChild; c != nil; {
		next := c.NextSibling
		if f(c) {
			n.RemoveChild(c)
		} else {
			prune(c, f)
		}
		c = next
	}
}

// first returns the first node for which f is true, or nil.
func first(n *html.Node, f func(*html.Node) bool) *html.Node {
	if f(n) {
		return n
	}
	for c := n.FirstChild; c != nil; c = c.NextSibling {
		if found := first(c, f); found != nil {
			return found
		}
	}
	return nil
}

// largest looks at the outermost elements for which f is true, and returns the one with the
// most text, or nil.
func largest(n *html.Node, f func(*html.Node) bool) *html.Node {
	var best *html.Node
	most := 0
	var walk func(n *html.Node)
	walk = func(n *html.Node) {
		if n.Type == html.ElementNode && f(n) {
			if size := textLen(n); size > most {
				best, most = n, size
			}
			return
		}
		for c := n.FirstChild; c != nil; c = c.NextSibling {
			walk(c)
		}
	}
	walk(n)
	return best
}

// invisible reports whether an element has no text that readers see as content.
func invisible(n *html.Node) bool {
	switch n.DataAtom {
	case atom.Script, atom.Style, atom.Template, atom.Noscript, atom.Head, atom.Nav, atom.Svg:
		return true
	}
	return false
}

// textLen returns the length of the visible text.
func textLen(n *html.Node) int {
	if n.Type == html.TextNode {
		return len(strings.TrimSpace(n.Data))
	}
	if invisible(n) {
		return 0
	}
	size := 0
	for c := n.FirstChild; c != nil; c = c.NextSibling {
		size += textLen(c)
	}
	return size
}

// hasContent reports whether an element has visible text or an image.
func hasContent(n *html.Node) bool {
	return textLen(n) > 0 || first(n, func(n *html.Node) bool { return n.DataAtom == atom.Img }) != nil
}

// textOf returns all text.
func textOf(n *html.Node) string {
	var b strings.Builder
	each(n, func(n *html.Node) {
		if n.Type == html.TextNode {
			b.WriteString(n.Data)
		}
	})
	return b.String()
}

// line returns a text on one line.
func line(s string) string { return strings.Join(strings.Fields(s), " ") }

func attr(n *html.Node, key string) string {
	v, _ := lookup(n, key)
	return v
}

func lookup(n *html.Node, key string) (string, bool) {
	for _, a := range n.Attr {
		if a.Key == key && a.Namespace == "" {
			return a.Val, true
		}
	}
	return "", false
}

func setAttr(n *html.Node, key, value string) {
	for i, a := range n.Attr {
		if a.Key == key && a.Namespace == "" {
			n.Attr[i].Val = value
			return
		}
	}
	n.Attr = append(n.Attr, html.Attribute{Key: key, Val: value})
}

func rename(n *html.Node, a atom.Atom) { n.DataAtom, n.Data = a, a.String() }

// unwrap replaces a node by its children.
func unwrap(n *html.Node) {
	for c := n.FirstChild; c != nil; c = n.FirstChild {
		n.RemoveChild(c)
		n.Parent.InsertBefore(c, n)
	}
	n.Parent.RemoveChild(n)
}

func heading(n *html.Node) bool {
	switch n.DataAtom {
	case atom.H1, atom.H2, atom.H3, atom.H4, atom.H5, atom.H6:
		return true
	}
	return false
}

func set(words string) map[string]bool {
	m := map[string]bool{}
	for w := range strings.FieldsSeq(words) {
		m[w] = true
	}
	return m
}
