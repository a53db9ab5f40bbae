package render

import (
	"bytes"
	"errors"
	"html/template"

	"github.com/yuin/goldmark"
	"github.com/yuin/goldmark/ast"
	"github.com/yuin/goldmark/extension"
	"github.com/yuin/goldmark/parser"
	"github.com/yuin/goldmark/renderer"
	"github.com/yuin/goldmark/text"
	"github.com/yuin/goldmark/util"

	"satchel/internal/frontmatter"
	"satchel/tools/index/parse"
)

// Place is the location of a document. Its links are relative to it.
type Place struct {
	// Path is the path of the document in its space.
	Path string
	// Files is the address under which pages show the space's files, and Raw the address
	// under which the server serves them. Both end in a slash. Query is appended to both
	// ("?at=…" or "").
	Files, Raw, Query string
	// Find returns the path of the file or directory that a link to name means. rooted reports
	// whether the link begins with a slash. If Find is nil, links name paths as they are.
	Find func(name string, rooted bool) (path string, dir, ok bool)
	// Under is the number of heading levels of the page itself.
	Under int
}

// Document is a rendered document.
type Document struct {
	HTML     template.HTML
	Fields   []Field // the fields of the front matter, in their order
	Problem  string  // why the front matter could not be read, or ""
	Headings []Heading
}

// Heading is a heading of a document.
type Heading struct {
	Text, Anchor string
	Level        int // 1 for the outermost
}

// Markdown renders a document. ok is false if the document is beyond the limits.
func Markdown(src []byte, at Place) (d Document, ok bool) {
	if !affordable(src) {
		return Document{}, false
	}
	src = bytes.ToValidUTF8(src, []byte("\uFFFD"))
	fm, err := frontmatter.Parse(src)
	if err != nil {
		d.Problem = err.Error()
	}
	d.Fields = fieldsOf(src[:len(src)-len(fm.Body)], fm.Fields)
	w := &writer{at: at, src: fm.Body, raw: map[ast.Node][]piece{}, used: map[string]bool{}, repeats: map[string]int{}, markup: maxMarkup}
	w.anchors = w.anchorsOf(src, fm.BodyLine)
	md := goldmark.New(
		goldmark.WithExtensions(
			extension.Strikethrough,
			extension.Linkify,
			extension.TaskList,
			extension.NewTable(extension.WithTableCellAlignMethod(extension.TableCellAlignAttribute)),
			extension.NewFootnote(extension.WithFootnoteIDPrefix("note-"), extension.WithFootnoteBacklinkTitle("Back to the text")),
		),
		goldmark.WithParserOptions(parser.WithHeadingAttribute()),
		goldmark.WithRendererOptions(renderer.WithNodeRenderers(util.Prioritized(w, 100))),
	)
	root := md.Parser().Parse(text.NewReader(w.src))
	w.planRaw(root)
	var out bounded
	out.Grow(len(w.src) + len(w.src)/2)
	if err := md.Renderer().Render(&out, w.src, root); err != nil {
		return Document{}, false
	}
	d.HTML, d.Headings = template.HTML(out.String()), w.headings //nolint:gosec // this package wrote it
	return d, true
}

// bounded is a buffer that holds at most maxHTML bytes.
type bounded struct{ bytes.Buffer }

var errLong = errors.New("render: the document is too long for a page")

// Write fails if the buffer would hold too many bytes. This stops the renderer.
func (b *bounded) Write(p []byte) (int, error) {
	if b.Len()+len(p) > maxHTML {
		return 0, errLong
	}
	return b.Buffer.Write(p)
}

// anchorsOf returns the anchors that search uses for a document's headings. The keys are
// the lines of the headings in the body, counted from 0.
func (w *writer) anchorsOf(doc []byte, bodyLine int) map[int]string {
	all := map[int]string{}
	for _, s := range parse.Sections("page.md", doc) {
		if s.Anchor != "" {
			all[s.From-bodyLine] = s.Anchor
			w.used[s.Anchor] = true
		}
	}
	return all
}
