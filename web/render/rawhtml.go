package render

import (
	"bytes"
	"slices"
	"strings"

	"github.com/yuin/goldmark/ast"
	"golang.org/x/net/html"
)

// piece is a part of raw HTML in a document.
type piece struct {
	text string // as in the document
	// tag is the name of an allowed element. end reports whether this is its end tag.
	tag  string
	end  bool
	pass bool // has its counterpart, or needs none
	kind html.TokenType
}

// passes reports whether an element without attributes is allowed. Some elements are
// allowed only in blocks of HTML. Everything else is shown as text.
func passes(tag string, block bool) bool {
	switch tag {
	case "br", "kbd", "sub", "sup", "ins", "del", "mark", "b", "i", "em", "strong":
		return true
	case "hr", "details", "summary":
		return block
	}
	return false
}

func void(tag string) bool { return tag == "br" || tag == "hr" }

// inline parses a tag, a comment or a similar part within text.
func inline(src string) piece {
	p := piece{text: src, kind: html.ErrorToken}
	if strings.HasPrefix(src, "<!--") {
		p.kind = html.CommentToken
		return p
	}
	tag := strings.ToLower(strings.Trim(src, "</> \t\n"))
	end := strings.HasPrefix(src, "</")
	if passes(tag, false) && plain(src, tag) && !(end && void(tag)) && (void(tag) || !strings.HasSuffix(src, "/>")) {
		p.tag, p.end, p.pass = tag, end, void(tag)
	}
	return p
}

func cut(src []byte) []piece {
	var out []piece
	z := html.NewTokenizer(bytes.NewReader(src))
	used := 0
	for {
		kind := z.Next()
		if kind == html.ErrorToken {
			break
		}
		raw := z.Raw()
		used += len(raw)
		p := piece{text: string(raw), kind: kind}
		switch kind {
		case html.StartTagToken, html.EndTagToken, html.SelfClosingTagToken:
			name, attributes := z.TagName()
			tag := string(name)
			if plain(p.text, tag) && !attributes && passes(tag, true) && (kind != html.SelfClosingTagToken || void(tag)) {
				p.tag, p.end = tag, kind == html.EndTagToken
				p.pass = void(tag) && !p.end
			}
		case html.CommentToken:
			if !strings.HasPrefix(p.text, "<!--") {
				p.kind = html.TextToken
			}
		}
		out = append(out, p)
	}
	if used < len(src) { // an unfinished tag
		out = append(out, piece{text: string(src[used:]), kind: html.ErrorToken})
	}
	return out
}

// plain reports whether a tag has only a name.
func plain(raw, tag string) bool {
	t := strings.Trim(raw, "</> \t\n")
	return strings.EqualFold(t, tag)
}

// pair marks the elements that begin and end in order. Only details may begin in one part
// and end in another.
func pair(all []*piece, part []int) {
	var open []int
	for i, p := range all {
		switch {
		case p.tag == "" || void(p.tag):
		case !p.end:
			if p.tag == "summary" && (len(open) == 0 || all[open[len(open)-1]].tag != "details") {
				continue
			}
			open = append(open, i)
		default:
			at := -1
			for j := len(open) - 1; j >= 0 && at < 0; j-- {
				if all[open[j]].tag == p.tag {
					at = j
				}
			}
			if at < 0 || p.tag != "details" && part[open[at]] != part[i] {
				continue
			}
			all[open[at]].pass, p.pass = true, true
			open = open[:at]
		}
		// People do not nest elements deeper than this.
		if len(open) > maxNesting {
			open = slices.Delete(open, 0, 1)
		}
	}
	// A summary is only allowed in details.
	depth := 0
	for i, p := range all {
		switch {
		case !p.pass:
		case p.tag == "details" && !p.end:
			depth++
		case p.tag == "details":
			depth--
		case p.tag == "summary" && depth == 0:
			all[i].pass = false
		}
	}
}

// planRaw decides which raw HTML of a document is allowed. An element must begin and end
// under the same parent.
func (w *writer) planRaw(root ast.Node) {
	_ = ast.Walk(root, func(n ast.Node, entering bool) (ast.WalkStatus, error) {
		if !entering || !n.HasChildren() {
			return ast.WalkContinue, nil
		}
		var all []*piece
		var part []int
		for c := n.FirstChild(); c != nil; c = c.NextSibling() {
			var ps []piece
			switch c := c.(type) {
			case *ast.RawHTML:
				ps = []piece{inline(string(c.Segments.Value(w.src)))}
			case *ast.HTMLBlock:
				b := c.Lines().Value(w.src)
				if c.HasClosure() {
					b = append(bytes.Clone(b), c.ClosureLine.Value(w.src)...)
				}
				ps = cut(b)
			default:
				continue
			}
			w.raw[c] = ps
			for i := range ps {
				all = append(all, &ps[i])
				at := len(part)
				if _, ok := c.(*ast.RawHTML); ok {
					at = 0 // all text under one parent is one part
				} else if i > 0 {
					at = part[len(part)-1]
				}
				part = append(part, at)
			}
		}
		pair(all, part)
		return ast.WalkContinue, nil
	})
}

// writeRaw writes allowed pieces as HTML and the rest as text. It omits comments.
func writeRaw(out stringWriter, ps []piece) {
	for _, p := range ps {
		switch {
		case p.pass && p.end:
			_, _ = out.WriteString("</" + p.tag + ">")
		case p.pass:
			_, _ = out.WriteString("<" + p.tag + ">")
		case p.kind == html.CommentToken:
		case p.kind == html.TextToken:
			_, _ = out.WriteString(html.EscapeString(html.UnescapeString(p.text)))
		default:
			_, _ = out.WriteString(html.EscapeString(p.text))
		}
	}
}

type stringWriter interface {
	WriteString(string) (int, error)
}
