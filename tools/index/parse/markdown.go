package parse

import (
	"bytes"
	"html"
	"regexp"
	"strings"
	"sync"
)

const maxHeadingBytes = 300

// MarkdownLines marks the headings, code fences, comments and tables of Markdown and MDX. The
// body begins at byte body, after the front matter.
func MarkdownLines(data []byte, body int) []Line {
	lines := PlainLines(data)
	var fence FenceState
	ends := commentEnds{data: data}
	open := 0     // the line that began the fence or the comment
	comment := "" // the text that ends the open comment
	table := -1   // the line that began the table
	for i := range lines {
		l := &lines[i]
		text := data[l.Start:l.End]
		if l.End <= body {
			l.Structure = true
			if i > 0 {
				l.Group = inBlock
			}
			continue
		}
		switch {
		case fence.Open():
			if !fence.Leaves(text) {
				l.Group, l.First = InFence, open
				fence.Close(text)
				continue
			}
			fence = FenceState{}
		case comment != "":
			l.Group, l.First, l.Structure = InFence, open, true
			if bytes.Contains(text, []byte(comment)) {
				comment = ""
			}
			continue
		}
		if fence.Start(text) {
			open, table = i, -1
			continue
		}
		if comment = ends.opened(*l); comment != "" {
			open, table, l.Structure = i, -1, true
			continue
		}
		if t := bytes.TrimLeft(text, " "); !bytes.HasPrefix(t, []byte("|")) {
			table = -1
		} else if table < 0 {
			table = i
		} else {
			l.Group, l.First = InTable, table
			l.Structure = i == table+1 && len(bytes.Trim(t, "|:- \t\r\n")) == 0
		}
		if level, h := atxHeading(text); level > 0 {
			l.Level, l.Heading = level, h
		} else if level := setext(text); level > 0 && i > 0 {
			if prev := &lines[i-1]; canBeSetext(data, *prev, body) {
				prev.Level, prev.Heading = level, CleanHeading(string(data[prev.Start:prev.End]))
				l.Structure = true
			}
		}
		l.Structure = l.Structure || saysNothing(text)
	}
	return lines
}

// saysNothing reports whether a line is a rule, or consists only of a tag or the end of a
// component.
func saysNothing(text []byte) bool {
	t := bytes.TrimSpace(text)
	if len(t) == 0 || len(t) > 200 {
		return false
	}
	if strings.IndexByte("-*_=:", t[0]) >= 0 {
		return len(bytes.Trim(t, string(t[:1])+" ")) == 0
	}
	return t[0] == '<' && t[len(t)-1] == '>' && bytes.IndexByte(t, '>') == len(t)-1 && (t[1] == '/' || bytes.IndexByte(t, ' ') < 0)
}

// commentEnds finds each end of a comment once, so that a page that consists of comment starts
// takes linear time.
type commentEnds struct {
	data []byte
	next [2]int // the first end at or after the last position that was examined
}

var comments = [...]struct{ start, end string }{{"<!--", "-->"}, {"{/*", "*/}"}}

// opened returns the end mark of a comment that begins in the line and ends after it, or "" if
// there is none. A comment that ends far below or never is text.
func (c *commentEnds) opened(l Line) string {
	text := c.data[l.Start:l.End]
	t := bytes.TrimLeft(text, " ")
	for k, m := range comments {
		if !bytes.HasPrefix(t, []byte(m.start)) || bytes.Contains(t, []byte(m.end)) {
			continue
		}
		if c.next[k] < l.End {
			c.next[k] = len(c.data) + MaxFence
			if i := bytes.Index(c.data[l.End:], []byte(m.end)); i >= 0 {
				c.next[k] = l.End + i
			}
		}
		if c.next[k]-l.End < MaxFence {
			return m.end
		}
	}
	return ""
}

// FenceState follows fenced code blocks (CommonMark 4.5), also within quotes
// and list items.
type FenceState struct {
	Char   byte // 0: no fence is open
	N      int
	Quoted bool // the fence is in a quote, and ends with the quote at the latest
}

// Open reports whether a code fence is open.
func (f *FenceState) Open() bool { return f.Char != 0 }

// unquote removes spaces and the marks of a quote.
func unquote(text []byte) (t []byte, quoted bool) {
	t = bytes.TrimLeft(text, " \t")
	for bytes.HasPrefix(t, []byte(">")) {
		t, quoted = bytes.TrimLeft(t[1:], " \t"), true
	}
	return t, quoted
}

// Start opens a fence if a line begins one, and reports whether it does.
func (f *FenceState) Start(text []byte) bool {
	t, quoted := unquote(text)
	if len(t) > 2 && strings.IndexByte("-*+", t[0]) >= 0 && t[1] == ' ' {
		t = bytes.TrimLeft(t[2:], " ")
	} else if i := bytes.IndexAny(t, ".)"); i > 0 && i < 4 && isNumber(string(t[:i])) && i+1 < len(t) && t[i+1] == ' ' {
		t = bytes.TrimLeft(t[i+2:], " ")
	}
	for _, c := range []byte("`~") {
		n := 0
		for n < len(t) && t[n] == c {
			n++
		}
		if n >= 3 && (c == '~' || bytes.IndexByte(t[n:], '`') < 0) {
			*f = FenceState{c, n, quoted}
			return true
		}
	}
	return false
}

// Leaves reports whether a line is outside the quote that contains the fence.
func (f *FenceState) Leaves(text []byte) bool {
	if !f.Quoted {
		return false
	}
	_, quoted := unquote(text)
	return !quoted
}

// Close closes the fence if a line ends it.
func (f *FenceState) Close(text []byte) {
	if f.Quoted {
		text, _ = unquote(text)
	}
	t := bytes.TrimSpace(text)
	for _, c := range t {
		if c != f.Char {
			return
		}
	}
	if len(t) >= f.N {
		*f = FenceState{}
	}
}

// atxHeading reads "## Heading ##". level is 0 if the line is not a heading.
func atxHeading(text []byte) (level int, heading string) {
	t := bytes.TrimLeft(text, " ")
	if len(text)-len(t) > 3 {
		return 0, ""
	}
	for level < len(t) && t[level] == '#' {
		level++
	}
	if level == 0 || level > 6 || level < len(t) && t[level] != ' ' && t[level] != '\t' && t[level] != '\n' && t[level] != '\r' {
		return 0, ""
	}
	h := strings.TrimSpace(string(t[level:min(len(t), level+4*maxHeadingBytes)]))
	if c := strings.TrimRight(h, "#"); c == "" || strings.HasSuffix(c, " ") {
		h = c
	}
	return level, CleanHeading(h)
}

func setext(text []byte) int {
	t := bytes.TrimRight(text, " \t\r\n")
	if len(t) < 2 || len(t) > maxHeadingBytes {
		return 0
	}
	for _, c := range t {
		if c != t[0] {
			return 0
		}
	}
	switch t[0] {
	case '=':
		return 1
	case '-':
		return 2
	}
	return 0
}

func canBeSetext(data []byte, prev Line, body int) bool {
	if prev.Blank || prev.Group != alone || prev.Structure || prev.Level > 0 || prev.Start < body || prev.End-prev.Start > maxHeadingBytes {
		return false
	}
	return !strings.ContainsRune("|>-*+`~<:", rune(bytes.TrimLeft(data[prev.Start:prev.End], " ")[0]))
}

// The expressions are compiled at their first use. Bounded repetitions take much memory, and
// the program also runs as processes that index nothing.
var (
	headingLink = Lazily(`!?\[([^\]]*)\]\([^)]*\)`)
	headingID   = Lazily(`\s*\{#[^}]*\}\s*$`)
	anyTag      = Lazily(`</?[a-zA-Z][^<>]{0,300}>`)
)

// Lazily returns a function that compiles a regular expression when it is first called.
func Lazily(expr string) func() *regexp.Regexp {
	return sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(expr) })
}

// CleanHeading returns a heading as a reader sees it: without explicit ids and the marks of
// emphasis and links.
func CleanHeading(h string) string {
	h = Clip(strings.ToValidUTF8(h, ""), 2*maxHeadingBytes)
	if strings.Contains(h, "{#") {
		h = headingID().ReplaceAllString(h, "")
	}
	if strings.Contains(h, "](") {
		h = headingLink().ReplaceAllString(h, "$1")
	}
	if strings.Contains(h, "`") {
		h = strings.ReplaceAll(h, "`", "") // a code span shows its text unchanged
	} else {
		if strings.Contains(h, "<") {
			h = anyTag().ReplaceAllString(h, "")
		}
		h = withoutEmphasis(h)
	}
	return Clip(strings.Join(strings.Fields(html.UnescapeString(h)), " "), maxHeadingBytes)
}

// withoutEmphasis removes every __ and every *.
func withoutEmphasis(h string) string {
	return strings.ReplaceAll(strings.ReplaceAll(h, "__", ""), "*", "")
}

// dropLinkTargets turns [text](target) into [text] if the target is on one line.
func dropLinkTargets(text string) string {
	if !strings.Contains(text, "](") {
		return text
	}
	var b strings.Builder
	b.Grow(len(text))
	for {
		i := strings.Index(text, "](")
		if i < 0 {
			b.WriteString(text)
			return b.String()
		}
		b.WriteString(text[:i+1])
		text = text[i+1:]
		if n := targetLen(text); n > 0 {
			b.WriteByte(' ')
			text = text[n:]
		} else {
			b.WriteByte('(')
			text = text[1:]
		}
	}
}

// targetLen returns the length of "(target)" at the start of text, or 0 if the parenthesis is
// not closed on the line.
func targetLen(text string) int {
	depth := 0
	for i := 0; i < len(text) && i < 2000; i++ {
		switch text[i] {
		case '\n':
			return 0
		case ']':
			if strings.HasPrefix(text[i:], "](") {
				return 0 // another link begins
			}
		case '(':
			depth++
		case ')':
			if depth--; depth == 0 {
				return i + 1
			}
		}
	}
	return 0
}
