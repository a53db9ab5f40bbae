package upstream

import (
	"bytes"
	"fmt"
	"html"
	"io/fs"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/yuin/goldmark"
	"github.com/yuin/goldmark/ast"
	"github.com/yuin/goldmark/extension"
	extast "github.com/yuin/goldmark/extension/ast"
	"github.com/yuin/goldmark/parser"
	"github.com/yuin/goldmark/renderer"
	ghtml "github.com/yuin/goldmark/renderer/html"
	"github.com/yuin/goldmark/text"
	"github.com/yuin/goldmark/util"

	"satchel/gitstore/sources/htmlmark"
	"satchel/internal/frontmatter"
	"satchel/internal/testenv"
)

// docsSite is the documentation of Nuxt as a site with a documentation layout.
type docsSite struct {
	pages   map[string][]byte // Markdown by path, such as /docs/4.x/guide/x
	order   []string
	number  *regexp.Regexp
	trapped int
}

func readDocs(t *testing.T) *docsSite {
	archive := testenv.LargeData(t, "docs", "nuxt.tar.gz")
	dir := t.TempDir()
	if out, err := exec.Command(testenv.NeedProgram(t, "tar"), "xzf", archive, "-C", dir).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	s := &docsSite{pages: map[string][]byte{}, number: regexp.MustCompile(`/\d+\.`)}
	root := filepath.Join(dir, "nuxt", "docs")
	err := filepath.WalkDir(root, func(p string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || !strings.HasSuffix(p, ".md") {
			return err
		}
		source, err := os.ReadFile(p)
		if err != nil {
			return err
		}
		rel := s.number.ReplaceAllString(strings.TrimSuffix(strings.TrimPrefix(p, root), ".md"), "/")
		rel = strings.TrimSuffix(strings.ToLower(rel), "/index")
		s.pages["/docs/4.x"+rel] = source
		s.order = append(s.order, "/docs/4.x"+rel)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// ids gives headings the anchors of the real site.
type ids map[string]int

func (i ids) Generate(value []byte, _ ast.NodeKind) []byte {
	plain := htmlmark.Anchor(string(value))
	i[plain]++
	if n := i[plain]; n > 1 {
		plain = fmt.Sprint(plain, "-", n-1)
	}
	return []byte(plain)
}
func (i ids) Put([]byte) {}

// codeHTML renders blocks of code as the highlighters of documentation generators do.
type codeHTML struct{ style int }

func (c codeHTML) RegisterFuncs(r renderer.NodeRendererFuncRegisterer) {
	r.Register(ast.KindFencedCodeBlock, func(w util.BufWriter, source []byte, node ast.Node, entering bool) (ast.WalkStatus, error) {
		if !entering {
			return ast.WalkContinue, nil
		}
		b := node.(*ast.FencedCodeBlock)
		language := html.EscapeString(string(b.Language(source)))
		var lines []string
		for i := range b.Lines().Len() {
			l := b.Lines().At(i)
			lines = append(lines, html.EscapeString(strings.TrimSuffix(string(l.Value(source)), "\n")))
		}
		class := ""
		if language != "" {
			class = "language-" + language
		}
		switch c.style % 4 {
		case 0: // plain
			fmt.Fprintf(w, `<pre><code class="%s">%s%s</code></pre>`, class, strings.Join(lines, "\n"), "\n")
		case 1: // Shiki, in VitePress
			fmt.Fprintf(w, `<div class="%s vp-adaptive-theme"><button title="Copy Code" class="copy"></button><span class="lang">%s</span><pre class="shiki"><code>`, class, language)
			for i, l := range lines {
				fmt.Fprintf(w, `<span class="line"><span style="--shiki:red">%s</span></span>`, l)
				if i < len(lines)-1 {
					fmt.Fprint(w, "\n")
				}
			}
			fmt.Fprint(w, `</code></pre></div>`)
		case 2: // Prism, in Docusaurus
			fmt.Fprintf(w, `<div class="%s codeBlockContainer_Ckt0"><div class="codeBlockContent_biex"><pre class="prism-code"><code class="codeBlockLines_e6Vv">`, class)
			for _, l := range lines {
				fmt.Fprintf(w, `<span class="token-line">%s<br></span>`, l)
			}
			fmt.Fprint(w, `</code></pre><div class="buttonGroup__atx"><button class="clean-btn">Copy</button></div></div></div>`)
		case 3: // Pygments, with line numbers
			highlight := "default"
			if language != "" {
				highlight = language
			}
			fmt.Fprintf(w, `<div class="highlight-%s notranslate"><table class="highlighttable"><tr><td class="linenos"><div class="linenodiv"><pre>`, highlight)
			for i := range lines {
				fmt.Fprintf(w, "%d\n", i+1)
			}
			fmt.Fprintf(w, `</pre></div></td><td class="code"><div class="highlight"><pre><span></span>%s%s</pre></div></td></tr></table></div>`, strings.Join(lines, "\n"), "\n")
		}
		return ast.WalkSkipChildren, nil
	})
}

var headingHTML = regexp.MustCompile(`(?s)<h([1-6]) id="([^"]*)">(.*?)</h[1-6]>`)

// page renders a page in a layout with the noise of documentation sites.
func (s *docsSite) page(path string) string {
	n := slices.Index(s.order, path)
	d, _ := frontmatter.Parse(s.pages[path])
	md := goldmark.New(goldmark.WithExtensions(extension.GFM), goldmark.WithParserOptions(parser.WithAutoHeadingID()),
		goldmark.WithRendererOptions(renderer.WithNodeRenderers(util.Prioritized(codeHTML{n}, 1)), ghtml.WithUnsafe()))
	var body bytes.Buffer
	if err := md.Convert(d.Body, &body, parser.WithContext(parser.NewContext(parser.WithIDs(ids{})))); err != nil {
		panic(err)
	}
	content := body.String()
	if n%2 == 0 {
		content = headingHTML.ReplaceAllString(content, `<h$1 id="$2" tabindex="-1">$3 <a class="header-anchor" href="#$2" aria-label="Permalink">#</a></h$1>`)
	} else {
		content = headingHTML.ReplaceAllString(content, `<h$1 id="$2">$3<a class="headerlink" href="#$2" title="Link to this heading">¶</a></h$1>`)
	}
	var sidebar strings.Builder
	for _, p := range s.order {
		fmt.Fprintf(&sidebar, `<li><a href="%s">%s</a></li>`, p, html.EscapeString(p))
	}
	return fmt.Sprintf(`<!doctype html><html lang="en"><head><meta charset="utf-8"><title>%[1]s · Nuxt Docs</title><style>p{}</style><script>var x = "<p>no</p>"</script></head>
<body><a class="skip-link" href="#main">Skip to content</a><header class="navbar"><a href="/">Nuxt</a><form role="search"><input></form></header>
<div class="layout"><aside class="sidebar"><nav><ul>%[2]s</ul></nav></aside>
<main id="main"><nav aria-label="Breadcrumbs" class="breadcrumbs"><a href="/">Home</a> / <span>%[1]s</span></nav>
<article><h1>%[1]s</h1><div class="content">%[3]s</div></article>
<div class="theme-edit-this-page"><a href="https://github.com/nuxt/nuxt/edit/main/x.md">Edit this page</a></div>
<nav class="pagination-nav"><a href="/">Previous</a><a href="/">Next</a></nav><div class="feedback">Was this helpful? <button>Yes</button></div></main>
<aside class="toc"><ul><li><a href="#a">On this page</a></li></ul></aside></div><footer class="site-footer">Copyright <a href="/imprint">Imprint</a></footer></body></html>`,
		html.EscapeString(d.String("title")), sidebar.String(), content)
}

func (s *docsSite) serve(site string) http.HandlerFunc {
	return func(rw http.ResponseWriter, r *http.Request) {
		switch {
		case r.URL.Path == "/robots.txt":
			fmt.Fprintf(rw, "User-agent: *\nDisallow: /docs/4.x/trap/\nSitemap: %s/sitemap.xml\n", site)
		case r.URL.Path == "/sitemap.xml":
			fmt.Fprint(rw, `<?xml version="1.0"?><urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9">`)
			for _, p := range s.order {
				fmt.Fprintf(rw, `<url><loc>%s%s</loc></url>`, site, p)
			}
			fmt.Fprintf(rw, `<url><loc>%s/docs/4.x/trap/</loc></url></urlset>`, site)
		case r.URL.Path == "/docs/4.x/trap/":
			s.trapped++
		case r.URL.Path == "/docs/4.x/":
			http.Redirect(rw, r, "/docs/4.x/getting-started/introduction", http.StatusFound)
		case s.pages[r.URL.Path] != nil:
			webPages(map[string]string{r.URL.Path: s.page(r.URL.Path)})(rw, r)
		default:
			http.NotFound(rw, r)
		}
	}
}

// outline is what must be equal in a page and its source.
type outline struct{ headings, code, cells, links []string }

// outlineOf reads a page in Markdown. resolve returns the absolute address of a link.
func outlineOf(source []byte, resolve func(string) string) outline {
	var o outline
	doc := goldmark.New(goldmark.WithExtensions(extension.GFM)).Parser().Parse(text.NewReader(source))
	plain := func(n ast.Node) string {
		var b strings.Builder
		_ = ast.Walk(n, func(n ast.Node, entering bool) (ast.WalkStatus, error) {
			if entering {
				switch t := n.(type) {
				case *ast.Text:
					b.Write(util.UnescapePunctuations(t.Segment.Value(source)))
					b.WriteByte(' ')
				case *ast.String:
					b.Write(t.Value)
				case *ast.AutoLink:
					b.Write(t.Label(source))
				}
			}
			return ast.WalkContinue, nil
		})
		return strings.Join(strings.Fields(html.UnescapeString(b.String())), "")
	}
	_ = ast.Walk(doc, func(n ast.Node, entering bool) (ast.WalkStatus, error) {
		if !entering {
			return ast.WalkContinue, nil
		}
		switch n := n.(type) {
		case *ast.Heading:
			o.headings = append(o.headings, fmt.Sprint(n.Level, " ", plain(n)))
		case *ast.FencedCodeBlock:
			var b strings.Builder
			for i := range n.Lines().Len() {
				l := n.Lines().At(i)
				b.WriteString(strings.TrimRight(string(l.Value(source)), " \n") + "\n")
			}
			language := string(n.Language(source))
			if strings.HasPrefix(language, "[") { // the name of the file
				language = ""
			}
			o.code = append(o.code, language+"\n"+strings.Trim(b.String(), "\n"))
		case *extast.TableCell:
			o.cells = append(o.cells, plain(n))
		case *ast.Link:
			o.links = append(o.links, resolve(string(n.Destination)))
		case *ast.AutoLink:
			o.links = append(o.links, resolve(string(n.URL(source))))
		case *ast.Image:
			o.links = append(o.links, "image "+resolve(string(n.Destination)))
		}
		return ast.WalkContinue, nil
	})
	return o
}

// TestWebPagesEqualTheirSources syncs a documentation site, and compares the headings, blocks of
// code, cells of tables and targets of links of each page with those of its source.
func TestWebPagesEqualTheirSources(t *testing.T) {
	docs := readDocs(t)
	w := newWebWorld(t, nil)
	w.handler = docs.serve(w.site.URL)
	w.settings(`{"url": "SITE/docs/4.x/"}`)
	state := w.mustSync()
	if n := len(w.sink.known); n < len(docs.pages)-10 || w.sink.expect != n {
		t.Errorf("the source has %d of %d pages, and expects %d", n, len(docs.pages), w.sink.expect)
	}
	if got := w.sink.skipped[w.site.URL+"/docs/4.x/trap/"]; docs.trapped > 0 || got != Disallowed {
		t.Errorf("the trap was asked %d times, and is %q", docs.trapped, got)
	}
	compared := 0
	for _, path := range docs.order {
		d, _ := frontmatter.Parse(docs.pages[path])
		if _, ok := w.sink.known[w.site.URL+path]; !ok || d.String("title") == "" || hasHTML(d.Body) {
			continue
		}
		compared++
		w.compare(path, d)
	}
	t.Logf("compared %d pages", compared)
	if compared < 200 {
		t.Error("these are too few pages to prove anything")
	}

	// Without changes, each page is asked on the condition that it changed.
	if again := w.mustSync(); again != state {
		t.Error("the state changed without a change of the site")
	}
	without := slices.DeleteFunc(slices.Clone(w.asked), func(s string) bool { return strings.HasPrefix(s, "?") })
	if want := []string{"/robots.txt", "/sitemap.xml", "/docs/4.x/llms.txt", "/llms.txt", "/docs/4.x/"}; !slices.Equal(without, want) {
		t.Errorf("asked for %q without a condition, want %q", without, want)
	}
	if len(w.sink.put) > 0 || len(w.sink.kept) != len(w.sink.known) {
		t.Errorf("put %v, and kept %d of %d", w.sink.put, len(w.sink.kept), len(w.sink.known))
	}

	// An edited page is put, a deleted one is left out, and all others are kept.
	before := len(w.sink.known)
	edited, deleted, listed := "/docs/4.x/api/components/client-only", "/docs/4.x/api/utils/navigate-to", "/docs/4.x/api/utils/clear-error"
	for _, p := range []string{edited, deleted, listed} {
		if docs.pages[p] == nil {
			t.Fatalf("the documentation has no page %s", p)
		}
	}
	docs.pages[edited] = append(docs.pages[edited], "\n## A new section\n\nNew text.\n"...)
	delete(docs.pages, deleted) // the sitemap still lists it
	docs.order = slices.DeleteFunc(docs.order, func(p string) bool { return p == listed })
	w.mustSync()
	// The sidebar changes on each page, but the content only of one.
	if len(w.sink.known) != before-2 {
		t.Errorf("the source has %d pages, and had %d", len(w.sink.known), before)
	}
	if f := w.sink.known[w.site.URL+edited]; !strings.Contains(w.sink.content[string(f.Path)], "## A new section") {
		t.Error("the edited page is old")
	}
	if w.sink.skipped[w.site.URL+deleted] != "" {
		t.Errorf("a deleted page is reported as %s", w.sink.skipped[w.site.URL+deleted])
	}
}

func hasHTML(source []byte) bool {
	found := false
	_ = ast.Walk(goldmark.New(goldmark.WithExtensions(extension.GFM)).Parser().Parse(text.NewReader(source)), func(n ast.Node, _ bool) (ast.WalkStatus, error) {
		found = found || n.Kind() == ast.KindRawHTML || n.Kind() == ast.KindHTMLBlock
		return ast.WalkContinue, nil
	})
	return found
}

// compare compares the file for a page with its source.
func (w *webWorld) compare(path string, source frontmatter.Document) {
	t := w.t
	name := func(u *url.URL) string { return u.Scheme + "://" + key(tidy(u)) + "#" + u.Fragment }
	at, err := url.Parse(w.site.URL + path)
	if err != nil {
		t.Fatal(err)
	}
	want := outlineOf(source.Body, func(s string) string {
		u, err := at.Parse(s)
		if err != nil {
			return s
		}
		return name(u)
	})
	want.headings = append([]string{"1 " + strings.Join(strings.Fields(source.String("title")), "")}, want.headings...)

	f := w.sink.known[at.String()]
	out, err := frontmatter.Parse([]byte(w.sink.content[string(f.Path)]))
	if err != nil || out.String("title") != source.String("title") || out.String("url") != at.String() {
		t.Errorf("the front matter of %s is %v (%v)", path, out.Fields, err)
	}
	file := &url.URL{Scheme: "file", Path: "/" + string(f.Path)}
	got := outlineOf(out.Body, func(s string) string {
		u, err := file.Parse(s)
		if err != nil || u.Scheme != "file" {
			return name(u)
		}
		for _, known := range w.sink.known {
			if "/"+string(known.Path) == u.Path {
				to, err := url.Parse(known.URL)
				if err != nil {
					t.Fatal(err)
				}
				to.Fragment = u.Fragment
				return name(to)
			}
		}
		return "a link to no file: " + s
	})
	for what, pair := range map[string][2][]string{
		"headings": {got.headings, want.headings}, "code": {got.code, want.code}, "cells": {got.cells, want.cells}, "links": {got.links, want.links},
	} {
		if !slices.Equal(pair[0], pair[1]) {
			t.Errorf("the %s of %s are %q, want %q", what, path, pair[0], pair[1])
		}
	}
}
