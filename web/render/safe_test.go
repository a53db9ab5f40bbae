package render_test

import (
	"fmt"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"testing"

	"golang.org/x/net/html"

	"satchel/web/render"
)

// allowed lists the attributes that each element of a rendered document may have. The
// values of addresses such as href and src are checked too.
var allowed = map[string][]string{
	"a": {"href", "rel", "title", "class", "id", "role", "tabindex", "aria-hidden"}, "img": {"src", "alt", "loading", "width", "height"},
	"h2": {"id", "align"}, "h3": {"id", "align"}, "h4": {"id", "align"}, "h5": {"id", "align"}, "h6": {"id", "align"},
	"small": nil, "s": nil, "u": nil, "q": nil, "abbr": nil, "cite": nil, "samp": nil, "var": nil, "dfn": nil, "wbr": nil, "figure": nil, "figcaption": nil,
	"dl": nil, "dt": nil, "dd": nil, "caption": nil, "tfoot": nil,
	"p": {"align"}, "br": nil, "hr": nil, "em": nil, "strong": nil, "del": nil, "ins": nil, "blockquote": nil, "code": nil,
	"pre": {"class", "tabindex"}, "span": {"class", "role", "aria-label", "id"}, "div": {"class", "tabindex", "role", "align"},
	"ul": {"class"}, "ol": {"class", "start"}, "li": {"id", "role"}, "table": nil, "thead": nil, "tbody": nil, "tr": nil,
	"th": {"align", "colspan", "rowspan"}, "td": {"align", "colspan", "rowspan"}, "details": {"open"}, "summary": nil, "kbd": nil, "sub": nil, "sup": {"id"}, "mark": nil, "b": nil, "i": nil,
	"html": nil, "head": nil, "body": nil, // the parser adds these
}

const base = "/spaces/s_x/"

// unsafe returns an error if HTML contains anything that is not allowed. It parses the HTML
// like a browser.
func unsafe(out string) error {
	root, err := html.Parse(strings.NewReader(out))
	if err != nil {
		return err
	}
	var visit func(*html.Node, int) error
	visit = func(n *html.Node, depth int) error {
		if n.Type == html.CommentNode || n.Type == html.DoctypeNode {
			return fmt.Errorf("a comment or doctype %q", n.Data)
		}
		if n.Type == html.ElementNode {
			attributes, ok := allowed[n.Data]
			if !ok || n.Namespace != "" {
				return fmt.Errorf("the element %s", n.Data)
			}
			for _, a := range n.Attr {
				if !slices.Contains(attributes, a.Key) || a.Namespace != "" {
					return fmt.Errorf("the attribute %s of %s", a.Key, n.Data)
				}
				if (a.Key == "href" || a.Key == "src") && !safeURL(a.Val, a.Key == "src") {
					return fmt.Errorf("the address %q", a.Val)
				}
			}
		}
		for c := n.FirstChild; c != nil; c = c.NextSibling {
			if err := visit(c, depth+1); err != nil {
				return err
			}
		}
		return nil
	}
	return visit(root, 0)
}

func safeURL(s string, loads bool) bool {
	if strings.HasPrefix(s, "#") {
		return !loads
	}
	u, err := url.Parse(s)
	if err != nil || strings.ContainsAny(s, "\t\n\r\x00\\") {
		return false
	}
	if !loads && (u.Scheme == "http" || u.Scheme == "https") && u.Host != "" || !loads && u.Scheme == "mailto" {
		return true
	}
	page := "files/"
	if loads {
		page = "raw/"
	}
	rest, ok := strings.CutPrefix(u.EscapedPath(), base+page)
	if !ok || u.Scheme != "" || u.Host != "" {
		return false
	}
	for seg := range strings.SplitSeq(rest, "/") {
		name, err := url.PathUnescape(seg)
		if err != nil || name == ".." || name == "." || strings.EqualFold(name, ".git") || strings.Contains(name, "/") {
			return false
		}
	}
	return true
}

// balanced returns an error unless every element of the HTML ends in it, in order.
// Otherwise the element would affect the page around it.
func balanced(out string) error {
	var open []string
	z := html.NewTokenizer(strings.NewReader(out))
	for {
		switch z.Next() {
		case html.ErrorToken:
			if len(open) > 0 {
				return fmt.Errorf("%v do not end", open)
			}
			return nil
		case html.StartTagToken:
			name, _ := z.TagName()
			if n := string(name); n != "br" && n != "hr" && n != "img" && n != "wbr" {
				open = append(open, n)
			}
		case html.EndTagToken:
			name, _ := z.TagName()
			if len(open) == 0 || open[len(open)-1] != string(name) {
				return fmt.Errorf("</%s> ends %v", name, open)
			}
			open = open[:len(open)-1]
		}
	}
}

func check(t *testing.T, out string) {
	t.Helper()
	if err := unsafe(out); err != nil {
		t.Errorf("%v in %s", err, out)
	}
	if err := balanced(out); err != nil {
		t.Errorf("%v in %s", err, out)
	}
}

// Attack: HTML that is balanced as a text, but in which a browser ends elements early, so that an end
// tag ends an element of the page. Everything after it would look like a part of the page itself.
func TestAttackLeavingTheDocument(t *testing.T) {
	for name, src := range map[string]string{
		"a table in a table":           "<div><table><div><table></table></div></table></div>",
		"a table of Markdown":          "<table>\n\n|a|\n|-|\n\n</table>",
		"a table of Markdown in a row": "<table><tr>\n\n|a|\n|-|\n\n</tr></table>",
		"a cell in a cell":             "<table><tr><td><div><td></td></div></td></tr></table>",
		"a row in a cell":              "<table><tr><td><div><tr></tr></div></td></tr></table>",
		"an item in an item":           "<ul><li><div><li></li></div></li></ul>",
		"a term in a term":             "<dl><dt><div><dd></dd></div></dt></dl>",
		"a summary":                    "<div><summary></div></summary>",
		"a heading in a heading":       "<div><h2><h3></h3></h2></div>",
		"a paragraph around a block":   "<p><div></div></p>",
	} {
		d, ok := render.Markdown([]byte(src+"\n\nlast"), place)
		if !ok {
			t.Fatal(name)
		}
		check(t, string(d.HTML))
		page, err := html.Parse(strings.NewReader(`<main><div id="text">` + string(d.HTML) + `</div><p id="after"></main>`))
		if err != nil {
			t.Fatal(err)
		}
		for n := range page.Descendants() {
			in := func(tag, id string) bool {
				for p := n.Parent; p != nil; p = p.Parent {
					if p.Data == tag && (id == "" || len(p.Attr) == 1 && p.Attr[0].Val == id) {
						return true
					}
				}
				return false
			}
			switch {
			case n.Type == html.TextNode && n.Data == "last" && !in("div", "text"):
				t.Errorf("%s: the text leaves its place: %s", name, d.HTML)
			case n.Data == "p" && len(n.Attr) == 1 && n.Attr[0].Val == "after" && (in("div", "text") || n.Parent.Data != "main"):
				t.Errorf("%s: the page is inside of the text: %s", name, d.HTML)
			}
		}
	}
}

// The ids of the page are no anchors of a document, and such headings get others.
func TestReservedAnchors(t *testing.T) {
	taken := regexp.MustCompile(`^$|^(main|problem|text|preview)$|^(files|note-fn|nav|palette)`)
	for _, heading := range []string{"Files and directories", "Note fn", "Main", "Problem", "Nav spaces", "Palette list", "Text", "Preview"} {
		d, ok := render.Markdown([]byte("# "+heading+"\n\n# "+heading+"\n"), place)
		if !ok || len(d.Headings) != 2 {
			t.Fatalf("%s: %v", heading, d.Headings)
		}
		for i, h := range d.Headings {
			if taken.MatchString(h.Anchor) || h.Anchor == d.Headings[1-i].Anchor {
				t.Errorf("%s has the anchor %q", heading, h.Anchor)
			}
		}
	}
}
