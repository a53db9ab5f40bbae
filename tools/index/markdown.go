package index

import (
	"bytes"
	"html"
	"regexp"
	"strings"
	"sync"
)

const maxHeadingBytes = 300

// markdownLines marks the headings, code fences and tables of Markdown and MDX.
// The body begins at byte body; what is before it is front matter.
func markdownLines(data []byte, body int) []line {
	var lines []line
	var fence fenceState
	table := false
	eachLine(data, func(start, end int) {
		text := data[start:end]
		l := line{start: start, end: end, blank: len(bytes.TrimSpace(text)) == 0}
		switch {
		case end <= body:
			l.whole = start > 0
		case fence.open():
			l.whole = true
			fence.close(text)
		case fence.start(text):
			table = false
		default:
			isRow := bytes.HasPrefix(bytes.TrimLeft(text, " "), []byte("|"))
			// A table is cut only where it has grown beyond a chunk, and
			// cutChunks cuts at any row then.
			l.whole = isRow && table && end-lines[len(lines)-1].start < chunkTarget && shortTable(lines, start)
			table = isRow
			if level, h := atxHeading(text); level > 0 {
				l.level, l.heading = level, h
			} else if level := setext(text); level > 0 && len(lines) > 0 {
				if prev := &lines[len(lines)-1]; canBeSetext(data, *prev, body) {
					prev.level, prev.heading = level, cleanHeading(string(data[prev.start:prev.end]))
				}
			}
		}
		lines = append(lines, l)
	})
	return lines
}

// shortTable tells whether the unbroken lines before byte at are few.
func shortTable(lines []line, at int) bool {
	for i := len(lines) - 1; i >= 0; i-- {
		if at-lines[i].start > chunkTarget {
			return false
		}
		if !lines[i].whole {
			return true
		}
	}
	return true
}

// fenceState follows fenced code blocks (CommonMark 4.5).
type fenceState struct {
	char byte // 0: none is open
	n    int
}

func (f *fenceState) open() bool { return f.char != 0 }

func (f *fenceState) start(text []byte) bool {
	t := bytes.TrimLeft(text, " \t")
	for _, c := range []byte("`~") {
		n := 0
		for n < len(t) && t[n] == c {
			n++
		}
		if n >= 3 && (c == '~' || bytes.IndexByte(t[n:], '`') < 0) {
			f.char, f.n = c, n
			return true
		}
	}
	return false
}

func (f *fenceState) close(text []byte) {
	t := bytes.TrimSpace(text)
	for _, c := range t {
		if c != f.char {
			return
		}
	}
	if len(t) >= f.n {
		*f = fenceState{}
	}
}

// atxHeading reads "## Heading ##"; level is 0 where the line is none.
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
	return level, cleanHeading(h)
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

func canBeSetext(data []byte, prev line, body int) bool {
	if prev.blank || prev.whole || prev.level > 0 || prev.start < body || prev.end-prev.start > maxHeadingBytes {
		return false
	}
	return !strings.ContainsRune("|>-*+`~<:", rune(bytes.TrimLeft(data[prev.start:prev.end], " ")[0]))
}

// The expressions are compiled when they are first needed: bounded repetitions
// take much memory, and the program also starts as other processes than the
// server, which index nothing.
var (
	headingLink = lazily(`!?\[([^\]]*)\]\([^)]*\)`)
	headingID   = lazily(`\s*\{#[^}]*\}\s*$`)
	anyTag      = lazily(`</?[a-zA-Z][^<>]{0,300}>`)
	htmlHeading = lazily(`(?i)<h([1-6])(?:\s[^<>]{0,300})?>(.{0,1000}?)</h[1-6]\s*>`)
	htmlTitle   = lazily(`(?i)<title(?:\s[^<>]{0,300})?>(.{0,1000}?)</title\s*>`)
)

func lazily(expr string) func() *regexp.Regexp {
	return sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(expr) })
}

// cleanHeading returns a heading as a reader sees it: without marks of
// emphasis, links and explicit ids.
func cleanHeading(h string) string {
	h = clip(strings.ToValidUTF8(h, ""), 2*maxHeadingBytes)
	h = headingID().ReplaceAllString(h, "")
	h = headingLink().ReplaceAllString(h, "$1")
	if strings.ContainsRune(h, '`') {
		h = strings.ReplaceAll(h, "`", "") // what is in a code span is as it is
	} else {
		h = anyTag().ReplaceAllString(h, "")
		h = strings.NewReplacer("**", "", "__", "", "*", "").Replace(h)
	}
	return clip(strings.Join(strings.Fields(html.UnescapeString(h)), " "), maxHeadingBytes)
}

// htmlLines marks the headings of HTML that begin and end on one line.
func htmlLines(data []byte) []line {
	lines := plainLines(data)
	for i := range lines {
		l := &lines[i]
		text := data[l.start:min(l.end, l.start+chunkSplit)]
		if m := htmlHeading().FindSubmatch(text); m != nil {
			l.level, l.heading = int(m[1][0]-'0'), cleanHeading(string(m[2]))
		} else if m := htmlTitle().FindSubmatch(text); m != nil {
			l.level, l.heading = 1, cleanHeading(string(m[1]))
		}
	}
	return lines
}

// indexable returns the part of a chunk's text that is worth indexing: targets
// of links, imports of MDX and the marks of HTML only blur what a page is about.
func indexable(f fileFormat, text string) string {
	switch f {
	case formatMarkdown:
		return dropImports(dropLinkTargets(text))
	case formatHTML:
		return dropTags(text)
	}
	return text
}

// dropLinkTargets turns [text](target) into [text] where the target is on one
// line.
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

// targetLen returns the length of "(target)" at the start of text, 0 where it
// is not closed on the line.
func targetLen(text string) int {
	depth := 0
	for i := 0; i < len(text) && i < 2000; i++ {
		switch text[i] {
		case '\n':
			return 0
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

func dropImports(text string) string {
	if !strings.HasPrefix(text, "import ") && !strings.Contains(text, "\nimport ") {
		return text
	}
	var b strings.Builder
	for l := range strings.Lines(text) {
		if !strings.HasPrefix(l, "import ") || !strings.Contains(l, " from ") {
			b.WriteString(l)
		}
	}
	return b.String()
}

// dropTags removes the tags, comments, scripts and styles of HTML and resolves
// its entities.
func dropTags(text string) string {
	var b strings.Builder
	b.Grow(len(text))
	for {
		i := strings.IndexByte(text, '<')
		if i < 0 || i+1 == len(text) {
			b.WriteString(text)
			break
		}
		b.WriteString(text[:i])
		text = text[i:]
		end := ">"
		switch low := strings.ToLower(clip(text, 8)); {
		case strings.HasPrefix(text, "<!--"):
			end = "-->"
		case strings.HasPrefix(low, "<script"):
			end = "</script>"
		case strings.HasPrefix(low, "<style"):
			end = "</style>"
		case text[1] != '/' && text[1] != '!' && !isWordByte(text[1]):
			end = "<" // a bare less-than sign
		}
		n := strings.Index(text, end) + len(end)
		if n < len(end) { // never closed: it is text
			n = 1
		} else if end == "<" {
			n = 1
		}
		b.WriteByte(' ')
		text = text[n:]
	}
	return html.UnescapeString(b.String())
}
