package htmlmark

import (
	"strings"

	"golang.org/x/net/html"
	"golang.org/x/net/html/atom"
)

// noiseNames are classes and ids of the tools around the text of a page, in lower case:
// navigation, tables of contents, edit links, copy buttons, line numbers and feedback forms.
var noiseNames = set("breadcrumb breadcrumbs theme-doc-breadcrumbs md-path toc table-of-contents tableofcontents local-toc page-toc bd-toc " +
	"theme-doc-toc-mobile theme-doc-toc-desktop on-this-page vpdocasideoutline vpdocoutlinedropdown right-sidebar mw-jump-link " +
	"edit-this-page theme-edit-this-page edit-link edit-page edit-page-link editlink mw-editsection md-content__button edit-on-github page-edit " +
	"pagination pagination-nav prev-next prev-next-area prev-next-footer next-prev pager page-nav prevnext nav-links rst-footer-buttons " +
	"sidebar sphinxsidebar sidebar-container sidebar-nav bd-sidebar wy-nav-side site-footer footer vpdocfooter page-footer related navbar topbar " +
	"copy copybtn copy-btn copy-button btn-copy copy-code-button copycode copy-to-clipboard clipboard clipboard-button clipboard-copy zeroclipboard-container " +
	"skip-link skip-to-content skip-nav visually-hidden sr-only screen-reader-only screen-reader-text " +
	"headerlink header-anchor hash-link heading-anchor heading-link anchorjs-link sl-anchor-link anchor-link permalink octicon-link " +
	"linenos linenodiv lineno line-number line-numbers line-numbers-wrapper line-numbers-rows linenumbers rouge-gutter gutter ln " +
	"feedback page-feedback md-feedback was-this-helpful rating md-source-file last-updated lastupdated theme-last-updated page-meta " +
	"cookie-banner cookie-consent share-buttons social-share newsletter advertisement ad-banner ethical-ad " +
	"noprint no-print mw-hidden")

var noiseRoles = set("navigation search banner contentinfo toolbar menu menubar tablist tooltip dialog alertdialog")

// clean removes from an element all that is not content, and removes the decorations of
// headings.
func clean(root *html.Node) {
	total := textLen(root)
	prune(root, func(n *html.Node) bool {
		if n.Type == html.CommentNode {
			return true
		}
		return n.Type == html.ElementNode && n != root && noise(n, total)
	})
	var headings []*html.Node
	each(root, func(n *html.Node) {
		if heading(n) || n.DataAtom == atom.Dt {
			headings = append(headings, n)
		}
	})
	for _, h := range headings {
		plainHeading(h)
	}
}

// noise reports whether an element is not content. total is the length of all text.
func noise(n *html.Node, total int) bool {
	switch n.DataAtom {
	case atom.Script, atom.Style, atom.Template, atom.Noscript, atom.Nav, atom.Form, atom.Button, atom.Input, atom.Select, atom.Textarea,
		atom.Iframe, atom.Svg, atom.Canvas, atom.Object, atom.Embed, atom.Dialog, atom.Audio, atom.Video, atom.Source, atom.Link, atom.Meta, atom.Head, atom.Progress:
		return true
	case atom.Footer:
		return n.Parent == nil || n.Parent.DataAtom != atom.Blockquote
	case atom.Aside:
		// Generators also use this element for notes, so it is noise only if most of it is links.
		if linkLen(n)*3 > textLen(n)*2 {
			return true
		}
	case atom.A:
		// A link of a section to itself.
		if strings.HasPrefix(attr(n, "href"), "#") && n.Parent != nil && !heading(n.Parent) && permalinkSign(strings.TrimSpace(textOf(n))) && attr(n, "id")+attr(n, "name") == "" {
			return first(n, func(n *html.Node) bool { return n.DataAtom == atom.Img }) == nil
		}
	}
	if role := attr(n, "role"); noiseRoles[role] {
		return true
	}
	// A panel of tabs is hidden until its tab is chosen, but its text is content.
	panel := attr(n, "role") == "tabpanel" || attr(n, "role") == "region"
	if _, hidden := lookup(n, "hidden"); hidden && !panel {
		return true
	}
	if attr(n, "aria-hidden") == "true" && !panel && n.DataAtom != atom.Code && n.DataAtom != atom.Pre && !hasClass(n, "katex-html") {
		return true
	}
	if style := strings.ReplaceAll(attr(n, "style"), " ", ""); strings.Contains(style, "display:none") && !panel {
		return true
	}
	// VitePress shows the language of code in this element.
	if hasClass(n, "lang") && n.DataAtom == atom.Span {
		return first(n.Parent, func(n *html.Node) bool { return n.DataAtom == atom.Pre }) != nil
	}
	if !named(n) {
		return false
	}
	// A class can mean something else on some site. An element with most of the text is
	// content.
	return 2*textLen(n) < total && first(n, func(n *html.Node) bool { return n.DataAtom == atom.H1 }) == nil
}

// named reports whether a class or the id of an element marks it as noise.
func named(n *html.Node) bool {
	if noiseNames[strings.ToLower(attr(n, "id"))] && !heading(n) {
		return true
	}
	for c := range strings.FieldsSeq(strings.ToLower(attr(n, "class"))) {
		if noiseNames[c] {
			return true
		}
		// Build tools append a hash to classes: copyButton_a1B2.
		if before, _, ok := strings.Cut(c, "_"); ok && (before == "copybutton" || before == "lastupdated" || before == "tocmobile" || before == "hashlink" || before == "breadcrumbs") {
			return true
		}
	}
	return hasClass(n, "contents") && hasClass(n, "topic") // the table of contents of reStructuredText
}

func hasClass(n *html.Node, class string) bool {
	for c := range strings.FieldsSeq(attr(n, "class")) {
		if c == class {
			return true
		}
	}
	return false
}

// linkLen returns the length of the text in links.
func linkLen(n *html.Node) int {
	if n.DataAtom == atom.A {
		return textLen(n)
	}
	size := 0
	for c := n.FirstChild; c != nil; c = c.NextSibling {
		size += linkLen(c)
	}
	return size
}

// plainHeading removes the link of a heading to itself. The link is a sign at the end of the
// heading, or surrounds its text.
func plainHeading(h *html.Node) {
	var links []*html.Node
	each(h, func(n *html.Node) {
		if n.DataAtom == atom.A {
			links = append(links, n)
		}
	})
	for _, a := range links {
		switch {
		case permalinkSign(strings.TrimSpace(textOf(a))):
			if id := attr(a, "id") + attr(a, "name"); id != "" && attr(h, "id") == "" {
				setAttr(h, "id", id)
			}
			if first(a, func(n *html.Node) bool { return n.DataAtom == atom.Img }) == nil || attr(a, "href") == "" || strings.HasPrefix(attr(a, "href"), "#") {
				a.Parent.RemoveChild(a)
			}
		case strings.HasPrefix(attr(a, "href"), "#"):
			unwrap(a)
		}
	}
}

func permalinkSign(s string) bool {
	switch s {
	case "", "#", "¶", "§", "🔗", "\u200b", "\uf0c1", "Link to this heading", "Permalink", "Permanent link", "Direct link", "Anchor":
		return true
	}
	return false
}
