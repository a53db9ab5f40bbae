package parse

import (
	"html"
	"strings"
)

// shownAttributes are the attributes of components whose values a reader sees.
var shownAttributes = set("title label alt placeholder heading caption summary description text aria-label")

// maxStatement is how many lines an import or export of a page may have.
const maxStatement = 100

// readableMarkdown returns what a reader sees of Markdown and MDX, without the targets of
// links. It removes imports and exports, the tags of components except the attributes that
// are shown, comments of JSX, and the marks and attributes of directives. Code stays
// unchanged.
func readableMarkdown(text string) string {
	if !strings.ContainsAny(text, "<{") && !strings.Contains(text, "::") && !strings.Contains(text, "import ") && !strings.Contains(text, "export ") {
		return dropLinkTargets(text)
	}
	var out, part strings.Builder
	out.Grow(len(text))
	// flush adds the lines outside of code that were read so far.
	flush := func() {
		out.WriteString(dropLinkTargets(dropComponents(part.String())))
		part.Reset()
	}
	var fence FenceState
	statement := 0 // how many more lines the open import or export may have; 0: none is open
	depth := 0     // the open brackets of the import or export
	for l := range strings.Lines(text) {
		if fence.Open() {
			out.WriteString(l)
			fence.Close([]byte(l))
			continue
		}
		if statement > 0 {
			statement--
			depth += brackets(l)
			if depth <= 0 {
				statement = 0
			}
			part.WriteByte('\n')
			continue
		}
		if strings.IndexByte(l, '`') >= 0 || strings.IndexByte(l, '~') >= 0 {
			if fence.Start([]byte(l)) {
				flush()
				out.WriteString(l)
				continue
			}
		}
		switch {
		case isStatement(l):
			if depth = brackets(l); depth > 0 {
				statement = maxStatement
			}
			part.WriteByte('\n')
		default:
			part.WriteString(directive(l))
		}
	}
	flush()
	return out.String()
}

// isStatement reports whether a line begins an import or export of MDX. A sentence can begin with
// the same words, but it does not continue like a statement, for example with "from" or a brace.
func isStatement(l string) bool {
	if rest, ok := strings.CutPrefix(l, "import "); ok {
		return strings.Contains(rest, " from ") || strings.HasPrefix(rest, "{") || strings.HasPrefix(rest, "'") || strings.HasPrefix(rest, "\"") || strings.HasPrefix(rest, "* as ")
	}
	if rest, ok := strings.CutPrefix(l, "export "); ok {
		w, _, _ := strings.Cut(rest, " ")
		switch w {
		case "const", "let", "var", "function", "async":
			return strings.ContainsAny(rest, "=({")
		case "{", "*":
			return true
		case "default":
			return strings.ContainsAny(rest, "({;")
		}
	}
	return false
}

// brackets returns how many more brackets a line opens than closes.
func brackets(l string) (n int) {
	for i := range len(l) {
		switch l[i] {
		case '{', '(', '[':
			n++
		case '}', ')', ']':
			n--
		}
	}
	return n
}

// directive returns a line without the mark of a directive, its name and its attributes:
// ":::tip[Title]" is "Title".
func directive(l string) string {
	t := strings.TrimLeft(l, " \t")
	if !strings.HasPrefix(t, "::") {
		return l
	}
	t = strings.TrimLeft(t, ":")
	t = t[len(nameAt(strings.ReplaceAll(t, "-", "_"))):]
	label := ""
	if rest, ok := strings.CutPrefix(t, "["); ok {
		label, t, _ = strings.Cut(rest, "]")
	}
	if strings.HasPrefix(t, "{") {
		_, t, _ = strings.Cut(t, "}")
	}
	return strings.TrimSpace(label+" "+t) + "\n"
}

// dropComponents removes the tags and comments of JSX outside of code spans, and attributes in
// braces.
func dropComponents(text string) string {
	if !strings.ContainsAny(text, "<{") {
		return text
	}
	var b strings.Builder
	b.Grow(len(text))
	from := 0 // the text before from has been written
	drop := func(i, n int, shown string) {
		b.WriteString(text[from:i])
		b.WriteByte(' ')
		b.WriteString(shown)
		for range strings.Count(text[i:i+n], "\n") {
			b.WriteByte('\n')
		}
		from = i + n
	}
	comments := true // the rest of the text may contain the end of a comment
	for i := 0; i < len(text); {
		k := strings.IndexAny(text[i:], "<{`")
		if k < 0 {
			break
		}
		i += k
		switch text[i] {
		case '`':
			i += codeSpan(text[i:])
			continue
		case '{':
			if comments && strings.HasPrefix(text[i:], "{/*") {
				n := strings.Index(text[i:], "*/}")
				if n >= 0 {
					drop(i, n+3, "")
					i = from
					continue
				}
				comments = false
			}
			// The attributes of a link, an image or a code span.
			if i > 0 && strings.IndexByte("`)]", text[i-1]) >= 0 {
				if n := strings.IndexAny(text[i:], "}\n"); n > 0 && text[i+n] == '}' {
					drop(i, n+1, "")
					i = from
					continue
				}
			}
		case '<':
			if n, shown := component(text[i:min(len(text), i+maxTag)]); n > 0 && !isComparison(text, i, n) {
				drop(i, n, shown)
				i = from
				continue
			}
		}
		i++
	}
	b.WriteString(text[from:])
	return b.String()
}

// isComparison reports whether what looks like a tag of n bytes at byte i is a less-than sign
// between two words, and a greater-than sign further on: "a<b and c > d".
func isComparison(text string, i, n int) bool {
	tag := text[i : i+n]
	return i > 0 && IsWordByte(text[i-1]) && tag[1] != '/' && strings.Contains(tag, " ") && !strings.ContainsAny(tag, "=/{")
}

// codeSpan returns the length of the code span at the start of text, or of its backticks if
// the span does not end on the line.
func codeSpan(text string) int {
	n := 0
	for n < len(text) && text[n] == '`' {
		n++
	}
	line := text[n:]
	if i := strings.IndexByte(line, '\n'); i >= 0 {
		line = line[:i]
	}
	if i := strings.Index(line, text[:n]); i >= 0 {
		return n + i + n
	}
	return n
}

// component returns the length of the tag at the start of text and the attributes of the tag
// that a reader sees. The length is 0 if there is no tag.
func component(text string) (n int, shown string) {
	i := 1
	if i < len(text) && text[i] == '/' {
		i++
	}
	if i >= len(text) || text[i] != '>' && !IsWordByte(text[i]) {
		return 0, ""
	}
	for i < len(text) && (IsWordByte(text[i]) || strings.IndexByte("-_.:", text[i]) >= 0) {
		i++
	}
	if i >= len(text) || strings.IndexByte(" \t\r\n/>", text[i]) < 0 || text[i-1] == ':' {
		return 0, "" // a less-than sign or an address
	}
	var values []string
	for i < len(text) {
		switch c := text[i]; {
		case c == '>':
			return i + 1, strings.Join(values, ". ")
		case c == '<':
			return 0, ""
		case c == '{':
			end := braced(text[i:])
			if end == 0 {
				return 0, ""
			}
			i += end
		case c == '"' || c == '\'':
			end := strings.IndexByte(text[i+1:], c)
			if end < 0 {
				return 0, ""
			}
			name := text[:i]
			if eq := strings.TrimSuffix(name, "="); eq != name && shownAttributes[strings.TrimPrefix(eq[strings.LastIndexAny(eq, " \t\n")+1:], ":")] {
				values = append(values, html.UnescapeString(text[i+1:i+1+end]))
			}
			i += end + 2
		default:
			i++
		}
	}
	return 0, ""
}

// braced returns the length of the expression in braces at the start of text, or 0 if it does
// not end.
func braced(text string) int {
	depth := 0
	for i := range len(text) {
		switch text[i] {
		case '{':
			depth++
		case '}':
			if depth--; depth == 0 {
				return i + 1
			}
		}
	}
	return 0
}

// readableSource returns a component or a program with JSX without its imports and without the
// attributes and styles that only the browser sees.
func readableSource(f FileFormat, text string) string {
	var b strings.Builder
	b.Grow(len(text))
	statement, style := 0, false
	for l := range strings.Lines(text) {
		t := strings.TrimSpace(l)
		switch {
		case style:
			style = !strings.Contains(t, "</style>")
			b.WriteByte('\n')
		case statement > 0:
			statement--
			if strings.Contains(t, " from ") || strings.HasPrefix(t, "from ") || strings.HasSuffix(t, ";") {
				statement = 0
			}
			b.WriteByte('\n')
		case strings.HasPrefix(t, "import ") && isStatement(t):
			if !strings.Contains(t, " from ") && strings.HasSuffix(t, "{") {
				statement = maxStatement
			}
			b.WriteByte('\n')
		case f == formatComponent && strings.HasPrefix(t, "<style"):
			style = !strings.Contains(t, "</style>")
			b.WriteByte('\n')
		default:
			b.WriteString(l)
		}
	}
	return dropComponents(b.String())
}
