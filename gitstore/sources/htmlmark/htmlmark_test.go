package htmlmark

import (
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"testing"

	"satchel/internal/testenv"
	"satchel/tools/index/parse"
)

func convert(t *testing.T, page string) (Page, error) {
	t.Helper()
	at, err := url.Parse("https://docs.example/guide/page/")
	if err != nil {
		t.Fatal(err)
	}
	return Convert([]byte(page), "text/html; charset=utf-8", at, func(u *url.URL) string { return u.String() })
}

// TestConvert has the markup of documentation generators and what becomes of it.
func TestConvert(t *testing.T) {
	for name, c := range map[string]struct{ page, want string }{
		"Docusaurus": {
			`<body><nav class="navbar">Site</nav><div class="theme-doc-sidebar-container"><a href="/">Home</a></div><main><article>
			<nav class="theme-doc-breadcrumbs" aria-label="Breadcrumbs"><ul><li>Guides</li></ul></nav><div class="tocCollapsible_ETCw theme-doc-toc-mobile"><button>On this page</button></div>
			<div class="theme-doc-markdown markdown"><header><h1>Install</h1></header><p>Run:</p>
			<div class="language-bash codeBlockContainer_x"><div class="codeBlockTitle_y">Terminal</div><div class="codeBlockContent_z"><pre class="prism-code language-bash"><code><span class="token-line"><span>npm i</span><br></span><span class="token-line"><span>npm start</span><br></span></code></pre><div class="buttonGroup"><button>Copy</button></div></div></div>
			<h2 class="anchor" id="next-steps">Next steps<a href="#next-steps" class="hash-link" aria-label="Direct link">​</a></h2>
			<div class="theme-admonition alert"><div>tip</div><p>A <b>tip</b>.</p></div></div>
			<footer class="theme-doc-footer"><a class="theme-edit-this-page" href="/edit">Edit this page</a></footer></article>
			<nav class="pagination-nav"><a href="/x">Previous</a></nav></main></body>`,
			"# Install\n\nRun:\n\nTerminal\n\n```bash\nnpm i\nnpm start\n```\n\n## Next steps\n\ntip\n\nA **tip**.\n",
		},
		"Sphinx": {
			`<body><div class="sphinxsidebar"><a href="x">Contents</a></div><div class="body" role="main"><section id="quickstart"><span id="start"></span><h1>Quickstart<a class="headerlink" href="#quickstart" title="Link to this heading">¶</a></h1>
			<p>See <a class="reference internal" href="../api/#flask.Flask"><code class="xref py py-class docutils literal notranslate"><span class="pre">Flask</span></code></a> and <a href="#start">the start</a>.</p>
			<div class="highlight-python notranslate"><div class="highlight"><pre><span></span><span class="kn">from</span> <span class="nn">flask</span>
    <span class="k">pass</span>
</pre></div></div>
			<dl class="py method"><dt class="sig" id="f">run(<em>host</em>)<a class="headerlink" href="#f">¶</a></dt><dd><p>Runs it.</p></dd></dl></section></div></body>`,
			"# Quickstart\n\nSee [`Flask`](https://docs.example/guide/api/#flask.Flask) and [the start](#quickstart).\n\n```python\nfrom flask\n    pass\n```\n\nrun(*host*)\n\nRuns it.\n",
		},
		"MkDocs Material": {
			`<body><main class="md-main"><div class="md-sidebar"><nav><a href="x">Nav</a></nav></div><div class="md-content"><article class="md-content__inner md-typeset">
			<a href="e" title="Edit this page" class="md-content__button md-icon"><svg></svg></a><h1 id="use">Use<a class="headerlink" href="#use">&para;</a></h1>
			<div class="admonition note"><p class="admonition-title">Note</p><p>Text with enough words to read.</p></div>
			<div class="language-yaml highlight"><table class="highlighttable"><tr><td class="linenos"><pre><span>1</span>
<span>2</span></pre></td><td class="code"><div><pre><span></span><button class="md-clipboard"></button><code>a: 1
b: 2
</code></pre></div></td></tr></table></div></article></div></main></body>`,
			"# Use\n\nNote\n\nText with enough words to read.\n\n```yaml\na: 1\nb: 2\n```\n",
		},
		"Starlight": {
			`<body><main><div class="content-panel"><h1 id="_top">Title</h1></div><div class="sl-markdown-content"><div class="sl-heading-wrapper level-h2"><h2 id="one-two">One two</h2><a class="sl-anchor-link" href="#one-two"><span class="sr-only">Section titled “One two”</span></a></div>
			<aside class="starlight-aside" aria-label="Note"><p class="starlight-aside__title" aria-hidden="true">Note</p><p>Some text about it.</p></aside>
			<div class="expressive-code"><figure class="frame"><figcaption class="header"><span class="title">a.js</span></figcaption><pre data-language="js"><code><div class="ec-line"><div class="code">let a</div></div><div class="ec-line"><div class="code">  b</div></div></code></pre><div class="copy"><button title="Copy"></button></div></figure></div></div></main></body>`,
			"## One two\n\nSome text about it.\n\na.js\n\n```js\nlet a\n  b\n```\n",
		},
		"mdBook, rustdoc and Node.js": {
			`<title>Ownership - The Book</title><body><h1 class="menu-title">The Book</h1><main><h2 id="own"><a class="header" href="#own">Ownership</a></h2>
			<p>See <a href="#variant.Some">Some</a>.</p><pre><code class="language-js cjs">require('x')</code><code class="language-js mjs">import 'x'</code></pre>
			<h3>Variants</h3><section id="variant.Some"><a href="#variant.Some" class="anchor">§</a><span class="since">1.0.0</span><h4>Some</h4></section><pre class="rust rust-example-rendered"><code>let x;</code></pre></main></body>`,
			"## Ownership\n\nSee [Some](#some).\n\n```js\nrequire('x')\n```\n\n```js\nimport 'x'\n```\n\n### Variants\n\n1.0.0\n\n#### Some\n\n```rust\nlet x;\n```\n",
		},
		"lists and tables": {
			`<main><p>A page</p><ul><li>one<ul><li>two<pre><code class="lang-c">x;

y;</code></pre></li></ul></li></ul><blockquote><p>Quote</p><pre><code>a
b</code></pre></blockquote>
			<table><thead><tr><th>Key</th><th align="right">Value</th></tr></thead><tbody><tr><td><code>a|b</code></td><td>1<br>2</td></tr></tbody></table>
			<table><tr><td>list</td><td><ul><li>x</li></ul></td></tr></table></main>`,
			"A page\n\n- one\n\n  - two\n\n    ```c\n    x;\n\n    y;\n    ```\n\n> Quote\n>\n> ```\n> a\n> b\n> ```\n\n| Key | Value |\n|---|--:|\n| `a\\|b` | 1  <br />2 |\n\nlist\n\n- x\n",
		},
		"links and images": {
			`<head><base href="/base/"></head><main><p><a href="a b">A</a> <a href="javascript:x">B</a> <a href="mailto:x@y.example">C</a> <a href="//other.example/d">D</a> <a>E</a></p><img src="i.png" alt="An image"><img src="data:image/png;base64,xx" alt="no"></main>`,
			"[A](https://docs.example/base/a%20b) B [C](mailto:x@y.example) [D](https://other.example/d) E\n\n![An image](https://docs.example/base/i.png)\n",
		},
		"no mark of the main content": {
			`<body><div id="menu" class="sidebar"><a href="/1">One</a></div><div class="post"><h1>Story</h1>` + strings.Repeat(`<p>It was a dark and stormy night, and the rain fell in torrents, except at occasional intervals.</p>`, 2) + `</div></body>`,
			"# Story\n\n" + strings.TrimSuffix(strings.Repeat("It was a dark and stormy night, and the rain fell in torrents, except at occasional intervals.\n\n", 2), "\n"),
		},
	} {
		t.Run(name, func(t *testing.T) {
			p, err := convert(t, c.page)
			if err != nil || string(p.Markdown) != c.want {
				t.Errorf("%v, got\n%s\nwant\n%s", err, p.Markdown, c.want)
			}
		})
	}
}

func TestPage(t *testing.T) {
	p, err := convert(t, `<html><head><title>Install | Docs</title><link rel="canonical" href="/guide/original#x"></head>
		<body><nav><a href="/one#x">1</a><a href="two">2</a><a href="two">2</a><a href="ftp://x.example/">3</a></nav><main><p>Some text</p></main></body></html>`)
	if err != nil || p.Title != "Install | Docs" || p.Canonical.String() != "https://docs.example/guide/original" {
		t.Errorf("%+v %v", p, err)
	}
	if p, err := convert(t, `<title>Use - Book</title><body><h1>Book</h1><main><h2>Use</h2></main></body>`); err != nil || p.Title != "Use" {
		t.Errorf("the title is %q (%v)", p.Title, err)
	}
	var links []string
	for _, l := range p.Links {
		links = append(links, l.String())
	}
	if want := []string{"https://docs.example/one", "https://docs.example/guide/page/two"}; !slices.Equal(links, want) {
		t.Errorf("the links are %q, want %q", links, want)
	}
	at, _ := url.Parse("https://x.example/")
	if p, err := Convert([]byte("<meta charset=iso-8859-1><main>caf\xe9</main>"), "text/html", at, nil); err != nil || string(p.Markdown) != "café\n" {
		t.Errorf("%q %v", p.Markdown, err)
	}
	for _, empty := range []string{"", "<body><script>x</script></body>", "<main><nav>x</nav></main>"} {
		if _, err := convert(t, empty); !errors.Is(err, ErrEmpty) {
			t.Errorf("%q gives %v", empty, err)
		}
	}
}

// Links within a page lead to the anchors that search and the pages of this server use.
func TestAnchorsAreThoseOfSearch(t *testing.T) {
	p, err := convert(t, `<main><h1 id="top">The <code>useFetch()</code> *guide*</h1><p><a href="#top">1</a><a href="#b2">2</a><a href="#sec">3</a><a href="#para">4</a><a href="#gone">5</a></p>
		<h2 id="b1">Two words</h2><p>x</p><h2 id="b2">Two words</h2><section id="sec"><h3>C# &amp; <a href="/x">Ünï</a>!</h3><p>x</p><p id="para">x</p></section></main>`)
	if err != nil {
		t.Fatal(err)
	}
	var anchors []string
	for _, s := range parse.Sections("page.md", p.Markdown) {
		anchors = append(anchors, s.Anchor)
	}
	want := []string{"the-usefetch-guide", "two-words", "two-words-1", "c--ünï"}
	if !slices.Equal(anchors, want) {
		t.Errorf("the anchors are %q, want %q", anchors, want)
	}
	line := "[1](#the-usefetch-guide)[2](#two-words-1)[3](#c--%C3%BCn%C3%AF)[4](#c--%C3%BCn%C3%AF)[5](https://docs.example/guide/page/#gone)"
	if !strings.Contains(string(p.Markdown), line) {
		t.Errorf("got\n%s\nwithout %s", p.Markdown, line)
	}
}

// TestHostilePages has pages that cost a naive converter minutes or gigabytes. Each ends.
func TestHostilePages(t *testing.T) {
	size := 1 << 18
	if testenv.Soak() {
		size = 1 << 21
	}
	fill := func(s string) string { return strings.Repeat(s, size/len(s)) }
	numbered := func(format string, n int) string {
		var b strings.Builder
		for i := range n {
			fmt.Fprintf(&b, format, i)
		}
		return b.String()
	}
	for name, page := range map[string]string{
		"deep elements":       fill("<div>"),
		"deep lists":          strings.Repeat("<ul><li>a", 200),
		"deep quotations":     strings.Repeat("<blockquote>a", 400) + fill("text "),
		"deep formatting":     fill("<b><i>"),
		"deep links":          fill("<a href=x><p>"),
		"formatting reopened": "<div>" + numbered("<b id=%d>", 400) + "</div>" + fill("<div>x</div>"),
		"formatting hidden":   "<div>" + numbered("<b id=%d>", 400) + "<table><td>" + strings.Repeat("</b>", 400) + "</table></div>" + fill("<div>x</div>"),
		"tables in tables":    fill("<table><tr><td>a"),
		"wide table":          "<table><tr>" + strings.Repeat("<td>x", 20_000) + strings.Repeat("<tr><td>x", 20_000) + "</table>",
		"spans":               "<table>" + strings.Repeat("<tr><td colspan=1000000 rowspan=1000000>x", 1000) + "</table>",
		"attributes":          "<p " + numbered("a%d=x ", 50_000) + ">x</p>",
		"a long attribute":    "<p class='" + fill("language-x ") + "'>x</p>",
		"a long link":         "<p><a href='/" + fill("a") + "'>x</a></p>",
		"many links":          fill("<a href=x>y</a> "),
		"brackets":            "<p>" + fill("[") + "</p>",
		"stars":               "<p>" + fill("*a_ ") + "</p>",
		"dashes":              "<p>" + fill("- ") + "</p>",
		"backquotes":          "<pre>" + fill("`") + "</pre>",
		"line breaks":         "<p>" + fill("<br>") + "x</p>",
		"spaces":              "<p>x" + fill(" &nbsp;") + "x</p>",
		"empty elements":      fill("<span></span>") + "x",
		"headings":            fill("<h2 id=a>a</h2>"),
		"marks":               "<p>\x07\uf002" + fill("\x07*") + "</p>",
		"unclosed comment":    "x<!--" + fill("-"),
		"select":              "x<select>" + fill("<b>"),
		"svg":                 "x<svg>" + fill("<g><b>"),
		"frames":              fill("<frameset><template>"),
	} {
		t.Run(name, func(t *testing.T) {
			for _, page := range []string{"<main>" + page, page} {
				p, err := convert(t, page)
				if err != nil && !errors.Is(err, ErrTooComplex) && !errors.Is(err, ErrEmpty) {
					t.Error(err)
				}
				if len(p.Markdown) > 20*size {
					t.Errorf("the page becomes %d bytes", len(p.Markdown))
				}
			}
		})
	}
}

func FuzzConvert(f *testing.F) {
	f.Add("<main><h1>a</h1><ul><li><pre>x\ny</pre></ul><table><tr><td>a<td>b</table>")
	f.Add("<p><b><i>x</b>y</i><blockquote><pre><table class=highlighttable><td class=code>x")
	f.Fuzz(func(t *testing.T, page string) {
		p, err := convert(t, page)
		if err == nil && len(p.Markdown) == 0 {
			t.Error("a page without text is no error")
		}
	})
}
