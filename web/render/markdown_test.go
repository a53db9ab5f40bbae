package render_test

import (
	"strings"
	"testing"
	"time"

	"satchel/tools/index/parse"
	"satchel/web/render"
)

var place = render.Place{Path: "knowledge/web/page.md", Files: base + "files/", Raw: base + "raw/", Query: "?at=abc", Under: 1}

func markdown(t *testing.T, src string) render.Document {
	t.Helper()
	d, ok := render.Markdown([]byte(src), place)
	if !ok {
		t.Fatalf("%.60q is refused", src)
	}
	check(t, string(d.HTML))
	return d
}

func TestMarkdown(t *testing.T) {
	for _, tt := range []struct{ name, src, want string }{
		{"a paragraph", "Hello *you*", "<p>Hello <em>you</em></p>\n"},
		{"headings are under the page's", "# A\n\n### B\n\n## C", `<h2 id="a">A <a class="anchor" href="#a"><span class="unseen">Link to this section: A</span></a></h2>` + "\n" +
			`<h3 id="b">B <a class="anchor" href="#b"><span class="unseen">Link to this section: B</span></a></h3>` + "\n" +
			`<h3 id="c">C <a class="anchor" href="#c"><span class="unseen">Link to this section: C</span></a></h3>` + "\n"},
		{"a neighbour", "[x](other.md)", `<p><a href="/spaces/s_x/files/knowledge/web/other.md?at=abc">x</a></p>` + "\n"},
		{"a parent's", "[x](../b%20c.md#Part)", `<p><a href="/spaces/s_x/files/knowledge/b%20c.md?at=abc#Part">x</a></p>` + "\n"},
		{"from the root", "[x](/README.md)", `<p><a href="/spaces/s_x/files/README.md?at=abc">x</a></p>` + "\n"},
		{"a directory", "[x](./)", `<p><a href="/spaces/s_x/files/knowledge/web/?at=abc">x</a></p>` + "\n"},
		{"within the page", "[x](#part)", `<p><a href="#part">x</a></p>` + "\n"},
		{"elsewhere", "[x](https://example.com/?a=1&b=2 \"a title\")", `<p><a href="https://example.com/?a=1&amp;b=2" rel="noreferrer noopener nofollow" title="a title">x</a></p>` + "\n"},
		{"a bare address", "see https://example.com/a", `<p>see <a href="https://example.com/a" rel="noreferrer noopener nofollow">https://example.com/a</a></p>` + "\n"},
		{"mail", "<a@example.com>", `<p><a href="mailto:a@example.com" rel="noreferrer noopener nofollow">a@example.com</a></p>` + "\n"},
		{"a picture", "![it](a.png)", `<p><img src="/spaces/s_x/raw/knowledge/web/a.png?at=abc" alt="it" loading="lazy"></p>` + "\n"},
		{"a picture elsewhere is a link", "![it](https://example.com/a.png)", `<p><a href="https://example.com/a.png" rel="noreferrer noopener nofollow">it</a> <span class="hint">(picture elsewhere)</span></p>` + "\n"},
		{"a badge", "[![it](https://example.com/a.png)](https://example.com/)", `<p><a href="https://example.com/" rel="noreferrer noopener nofollow">it</a></p>` + "\n"},
		{"tags that pass", "a<br>b <kbd>Ctrl</kbd> <B>x</B>", "<p>a<br>b <kbd>Ctrl</kbd> <b>x</b></p>\n"},
		{"a tag without its end", "a <b>b", "<p>a &lt;b&gt;b</p>\n"},
		{"an end without its tag", "a b</b>", "<p>a b&lt;/b&gt;</p>\n"},
		{"tags that cross", "<b>a <i>b</b> c</i>", "<p><b>a &lt;i&gt;b</b> c&lt;/i&gt;</p>\n"},
		{"attributes are left out", `<b class="x" onclick="alert(1)">a</b>`, "<p><b>a</b></p>\n"},
		{"a picture in HTML", `a <img src="../a.png" width="40" onload="x()" alt="it"> b`, `<p>a <img src="/spaces/s_x/raw/knowledge/a.png?at=abc" alt="it" loading="lazy" width="40"> b</p>` + "\n"},
		{"a picture elsewhere in HTML is named", `a <img src="https://example.com/a.png" alt="Build">`, `<p>a <span class="hint">(Build)</span></p>` + "\n"},
		{"a link in HTML", `a <a href="b.md" style="x">b</a>`, `<p>a <a href="/spaces/s_x/files/knowledge/web/b.md?at=abc">b</a></p>` + "\n"},
		{"a link that pages do not follow", `a <a href="javascript:alert(1)">b</a>`, "<p>a <span>b</span></p>\n"},
		{"a block around Markdown", "<div align=\"center\">\n\n*it*\n\n</div>", "<div align=\"center\">\n\n<p><em>it</em></p>\n</div>\n"},
		{"a heading in HTML is under the page's", "<h1 align=\"center\">A</h1>", "<h2 align=\"center\">A</h2>\n"},
		{"a table in HTML", "<table><tr><td colspan=2>a</td></tr></table>", "<table><tr><td colspan=\"2\">a</td></tr></table>\n"},
		{"a cell outside of a table", "<td>a</td>", "&lt;td&gt;a&lt;/td&gt;\n"},
		{"an item outside of a list", "<div><li>a</li></div>", "<div>&lt;li&gt;a&lt;/li&gt;</div>\n"},
		{"details around text", "<details>\n<summary>More &amp; more</summary>\n\nIn *it*.\n\n</details>", "<details>\n<summary>More &amp; more</summary>\n\n<p>In <em>it</em>.</p>\n</details>\n"},
		{"details that do not end", "<details>\n\ntext", "&lt;details&gt;\n\n<p>text</p>\n"},
		{"a comment", "a <!-- b --> c\n\n<!-- d -->\n", "<p>a  c</p>\n\n\n"},
		{"a table", "|a|b|\n|-|-:|\n|1|2|\n", "<div class=\"scroll\" tabindex=\"0\"><table>\n<thead>\n<tr>\n<th>a</th>\n<th align=\"right\">b</th>\n</tr>\n</thead>\n<tbody>\n<tr>\n<td>1</td>\n<td align=\"right\">2</td>\n</tr>\n</tbody>\n</table></div>\n"},
		{"struck out", "~~a~~", "<p><del>a</del></p>\n"},
		{"code", "```go\nreturn \"x\" // y\n```", "<pre class=\"code\" tabindex=\"0\"><code><span class=\"tk\">return</span> <span class=\"ts\">\"x\"</span> <span class=\"tc\">// y</span>\n</code></pre>\n"},
		{"code of no language", "    <b>", "<pre class=\"code\" tabindex=\"0\"><code>&lt;b&gt;\n</code></pre>\n"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if got := string(markdown(t, tt.src).HTML); got != tt.want {
				t.Errorf("got  %s\nwant %s", got, tt.want)
			}
		})
	}
}

// TestHostileMarkdown has input that must become text, or nothing. check judges the output
// as a browser would.
func TestHostileMarkdown(t *testing.T) {
	for name, src := range map[string]string{
		"script":                    "<script>alert(1)</script>",
		"script in a paragraph":     "a <script>alert(1)</script> b",
		"an event handler":          "<img src=x onerror=alert(1)>",
		"an event handler in svg":   "<svg/onload=alert(1)>",
		"a style":                   "<style>body{display:none}</style>",
		"a frame":                   "<iframe src=//evil.test></iframe>",
		"a form":                    "<form action=//evil.test><input name=password></form>",
		"a base":                    "<base href=//evil.test>",
		"a refresh":                 "<meta http-equiv=refresh content=0;url=//evil.test>",
		"javascript link":           "[x](javascript:alert(1))",
		"javascript link, cased":    "[x](JaVaScRiPt:alert(1))",
		"javascript link, entity":   "[x](javascript&colon;alert(1))",
		"javascript link, numbers":  "[x](&#106;avascript:alert(1))",
		"javascript link, tab":      "[x](java&Tab;script:alert(1))",
		"javascript link, newline":  "[x](java&NewLine;script:alert(1))",
		"javascript link, control":  "[x](\x01javascript:alert(1))",
		"javascript link, angle":    "[x](<javascript:alert(1)>)",
		"javascript autolink":       "<javascript:alert(1)>",
		"javascript reference":      "[x]\n\n[x]: javascript:alert(1)",
		"javascript image":          "![x](javascript:alert(1))",
		"data link":                 "[x](data:text/html,<script>alert(1)</script>)",
		"data image":                "![x](data:image/svg+xml;base64,AAAA)",
		"vbscript link":             "[x](vbscript:msgbox)",
		"a link to a host":          "[x](//evil.test/x)",
		"a link with backslashes":   `[x](\\evil.test\x)`,
		"a link with /\\":           `[x](/\evil.test)`,
		"a link out of the space":   "[x](../../../../admin)",
		"a link out, encoded":       "[x](%2e%2e/%2e%2e/%2e%2e/%2e%2e/admin)",
		"a link out, slashes":       "[x](..%2f..%2f..%2f..%2fadmin)",
		"a link to git's own":       "[x](/.git/config)",
		"a link with a NUL":         "[x](a%00b)",
		"a link of another person":  "[x](https://good.test@evil.test/)",
		"an image out of the space": "![x](../../../../signout)",
		"a quote in a link":         "[x](<a\"onmouseover=alert(1)>)",
		"a quote in a title":        `[x](https://a.test "a&quot;onmouseover=alert(1) b")`,
		"a quote in alt":            `![x"onerror=alert(1)](a.png)`,
		"an attribute of a heading": "# a {onclick=alert(1) style=x id=\"x\\\"y\"}",
		"an id of the page":         "# main",
		"a language of code":        "```\"><script>alert(1)</script>\nx\n```",
		"a tag in code":             "`<script>alert(1)</script>`",
		"a tag in a table":          "|<script>|\n|-|\n|<b onclick=x>|",
		"the end of a paragraph":    "</p></div></main><script>alert(1)</script>",
		"a textarea":                "<textarea>\n\n# a\n\n</textarea>",
		"plaintext":                 "<plaintext>\n\n<b>",
		"a cut tag":                 "a <b",
		"a cut comment":             "<!-- a\n\n<script>alert(1)</script>",
		"a comment that ends so":    "<!--> <script>alert(1)</script> -->",
		"cdata":                     "<![CDATA[<script>alert(1)</script>]]>",
		"php":                       "<?php echo '<script>alert(1)</script>' ?>",
		"mutation by svg":           "<svg><p><style><!--</style><img src=x onerror=alert(1)>",
		"mutation by noscript":      `<noscript><p title="</noscript><img src=x onerror=alert(1)>">`,
		"details in a paragraph":    "a <details>b</details> c",
		"summary alone":             "<summary>a</summary>",
		"summary beside details":    "<details></details><summary>a</summary>",
		"a footnote":                "a[^1]\n\n[^1]: <script>alert(1)</script> [x](javascript:alert(1))",
		"a footnote's name":         "a[^\"><script>]\n\n[^\"><script>]: x",
		"the other direction":       "a \u202egpj.exe",
		"bytes that are no text":    "a \xff\xfe <b\xff>",
		"NUL":                       "a\x00<scr\x00ipt>alert(1)</script>",
		"front matter":              "---\ntitle: <script>alert(1)</script>\n\"<img src=x onerror=alert(1)>\": 1\n---\na",
	} {
		t.Run(name, func(t *testing.T) {
			d := markdown(t, src)
			if strings.Contains(strings.ToLower(string(d.HTML)), "href=\"javascript") {
				t.Errorf("%s", d.HTML)
			}
		})
	}
}

func TestAnchorsAreThoseOfSearch(t *testing.T) {
	src := "---\ntitle: x\n---\n# Über *uns* & `code`\n\nText\n\nTwo words\n---------\n\n## Two words\n\n## Two words!\n\n```\n# not one\n```\n\n### [A link](x.md) {#own}\n\n> # quoted\n"
	d := markdown(t, src)
	got := map[string]bool{}
	for _, h := range d.Headings {
		got[h.Anchor] = true
	}
	for _, s := range parse.Sections("page.md", []byte(src)) {
		if s.Anchor != "" && !got[s.Anchor] {
			t.Errorf("search names %q, and the page has %v", s.Anchor, d.Headings)
		}
	}
	if len(d.Headings) < 5 {
		t.Errorf("%v", d.Headings)
	}
}

func TestFrontMatter(t *testing.T) {
	d := markdown(t, "---\nzeta: 1\ntitle: A  title\ntags: [a, b]\nnested: {x: {y: 1}}\nnothing:\n---\nText")
	var got []string
	for _, f := range d.Fields {
		got = append(got, f.Name+"="+f.Text+strings.Join(f.Items, "|"))
	}
	if s := strings.Join(got, " "); s != "zeta=1 title=A title tags=a|b nested=x: y: 1 nothing=–" {
		t.Errorf("%s", s)
	}
	if d := markdown(t, "---\na: &x 1\nb: *x\n---\nText"); d.Problem == "" || !strings.Contains(string(d.HTML), "Text") {
		t.Errorf("%+v", d)
	}
}

// TestBounds checks that large or nested input is refused, and that all other input is
// fast. Its inputs are known to be slow in Markdown parsers.
func TestBounds(t *testing.T) {
	const n = render.MaxMarkdown
	fill := func(s string) string { return strings.Repeat(s, n/len(s)) }
	for name, src := range map[string]string{
		"too large": strings.Repeat("a", render.MaxMarkdown+1), "quotes": fill(">"), "lists": fill("- ")[:n-1] + "a", "deep lists": deepList(),
		"brackets": fill("["), "links": fill("[a]("), "emphasis": fill("*a_ "), "headings": fill("# a\n"),
		"tables":               "|" + strings.Repeat("a|", 99) + "\n|" + strings.Repeat("-|", 99) + "\n" + strings.Repeat("|\n", 2000),
		"a fence that is none": "<!--\n```\n-->\n" + strings.Repeat("[a](", 4000),
	} {
		if _, ok := render.Markdown([]byte(src), place); ok {
			t.Errorf("%s: it is not refused", name)
		}
	}
	for name, src := range map[string]string{
		"brackets": fill("["), "images": fill("!["), "links": fill("[a]("), "closed brackets": fill("[]"), "emphasis": fill("*a "), "emphasis both": fill("*a_ "),
		"ticks": fill("`a``"), "tags": fill("<b>"), "open tags": fill("<"), "comments": fill("<!--"), "declarations": fill("<!A "), "processing": fill("<?"),
		"entities": fill("&#"), "struck": fill("~~a "), "tables": "|a|\n|-|\n" + fill("|"), "wide tables": strings.Repeat("|a", 2000) + "|\n" + strings.Repeat("|-", 2000) + "|\n" + strings.Repeat("|\n", 2000),
		"references": fill("[a]: b\n"), "footnotes": fill("[^a]"), "headings": fill("# a\n"), "addresses": fill("www.a.b "), "mails": fill("a@a."), "colons": fill("http://a"),
		"backslashes": fill("\\["), "indent": fill("\t"), "many lists": fill("- a\n  - b\n"), "setext": fill("a\n=\n"), "parens": "[a](" + fill("("), "quotes with lists": fill("> - a\n"),
		"many blocks of links": fill(strings.Repeat("[a](", 300) + "\n\n"), "many blocks of emphasis": fill(strings.Repeat("*a_ ", 500) + "\n\n"), "some links": strings.Repeat("[a](", 800), "some emphasis": strings.Repeat("*a_ ", 3000),
		"lists of twenty": fill(twenty()), "details": fill("<details>\n\n"), "emphasis in links": fill("[**a"), "code fences": fill("```\na\n"), "attributes": fill("# a {"), "CR": fill("a\r"),
	} {
		t.Run(name, func(t *testing.T) {
			begun := time.Now()
			d, ok := render.Markdown([]byte(src), place)
			t.Logf("%v: shown %v, %d bytes", time.Since(begun).Round(time.Millisecond), ok, len(d.HTML))
			if ok {
				if err := balanced(string(d.HTML)); err != nil {
					t.Error(err)
				}
			}
		})
	}
}

func twenty() string {
	var b strings.Builder
	for i := range 20 {
		b.WriteString(strings.Repeat("  ", i) + "- a\n")
	}
	return b.String()
}

// deepList returns a list that is one level deeper in each line.
func deepList() string {
	var b strings.Builder
	for i := range 700 {
		b.WriteString(strings.Repeat("  ", i) + "- a\n")
	}
	return b.String()[:min(b.Len(), render.MaxMarkdown)]
}
