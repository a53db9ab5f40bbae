package render

import (
	"bytes"
	"html"
	"strconv"
	"strings"

	"github.com/yuin/goldmark/ast"
	extast "github.com/yuin/goldmark/extension/ast"
	"github.com/yuin/goldmark/renderer"
	"github.com/yuin/goldmark/util"

	"satchel/tools/index/parse"
)

// writer renders the nodes for which a document chooses an attribute, an address or a tag.
// The library renders the others.
type writer struct {
	at  Place
	src []byte

	raw      map[ast.Node][]piece
	anchors  map[int]string // by the line of a heading in src, counted from 0
	used     map[string]bool
	repeats  map[string]int // by anchor: the last number that was added to it
	headings []Heading
	levels   []int // the levels of the last heading and of the headings that contain it
	line     int   // line and offset are where the last heading is in src
	offset   int
	inLink   int
	markup   int // bytes that tags of source code may still use
}

// RegisterFuncs implements renderer.NodeRenderer.
func (w *writer) RegisterFuncs(reg renderer.NodeRendererFuncRegisterer) {
	reg.Register(ast.KindHeading, w.heading)
	reg.Register(ast.KindLink, w.link)
	reg.Register(ast.KindAutoLink, w.autoLink)
	reg.Register(ast.KindImage, w.picture)
	reg.Register(ast.KindRawHTML, w.rawInline)
	reg.Register(ast.KindHTMLBlock, w.rawBlock)
	reg.Register(ast.KindFencedCodeBlock, w.code)
	reg.Register(ast.KindCodeBlock, w.code)
	reg.Register(ast.KindList, w.list)
	reg.Register(extast.KindTable, w.table)
	reg.Register(extast.KindTaskCheckBox, w.task)
}

// heading gives a heading the anchor that search uses, and a level below the page's own
// headings. It leaves no gaps between levels.
func (w *writer) heading(b util.BufWriter, src []byte, node ast.Node, entering bool) (ast.WalkStatus, error) {
	n := node.(*ast.Heading)
	if entering {
		for len(w.levels) > 0 && w.levels[len(w.levels)-1] >= n.Level {
			w.levels = w.levels[:len(w.levels)-1]
		}
		w.levels = append(w.levels, n.Level)
	}
	tag := "h" + strconv.Itoa(min(6, len(w.levels)+w.at.Under))
	if !entering {
		if h := w.headings[len(w.headings)-1]; h.Anchor != "" {
			_, _ = b.WriteString(` <a class="anchor" href="#` + html.EscapeString(pathFragment(h.Anchor)) + `"><span class="unseen">Link to this section: ` + html.EscapeString(h.Text) + `</span></a>`)
		}
		_, _ = b.WriteString("</" + tag + ">\n")
		return ast.WalkContinue, nil
	}
	h := Heading{Text: textOf(node, src), Level: len(w.levels)}
	h.Anchor = w.anchorOf(n, h.Text)
	w.headings = append(w.headings, h)
	_, _ = b.WriteString("<" + tag)
	if h.Anchor != "" {
		_, _ = b.WriteString(` id="` + html.EscapeString(h.Anchor) + `"`)
	}
	_ = b.WriteByte('>')
	return ast.WalkContinue, nil
}

func (w *writer) anchorOf(n *ast.Heading, text string) string {
	if n.Lines().Len() == 0 {
		return ""
	}
	// Headings come in order, so each line is counted only once.
	if at := n.Lines().At(n.Lines().Len() - 1).Start; at >= w.offset {
		w.line += bytes.Count(w.src[w.offset:at], []byte("\n"))
		w.offset = at
	}
	anchor, known := w.anchors[w.line]
	if !known {
		if anchor = parse.Anchor(text); anchor == "" {
			return ""
		}
	}
	if known && !reserved(anchor) {
		delete(w.anchors, w.line)
		return anchor
	}
	if reserved(anchor) {
		anchor = "section-" + anchor
	}
	plain := anchor
	for w.used[anchor] {
		w.repeats[plain]++ // remembered, so that many equal headings take linear time
		anchor = plain + "-" + strconv.Itoa(w.repeats[plain])
	}
	w.used[anchor] = true
	return anchor
}

// reserved reports whether the page around a document uses an id.
func reserved(id string) bool {
	switch id {
	case "main", "problem", "text", "preview", "editing":
		return true
	}
	return strings.HasPrefix(id, "note-fn") || strings.HasPrefix(id, "files-") || strings.HasPrefix(id, "nav-") || strings.HasPrefix(id, "palette-")
}

func pathFragment(anchor string) string { return strings.ReplaceAll(escapePath(anchor), "/", "%2F") }

// destination unescapes the destination of a link, as CommonMark specifies.
func destination(dest []byte) string {
	return string(util.ResolveEntityNames(util.ResolveNumericReferences(util.UnescapePunctuations(dest))))
}

func (w *writer) open(b util.BufWriter, t target, title []byte) {
	_, _ = b.WriteString(`<a href="` + html.EscapeString(t.href) + `"`)
	if t.external {
		_, _ = b.WriteString(` rel="noreferrer noopener nofollow"`)
	}
	if len(title) > 0 {
		_, _ = b.WriteString(` title="` + html.EscapeString(destination(title)) + `"`)
	}
	_ = b.WriteByte('>')
}

func (w *writer) link(b util.BufWriter, _ []byte, node ast.Node, entering bool) (ast.WalkStatus, error) {
	n := node.(*ast.Link)
	t, ok := w.at.resolve(destination(n.Destination))
	switch {
	case !ok:
	case entering:
		w.inLink++
		w.open(b, t, n.Title)
	default:
		w.inLink--
		_, _ = b.WriteString("</a>")
	}
	return ast.WalkContinue, nil
}

func (w *writer) autoLink(b util.BufWriter, src []byte, node ast.Node, entering bool) (ast.WalkStatus, error) {
	if !entering {
		return ast.WalkContinue, nil
	}
	n := node.(*ast.AutoLink)
	dest := string(n.URL(src))
	if n.AutoLinkType == ast.AutoLinkEmail && !strings.HasPrefix(strings.ToLower(dest), "mailto:") {
		dest = "mailto:" + dest
	}
	t, ok := w.at.resolve(dest)
	if ok = ok && t.external && w.inLink == 0; ok {
		w.open(b, t, nil)
	}
	_, _ = b.WriteString(html.EscapeString(string(n.Label(src))))
	if ok {
		_, _ = b.WriteString("</a>")
	}
	return ast.WalkContinue, nil
}

// picture shows a picture of the space. A picture on another site becomes a link, so that
// the page does not load it.
func (w *writer) picture(b util.BufWriter, src []byte, node ast.Node, entering bool) (ast.WalkStatus, error) {
	if !entering {
		return ast.WalkContinue, nil
	}
	n := node.(*ast.Image)
	alt := textOf(n, src)
	t, ok := w.at.resolve(destination(n.Destination))
	switch {
	case ok && t.path != "" && isPicture(t.path):
		_, _ = b.WriteString(`<img src="` + html.EscapeString(t.image) + `" alt="` + html.EscapeString(alt) + `" loading="lazy">`)
	case ok && w.inLink == 0:
		if alt == "" {
			alt = "picture"
		}
		w.open(b, t, n.Title)
		_, _ = b.WriteString(html.EscapeString(alt))
		_, _ = b.WriteString(`</a>`)
		if t.external {
			_, _ = b.WriteString(` <span class="hint">(picture elsewhere)</span>`)
		}
	default:
		_, _ = b.WriteString(html.EscapeString(alt))
	}
	return ast.WalkSkipChildren, nil
}

func (w *writer) rawInline(b util.BufWriter, _ []byte, n ast.Node, entering bool) (ast.WalkStatus, error) {
	if entering {
		writeRaw(b, w.raw[n])
	}
	return ast.WalkSkipChildren, nil
}

func (w *writer) rawBlock(b util.BufWriter, _ []byte, n ast.Node, entering bool) (ast.WalkStatus, error) {
	if entering {
		writeRaw(b, w.raw[n])
		_ = b.WriteByte('\n')
	}
	return ast.WalkSkipChildren, nil
}

func (w *writer) code(b util.BufWriter, src []byte, n ast.Node, entering bool) (ast.WalkStatus, error) {
	if !entering {
		return ast.WalkContinue, nil
	}
	lang := ""
	if f, ok := n.(*ast.FencedCodeBlock); ok {
		lang = string(f.Language(src))
	}
	// tabindex makes the element scrollable with the keyboard.
	_, _ = b.WriteString(`<pre class="code" tabindex="0"><code>`)
	writeCode(b, string(n.Lines().Value(src)), languageOf(lang), &w.markup)
	_, _ = b.WriteString("</code></pre>\n")
	return ast.WalkSkipChildren, nil
}

// list writes lists as the library does, but with a class on task lists.
func (w *writer) list(b util.BufWriter, _ []byte, node ast.Node, entering bool) (ast.WalkStatus, error) {
	n := node.(*ast.List)
	tag := "ul"
	if n.IsOrdered() {
		tag = "ol"
	}
	if !entering {
		_, _ = b.WriteString("</" + tag + ">\n")
		return ast.WalkContinue, nil
	}
	_, _ = b.WriteString("<" + tag)
	if n.IsOrdered() && n.Start != 1 {
		_, _ = b.WriteString(` start="` + strconv.Itoa(n.Start) + `"`)
	}
	if isTasks(n) {
		_, _ = b.WriteString(` class="tasks"`)
	}
	_, _ = b.WriteString(">\n")
	return ast.WalkContinue, nil
}

func isTasks(n *ast.List) bool {
	item := n.FirstChild()
	if item == nil || item.FirstChild() == nil || item.FirstChild().FirstChild() == nil {
		return false
	}
	return item.FirstChild().FirstChild().Kind() == extast.KindTaskCheckBox
}

func (w *writer) table(b util.BufWriter, _ []byte, _ ast.Node, entering bool) (ast.WalkStatus, error) {
	if entering {
		_, _ = b.WriteString("<div class=\"scroll\" tabindex=\"0\"><table>\n")
	} else {
		_, _ = b.WriteString("</table></div>\n")
	}
	return ast.WalkContinue, nil
}

// task writes a character instead of a checkbox, because pages are read-only.
func (w *writer) task(b util.BufWriter, _ []byte, node ast.Node, entering bool) (ast.WalkStatus, error) {
	if entering {
		mark, label := "☐", "to do"
		if node.(*extast.TaskCheckBox).IsChecked {
			mark, label = "☑", "done"
		}
		_, _ = b.WriteString(`<span class="task" role="img" aria-label="` + label + `">` + mark + `</span> `)
	}
	return ast.WalkContinue, nil
}

// textOf returns the text of a node without its markup.
func textOf(n ast.Node, src []byte) string {
	var b strings.Builder
	_ = ast.Walk(n, func(n ast.Node, entering bool) (ast.WalkStatus, error) {
		if !entering {
			return ast.WalkContinue, nil
		}
		switch n := n.(type) {
		case *ast.Text:
			if v := n.Value(src); n.IsRaw() || n.Parent().Kind() == ast.KindCodeSpan {
				b.Write(v)
			} else {
				b.WriteString(destination(v))
			}
			if n.SoftLineBreak() || n.HardLineBreak() {
				b.WriteByte(' ')
			}
		case *ast.String:
			b.Write(n.Value)
		case *ast.AutoLink:
			b.Write(n.Label(src))
		}
		return ast.WalkContinue, nil
	})
	return strings.Join(strings.Fields(b.String()), " ")
}
