package render

import (
	"bytes"
	"slices"
	"strconv"
	"strings"

	"github.com/yuin/goldmark/ast"
	"golang.org/x/net/html"
)

// piece is a part of raw HTML in a document.
type piece struct {
	text string // the text as it is in the document
	// tag is the name of an allowed element. end reports whether this is its end tag.
	tag  string
	end  bool
	pass bool // the piece is written as HTML: it fits, and has its counterpart or needs none
	// other is set for a part that is Markdown. Then the other fields are not set.
	other bool
	kind  html.TokenType
	// html is the HTML to write if the piece passes. For a start tag, close is the HTML of its
	// end tag.
	html, close string
}

// passes reports whether an element is allowed, with the attributes that elementOf keeps.
// Some elements are allowed only in blocks of HTML. Everything else is shown as text.
func passes(tag string, block bool) bool {
	switch tag {
	case "br", "kbd", "sub", "sup", "ins", "del", "mark", "b", "i", "em", "strong", "a", "img", "code", "span", "small", "s", "u", "q", "abbr", "cite", "samp", "var", "dfn", "wbr":
		return true
	case "hr", "details", "summary", "div", "center", "section", "article", "header", "footer", "main", "aside", "p", "h1", "h2", "h3", "h4", "h5", "h6",
		"ul", "ol", "li", "dl", "dt", "dd", "table", "caption", "thead", "tbody", "tfoot", "tr", "th", "td", "blockquote", "pre", "figure", "figcaption":
		return block
	}
	return false
}

func void(tag string) bool { return tag == "br" || tag == "hr" || tag == "img" || tag == "wbr" }

// spans reports whether an element may begin in one part of HTML and end in another, around
// text that is Markdown.
func spans(tag string) bool {
	switch tag {
	case "details", "div", "center", "section", "article", "header", "footer", "main", "aside", "blockquote", "figure",
		"ul", "ol", "li", "dl", "dt", "dd", "table", "thead", "tbody", "tfoot", "tr", "th", "td":
		return true
	}
	return false
}

// fits reports whether the element tag may be a direct child of the element in. in is "" for the
// document.
// Browsers end elements early where these rules are broken. An end tag could then end an element of
// the page around the document.
func fits(tag, in string) bool {
	switch tag {
	case "summary":
		return in == "details"
	case "li":
		return in == "ul" || in == "ol"
	case "dt", "dd":
		return in == "dl"
	case "caption", "thead", "tbody", "tfoot":
		return in == "table"
	case "tr":
		return in == "table" || in == "thead" || in == "tbody" || in == "tfoot"
	case "th", "td":
		return in == "tr"
	}
	return !ofTable(in)
}

// ofTable reports whether the children of an element must be parts of a table.
func ofTable(tag string) bool {
	switch tag {
	case "table", "thead", "tbody", "tfoot", "tr":
		return true
	}
	return false
}

// elementOf sets the HTML of an allowed tag: its name and the attributes that pages keep.
func (w *writer) elementOf(p *piece, attributes map[string]string) {
	name, out := p.tag, ""
	keep := func(key, value string) { out += " " + key + `="` + html.EscapeString(value) + `"` }
	switch p.tag {
	case "center":
		name = "div"
		keep("align", "center")
	case "section", "article", "header", "footer", "main", "aside":
		name = "div"
	case "h1", "h2", "h3", "h4", "h5", "h6":
		name = "h" + strconv.Itoa(min(6, int(p.tag[1]-'0')+w.at.Under))
	case "details":
		if _, ok := attributes["open"]; ok {
			out = " open"
		}
	case "a":
		t, ok := w.at.resolve(attributes["href"])
		if !ok {
			name = "span" // an anchor, or an address that pages do not link to
			break
		}
		keep("href", t.href)
		if t.external {
			keep("rel", "noreferrer noopener nofollow")
		}
	case "img":
		p.html = w.rawPicture(attributes)
		return
	}
	switch name {
	case "p", "div", "h2", "h3", "h4", "h5", "h6", "th", "td":
		if v := strings.ToLower(attributes["align"]); v == "left" || v == "right" || v == "center" {
			keep("align", v)
		}
	}
	if name == "td" || name == "th" {
		for _, key := range []string{"colspan", "rowspan"} {
			if n, err := strconv.Atoi(attributes[key]); err == nil && n > 1 && n <= 50 {
				keep(key, strconv.Itoa(n))
			}
		}
	}
	p.html, p.close = "<"+name+out+">", "</"+name+">"
}

// rawPicture returns the HTML of a picture. A picture on another site is only named, so that
// the page does not load it.
func (w *writer) rawPicture(attributes map[string]string) string {
	alt := attributes["alt"]
	t, ok := w.at.resolve(attributes["src"])
	if !ok || t.path == "" || !isPicture(t.path) {
		if alt == "" {
			alt = "picture"
		}
		return `<span class="hint">(` + html.EscapeString(alt) + `)</span>`
	}
	out := `<img src="` + html.EscapeString(t.image) + `" alt="` + html.EscapeString(alt) + `" loading="lazy"`
	for _, key := range []string{"width", "height"} {
		if n, err := strconv.Atoi(attributes[key]); err == nil && n > 0 && n <= 4000 {
			out += " " + key + `="` + strconv.Itoa(n) + `"`
		}
	}
	return out + ">"
}

// maxAttributes limits the attributes of a tag. A tag with more is shown as text.
const maxAttributes = 30

// attributesOf reads the attributes of the current tag. ok is false if there are too many.
func attributesOf(z *html.Tokenizer, has bool) (out map[string]string, ok bool) {
	out = map[string]string{}
	for n := 0; has; n++ {
		if n == maxAttributes {
			return nil, false
		}
		var key, value []byte
		key, value, has = z.TagAttr()
		if _, twice := out[string(key)]; !twice { // browsers take the first
			out[string(key)] = string(value)
		}
	}
	return out, true
}

// inline parses a tag, a comment or a similar part within text.
func (w *writer) inline(src string) piece {
	p := piece{text: src, kind: html.ErrorToken}
	if strings.HasPrefix(src, "<!--") {
		p.kind = html.CommentToken
		return p
	}
	z := html.NewTokenizer(strings.NewReader(src))
	if kind := z.Next(); kind == html.StartTagToken || kind == html.EndTagToken || kind == html.SelfClosingTagToken {
		if len(z.Raw()) == len(src) {
			w.tag(z, kind, false, &p)
		}
	}
	return p
}

// tag sets the fields of a piece from the current tag, if the tag is allowed.
func (w *writer) tag(z *html.Tokenizer, kind html.TokenType, block bool, p *piece) {
	name, has := z.TagName()
	tag := string(name)
	end := kind == html.EndTagToken
	if !passes(tag, block) || end && void(tag) || kind == html.SelfClosingTagToken && !void(tag) {
		return
	}
	attributes, ok := attributesOf(z, has)
	if !ok {
		return
	}
	p.tag, p.end, p.pass = tag, end, void(tag)
	if !end {
		w.elementOf(p, attributes)
	}
}

func (w *writer) cut(src []byte) []piece {
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
			w.tag(z, kind, true, &p)
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

// pair marks the elements that begin and end in order, and that fit where they are. part
// gives the part of the document to which each piece belongs.
func pair(all []*piece, part []int) {
	var open []int
	for i, p := range all {
		switch {
		case p.tag == "" || void(p.tag):
		case !p.end:
			open = append(open, i)
		default:
			at := -1
			for j := len(open) - 1; j >= 0 && at < 0; j-- {
				if all[open[j]].tag == p.tag {
					at = j
				}
			}
			if at < 0 || !spans(p.tag) && part[open[at]] != part[i] {
				continue
			}
			all[open[at]].pass, p.pass, p.html = true, true, all[open[at]].close
			open = open[:at]
		}
		// People do not nest elements deeper than this.
		if len(open) > maxNesting {
			open = slices.Delete(open, 0, 1)
		}
	}
	// Refuse the elements that do not fit into the element around them.
	var in []string    // the open elements that pass
	var refused []bool // for each open element, whether it does not fit
	for _, p := range all {
		switch {
		case p.other && len(in) > 0 && ofTable(in[len(in)-1]):
			for _, p := range all {
				p.pass = void(p.tag)
			}
			return
		case !p.pass || void(p.tag):
		case !p.end:
			around := ""
			if len(in) > 0 {
				around = in[len(in)-1]
			}
			no := !fits(p.tag, around)
			refused = append(refused, no)
			if no {
				p.pass = false
			} else {
				in = append(in, p.tag)
			}
		default:
			no := refused[len(refused)-1]
			refused = refused[:len(refused)-1]
			if no {
				p.pass = false
			} else {
				in = in[:len(in)-1]
			}
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
				ps = []piece{w.inline(string(c.Segments.Value(w.src)))}
			case *ast.HTMLBlock:
				b := c.Lines().Value(w.src)
				if c.HasClosure() {
					b = append(bytes.Clone(b), c.ClosureLine.Value(w.src)...)
				}
				ps = w.cut(b)
			default:
				all, part = append(all, &piece{other: true}), append(part, len(part))
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
		case p.pass:
			_, _ = out.WriteString(p.html)
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
