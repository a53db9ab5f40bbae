package htmlmark

import (
	"bytes"
	"crypto/rand"
	"strconv"
	"strings"

	"golang.org/x/net/html"
	"golang.org/x/net/html/atom"
)

// codeBlocks takes the blocks of code out of a page before the conversion, and puts them back
// after it. So the converter changes no byte of them, and each of their lines gets the
// indentation of lists and the marks of quotations.
type codeBlocks struct {
	mark   string // begins the word that stands for a block; random, so that no page contains it
	blocks []codeBlock
}

type codeBlock struct{ language, text string }

func newCodeBlocks() *codeBlocks { return &codeBlocks{mark: "code" + rand.Text()} }

// take replaces each block of code with a word that stands for the block. A single line in the cell
// of a table becomes inline code instead.
func (c *codeBlocks) take(root *html.Node) {
	var tables, blocks []*html.Node
	each(root, func(n *html.Node) {
		if n.DataAtom == atom.Table && numbered(n) {
			tables = append(tables, n)
		}
	})
	for _, t := range tables { // these tables have line numbers and code in two cells
		var last *html.Node
		each(t, func(n *html.Node) {
			if n.DataAtom == atom.Pre || hasClass(n, "code") || hasClass(n, "rouge-code") {
				last = n
			}
		})
		if last == nil || t.Parent == nil {
			continue
		}
		last.Parent.RemoveChild(last)
		if last.DataAtom != atom.Pre {
			rename(last, atom.Div)
		}
		t.Parent.InsertBefore(last, t)
		t.Parent.RemoveChild(t)
	}
	var walk func(n *html.Node)
	walk = func(n *html.Node) {
		if n.DataAtom == atom.Pre {
			blocks = append(blocks, n)
			return
		}
		for c := n.FirstChild; c != nil; c = c.NextSibling {
			walk(c)
		}
	}
	walk(root)
	for _, pre := range split(blocks) {
		text := strings.TrimRight(codeText(pre), " \t\n")
		text = strings.TrimLeft(text, "\n")
		language := languageOf(pre)
		for pre.FirstChild != nil {
			pre.RemoveChild(pre.FirstChild)
		}
		pre.Attr = nil
		switch {
		case strings.TrimSpace(text) == "":
			rename(pre, atom.Div)
		case inCell(pre) && !strings.Contains(text, "\n"):
			rename(pre, atom.Code)
			pre.AppendChild(&html.Node{Type: html.TextNode, Data: text})
		default:
			c.put(pre, language, text)
		}
	}
}

// split divides each block that holds an example in several languages into one block for
// each language.
func split(blocks []*html.Node) []*html.Node {
	var all []*html.Node
	for _, pre := range blocks {
		all = append(all, pre)
		var codes []*html.Node
		for c := pre.FirstChild; c != nil; c = c.NextSibling {
			if c.DataAtom == atom.Code && ownLanguage(c) != "" {
				codes = append(codes, c)
			}
		}
		for i := 1; i < len(codes); i++ {
			pre.RemoveChild(codes[i])
			next := &html.Node{Type: html.ElementNode, DataAtom: atom.Pre, Data: "pre"}
			next.AppendChild(codes[i])
			pre.Parent.InsertBefore(next, all[len(all)-1].NextSibling)
			all = append(all, next)
		}
	}
	return all
}

// blockAttr marks the paragraph of a block of code.
const blockAttr = "data-block"

// put replaces a block with the word that stands for it. The word is a paragraph.
func (c *codeBlocks) put(pre *html.Node, language, text string) {
	rename(pre, atom.P)
	setAttr(pre, blockAttr, "")
	pre.AppendChild(&html.Node{Type: html.TextNode, Data: c.mark + strconv.Itoa(len(c.blocks)) + "x"})
	c.blocks = append(c.blocks, codeBlock{language, text})
	// A paragraph in an inline element would lose its line.
	for p := pre.Parent; p != nil && p.Type == html.ElementNode; p = p.Parent {
		switch p.DataAtom {
		case atom.Span, atom.Code, atom.A, atom.B, atom.Strong, atom.I, atom.Em, atom.Dt:
			rename(p, atom.Div)
		}
	}
}

// give replaces each word that stands for a block of code with the code. It also removes the spaces
// at the end of empty lines.
func (c *codeBlocks) give(markdown []byte) []byte {
	var out bytes.Buffer
	for l := range bytes.Lines(markdown) {
		before, rest, found := bytes.Cut(l, []byte(c.mark))
		number, after, ok := bytes.Cut(rest, []byte("x"))
		i, err := strconv.Atoi(string(number))
		if !found || !ok || err != nil || i >= len(c.blocks) {
			if len(bytes.Trim(l, "> \n")) == 0 {
				l = append(bytes.TrimRight(l, " \n"), '\n')
			}
			out.Write(l)
			continue
		}
		b := c.blocks[i]
		f := fence(b.text)
		out.Write(before)
		out.WriteString(f + b.language + "\n")
		prefix := continuation(before)
		for codeLine := range strings.SplitSeq(b.text, "\n") {
			out.WriteString(strings.TrimRight(prefix+codeLine, " "))
			out.WriteByte('\n')
		}
		out.WriteString(prefix)
		out.WriteString(f)
		out.Write(after)
	}
	return out.Bytes()
}

// continuation returns what the later lines of a block begin with if its first line begins
// with before: marks of quotations stay, and marks of lists become spaces.
func continuation(before []byte) string {
	return strings.Map(func(r rune) rune {
		if r == '>' {
			return r
		}
		return ' '
	}, string(before))
}

// fence returns more backquotes than the code has in a row, but at least three.
func fence(code string) string {
	longest, run := 2, 0
	for i := range len(code) {
		if code[i] != '`' {
			run = 0
			continue
		}
		run++
		longest = max(longest, run)
	}
	return strings.Repeat("`", longest+1)
}

// codeText returns the text of a block of code. Some highlighters have an element for each
// line instead of line breaks.
func codeText(pre *html.Node) string {
	var b strings.Builder
	newLine := func() {
		if s := b.String(); s != "" && s[len(s)-1] != '\n' {
			b.WriteByte('\n')
		}
	}
	var walk func(n *html.Node)
	walk = func(n *html.Node) {
		if n.Type == html.TextNode {
			b.WriteString(n.Data)
			return
		}
		switch n.DataAtom {
		case atom.Br:
			b.WriteByte('\n')
		case atom.Div, atom.P, atom.Li, atom.Tr:
			newLine()
		case atom.Span, atom.Code:
			if hasClass(n, "line") || hasClass(n, "token-line") || hasClass(n, "code-line") {
				newLine()
			}
		}
		for c := n.FirstChild; c != nil; c = c.NextSibling {
			walk(c)
		}
	}
	walk(pre)
	return strings.ReplaceAll(b.String(), "\r\n", "\n")
}

// languageOf returns the language of a block of code, or "".
func languageOf(pre *html.Node) string {
	for _, n := range []*html.Node{pre, first(pre, func(n *html.Node) bool { return n.DataAtom == atom.Code })} {
		if l := ownLanguage(n); l != "" {
			return known(l)
		}
	}
	// An element around the block may name its language.
	p := pre.Parent
	for range 4 {
		if p == nil || p.Type != html.ElementNode || p.DataAtom == atom.Body || p.DataAtom == atom.Main || p.DataAtom == atom.Article {
			break
		}
		if l := ownLanguage(p); l != "" {
			return known(l)
		}
		p = p.Parent
	}
	return ""
}

// bareLanguages are the classes that name a language without a prefix.
var bareLanguages = set("bash c cpp css diff go html java javascript js json kotlin php powershell py python ruby rust sh shell sql swift toml ts typescript xml yaml")

func ownLanguage(n *html.Node) string {
	if n == nil {
		return ""
	}
	for _, key := range []string{"data-language", "data-lang", "language", "lang"} {
		if v := attr(n, key); v != "" && (key != "lang" || n.DataAtom == atom.Pre || n.DataAtom == atom.Code) {
			return v
		}
	}
	classes := strings.Fields(attr(n, "class"))
	for _, c := range classes {
		for _, prefix := range []string{"language-", "lang-", "highlight-source-", "highlight-text-", "highlight-"} {
			if l, ok := strings.CutPrefix(c, prefix); ok && l != "" {
				l, _, _ = strings.Cut(l, "{") // as in language-js{1,3}
				return l
			}
		}
	}
	for _, c := range classes { // rustdoc and Pandoc use no prefix
		if n.DataAtom == atom.Pre || n.DataAtom == atom.Code {
			if bareLanguages[c] {
				return c
			}
		}
	}
	if len(classes) > 1 && (classes[0] == "sourceCode" || classes[0] == "hljs" || classes[0] == "brush:") {
		return strings.TrimSuffix(classes[1], ";")
	}
	return ""
}

// known returns a language in lower case, or "" if the name is not that of a language.
func known(language string) string {
	language = strings.ToLower(language)
	switch language {
	case "none", "default", "plaintext", "undefined", "null", "auto", "highlight":
		return ""
	}
	if len(language) > 30 || strings.ContainsFunc(language, func(r rune) bool {
		return (r < 'a' || r > 'z') && (r < '0' || r > '9') && !strings.ContainsRune("+#._-", r)
	}) {
		return ""
	}
	return language
}

func numbered(t *html.Node) bool {
	return hasClass(t, "highlighttable") || hasClass(t, "rouge-table") || hasClass(t, "linenodiv") || hasClass(t, "hljs-ln") || hasClass(t, "lntable")
}

func inCell(n *html.Node) bool {
	for p := n.Parent; p != nil; p = p.Parent {
		if p.DataAtom == atom.Td || p.DataAtom == atom.Th {
			return true
		}
	}
	return false
}
