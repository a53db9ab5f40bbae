package render_test

import (
	"fmt"
	"net/url"
	"slices"
	"strings"
	"testing"

	"golang.org/x/net/html"
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
