// Package htmlmark converts the main content of an HTML page to Markdown, without the
// navigation and the tools around it. Call Convert.
//
// The pages come from strangers. A hostile page of a few megabytes can take the HTML parser or
// the converter minutes or gigabytes, so the package limits the cost before they run.
package htmlmark

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net/url"
	"strings"

	"codeberg.org/readeck/go-readability/v2"
	"github.com/JohannesKaufmann/html-to-markdown/v2/converter"
	"github.com/JohannesKaufmann/html-to-markdown/v2/plugin/base"
	"github.com/JohannesKaufmann/html-to-markdown/v2/plugin/commonmark"
	"github.com/JohannesKaufmann/html-to-markdown/v2/plugin/table"
	"golang.org/x/net/html"
	"golang.org/x/net/html/atom"
	"golang.org/x/net/html/charset"
)

// The errors of Convert.
var (
	ErrTooComplex = errors.New("the HTML page is nested too deeply, or has too many elements")
	ErrEmpty      = errors.New("the HTML page has no text")
)

// Page is what Convert reads from an HTML page.
type Page struct {
	// Title is the main heading of the content, or else the title of the document.
	Title string
	// Canonical is the address that the page names as its own, or nil.
	Canonical *url.URL
	// Links are the HTTP addresses to which the page links, in order and without duplicates,
	// including those of the navigation. There are at most maxLinks. They have no fragment.
	Links []*url.URL
	// Markdown is the main content. It ends with a line break.
	Markdown []byte
}

// Convert returns the main content of a page as Markdown. The content type is the value of
// the HTTP header, which may name the character set. Relative addresses are relative to at.
// The result of target replaces the address of each link to another page, and of each image.
// A link within the page leads to the anchor that Markdown gives the nearest heading.
func Convert(content []byte, contentType string, at *url.URL, target func(*url.URL) string) (page Page, err error) {
	// The libraries are not made for hostile pages, and a panic would end the server.
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("convert the page: panic: %v", p)
		}
	}()
	if len(content) == 0 {
		return Page{}, ErrEmpty
	}
	r, err := charset.NewReader(bytes.NewReader(content), contentType)
	if err != nil {
		return page, fmt.Errorf("find the character set of the page: %w", err)
	}
	text, err := io.ReadAll(r)
	if err != nil {
		return Page{}, fmt.Errorf("decode the page: %w", err)
	}
	if cost(text) > maxNodes {
		return Page{}, ErrTooComplex
	}
	doc, err := html.Parse(bytes.NewReader(text))
	if err != nil { // the parser accepts all input that is not nested too deeply
		return Page{}, fmt.Errorf("%w: %w", ErrTooComplex, err)
	}
	baseURL := baseOf(doc, at)
	page = Page{Canonical: canonicalOf(doc, baseURL), Links: linksOf(doc, baseURL)}
	main, err := mainContent(doc, at)
	if err != nil {
		return page, err
	}
	clean(main)
	page.Title = titleOf(doc, main)
	code := newCodeBlocks()
	code.take(main)
	bound(main)
	readdress(main, baseURL, at, target)
	out, err := markdown(main)
	if err != nil {
		return page, fmt.Errorf("convert the page: %w", err)
	}
	out = bytes.TrimSpace(code.give(out))
	if len(out) == 0 {
		return page, ErrEmpty
	}
	page.Markdown = append(out, '\n')
	return page, nil
}

// mainContent returns the element with the main content. Documentation sites mark it. For
// other pages, readability guesses it from the density of text.
func mainContent(doc *html.Node, at *url.URL) (*html.Node, error) {
	body := first(doc, func(n *html.Node) bool { return n.DataAtom == atom.Body })
	if body == nil || !hasContent(body) {
		return nil, ErrEmpty
	}
	main := largest(doc, func(n *html.Node) bool { return n.DataAtom == atom.Main || attr(n, "role") == "main" })
	within := body
	if main != nil {
		within = main
	}
	// Require half of the text, because a page can have small elements with these classes,
	// such as comments.
	if c := largest(within, isContent); c != nil && 2*textLen(c) >= textLen(within) {
		return c, nil
	}
	if main != nil {
		return main, nil
	}
	if a := largest(body, func(n *html.Node) bool { return n.DataAtom == atom.Article }); a != nil && 3*textLen(a) >= textLen(body) {
		return a, nil
	}
	clean(body)
	return guess(doc, body, at), nil
}

// wasFirst marks h1 headings, because readability turns them into h2 headings.
const wasFirst = "page-h1"

// guess returns the part of a page that readability takes for the content, or the whole body if
// readability would leave out much of the text. It is for pages that do not mark their content.
func guess(doc, body *html.Node, at *url.URL) *html.Node {
	each(body, func(n *html.Node) {
		if n.DataAtom == atom.H1 {
			setAttr(n, "class", attr(n, "class")+" "+wasFirst)
		}
	})
	parser := readability.NewParser()
	parser.MaxElemsToParse = maxReadability
	parser.KeepClasses = true // classes name the languages of code
	parser.DisableJSONLD = true
	article, err := parser.ParseDocument(doc, at)
	if err != nil || article.Node == nil || 3*textLen(article.Node) < 2*textLen(body) {
		return body
	}
	each(article.Node, func(n *html.Node) {
		if hasClass(n, wasFirst) {
			rename(n, atom.H1)
		}
	})
	return article.Node
}

// contentClasses are the classes, and contentIDs the ids, with which generators of
// documentation mark the main content: GitHub, Docusaurus, VitePress, VuePress, Starlight,
// MkDocs, Sphinx, Docsy, Antora and MediaWiki.
var (
	contentClasses = set("markdown-body theme-doc-markdown vp-doc theme-default-content sl-markdown-content md-content__inner " +
		"rst-content td-content bd-article mw-parser-output devsite-article-body docmainwrap")
	contentIDs = set("main-content docs-content mw-content-text")
)

func isContent(n *html.Node) bool {
	if attr(n, "itemprop") == "articleBody" || contentIDs[attr(n, "id")] {
		return true
	}
	for c := range strings.FieldsSeq(attr(n, "class")) {
		if contentClasses[c] {
			return true
		}
	}
	return false
}

// markdown converts a cleaned element.
func markdown(n *html.Node) ([]byte, error) {
	escape := converter.EscapeModeSmart
	if costly(n) {
		escape = converter.EscapeModeDisabled
	}
	conv := converter.NewConverter(converter.WithEscapeMode(escape), converter.WithPlugins(
		base.NewBasePlugin(),
		commonmark.NewCommonmarkPlugin(
			commonmark.WithListEndComment(false),
			commonmark.WithHorizontalRule("---"),
			commonmark.WithLinkEmptyContentBehavior(commonmark.LinkBehaviorSkip),
			commonmark.WithLinkEmptyHrefBehavior(commonmark.LinkBehaviorSkip)),
		// With aligned cells, a change of one row would change all rows of a table.
		table.NewTablePlugin(table.WithCellPaddingBehavior(table.CellPaddingBehaviorMinimal),
			table.WithHeaderPromotion(true), table.WithNewlineBehavior(table.NewlineBehaviorPreserve)),
	))
	return conv.ConvertNode(n)
}
