package render

import (
	"html/template"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// class is the class of a token of source code, in the scanner and in the HTML.
type class byte

// The classes. text0 is for text, which has no class in the HTML.
const (
	text0   class = 0
	comment class = 'c'
	literal class = 's' // strings and characters
	number  class = 'n'
	keyword class = 'k'
	added   class = 'a'
	removed class = 'r'
)

// language describes the comments, strings, numbers and keywords of a language. Everything
// else is text.
type language struct {
	line   []string    // starts of comments up to the end of the line
	block  [][2]string // starts and ends of comments
	quotes []quote
	words  string // keywords, separated by spaces
	fold   bool   // keywords are case-insensitive
	ident  string // characters of words besides letters, digits and _
	keys   bool   // a word or a string before a colon is a keyword
	tags   bool   // the language has tags such as <a b="c">
	diff   bool   // the language is a diff, in which + or - begins a changed line
}

type quote struct {
	open, end string
	escape    bool // \ escapes the next character
	multi     bool // the text may contain line breaks
}

// Source highlights source code. The name of the file determines the language. Each line is
// an element of the class "line" with the id L1, L2, … and a link to itself. cut reports
// whether there are more lines than limit, or more text than a page may have. If there are
// too many tokens, only a part of the code is highlighted.
func Source(src, name string, limit int) (lines template.HTML, cut bool) {
	var b, out strings.Builder
	src, cut = fitting(src, maxEscaped)
	markup := maxMarkup
	writeCode(&b, src, languageOfFile(name), &markup)
	n := 0
	for line := range strings.Lines(b.String()) {
		if n++; n > limit {
			return template.HTML(out.String()), true //nolint:gosec // writeCode wrote it
		}
		id := "L" + strconv.Itoa(n)
		out.WriteString(`<span class="line" id="` + id + `"><a href="#` + id + `" tabindex="-1" aria-hidden="true"></a>` + line + `</span>`)
	}
	return template.HTML(out.String()), cut //nolint:gosec // writeCode wrote it
}

// escapeText escapes text between tags, where quotes need no escaping.
func escapeText(s string) string {
	if !strings.ContainsAny(s, "&<>") {
		return s
	}
	return strings.ReplaceAll(strings.ReplaceAll(strings.ReplaceAll(s, "&", "&amp;"), "<", "&lt;"), ">", "&gt;")
}

// fitting shortens src so that the escaped text has no more bytes than most. It reports whether
// it removed anything.
func fitting(src string, most int) (string, bool) {
	n := 0
	for i := range len(src) {
		switch src[i] {
		case '&':
			n += len("&amp;")
		case '<', '>':
			n += len("&lt;")
		default:
			n++
		}
		if n > most {
			return strings.ToValidUTF8(src[:i], ""), true
		}
	}
	return src, false
}

// writeCode writes source code with the classes of its tokens. Adjacent tokens of a class
// share an element, and no element spans lines. It subtracts the bytes of the tags from
// markup. When markup is used up, it writes no more tags.
func writeCode(out stringWriter, src string, l *language, markup *int) {
	const tags = len(`<span class="tx"></span>`)
	var open class
	set := func(c class) {
		if c == open {
			return
		}
		if open != text0 {
			_, _ = out.WriteString("</span>")
			open = text0
		}
		if c != text0 && *markup >= tags {
			*markup -= tags
			_, _ = out.WriteString(`<span class="t` + string(c) + `">`)
			open = c
		}
	}
	defer set(text0)
	emit := func(s string, c class) {
		for part := range strings.Lines(s) {
			line, end := strings.CutSuffix(part, "\n")
			line = strings.TrimSuffix(line, "\r")
			if line != "" {
				set(c)
				_, _ = out.WriteString(escapeText(line))
			}
			if end {
				set(text0)
				_, _ = out.WriteString("\n")
			}
		}
	}
	if l == nil {
		emit(src, text0)
		return
	}
	s := scanner{src: src, l: l, words: map[string]bool{}}
	for w := range strings.FieldsSeq(l.words) {
		s.words[w] = true
	}
	from, plain := 0, 0 // plain is the start of the unwritten text
	for from < len(src) {
		n, c := s.next(from)
		if c != text0 {
			emit(src[plain:from], text0)
			emit(src[from:from+n], c)
			plain = from + n
		}
		from += n
	}
	emit(src[plain:], text0)
}

// scanner splits source code into tokens. It searches for each missing end only once, so
// that its work is linear.
type scanner struct {
	src   string
	l     *language
	words map[string]bool
	none  []string // ends of comments that do not occur in the rest of src
	inTag bool
}

// next returns the length, at least 1, and the class of the token at a position.
func (s *scanner) next(at int) (int, class) {
	rest := s.src[at:]
	start := at == 0 || s.src[at-1] == '\n'
	if s.l.diff {
		return diffLine(rest)
	}
	for _, b := range s.l.block {
		if strings.HasPrefix(rest, b[0]) {
			return s.until(rest, len(b[0]), b[1]), comment
		}
	}
	for _, c := range s.l.line {
		// A # or ; begins a comment only at the start of a line or after a space, as in shells.
		if strings.HasPrefix(rest, c) && (c != "#" && c != ";" || start || unicode.IsSpace(rune(s.src[at-1]))) {
			return lineEnd(rest), comment
		}
	}
	if s.l.tags {
		return s.tag(rest)
	}
	for _, q := range s.l.quotes {
		// In a language with keys, such as YAML, a quote after a letter is an apostrophe.
		if strings.HasPrefix(rest, q.open) && !(s.l.keys && at > 0 && isByte(s.src[at-1])) {
			n := s.quoted(rest, q)
			if s.l.keys && strings.HasPrefix(strings.TrimLeft(rest[n:min(len(rest), n+8)], " \t"), ":") {
				return n, keyword
			}
			return n, literal
		}
	}
	r, size := utf8.DecodeRuneInString(rest)
	switch {
	case r >= '0' && r <= '9':
		n := 1
		for n < len(rest) && (isByte(rest[n]) || rest[n] == '.') {
			n++
		}
		return n, number
	case isWord(r) || strings.ContainsRune(s.l.ident, r):
		n := size
		for n < len(rest) {
			r, size := utf8.DecodeRuneInString(rest[n:])
			if !isWord(r) && !strings.ContainsRune(s.l.ident, r) {
				break
			}
			n += size
		}
		w := rest[:n]
		if s.l.fold {
			w = strings.ToLower(w)
		}
		if s.words[w] || s.l.keys && n < len(rest) && rest[n] == ':' {
			return n, keyword
		}
		return n, text0
	}
	return size, text0
}

func isWord(r rune) bool { return r == '_' || unicode.IsLetter(r) || unicode.IsDigit(r) }

// isByte reports whether an ASCII byte is part of a word; see isWord. It is false for other
// bytes.
func isByte(b byte) bool { return b < utf8.RuneSelf && isWord(rune(b)) }

func lineEnd(s string) int {
	if i := strings.IndexByte(s, '\n'); i >= 0 {
		return i
	}
	return len(s)
}

// until returns the length up to and including end. If there is no end, it returns the
// length of rest.
func (s *scanner) until(rest string, from int, end string) int {
	for _, n := range s.none {
		if n == end {
			return len(rest)
		}
	}
	if i := strings.Index(rest[from:], end); i >= 0 {
		return from + i + len(end)
	}
	s.none = append(s.none, end)
	return len(rest)
}

func (s *scanner) quoted(rest string, q quote) int {
	for i := len(q.open); i < len(rest); i++ {
		switch {
		case strings.HasPrefix(rest[i:], q.end):
			return i + len(q.end)
		case q.escape && rest[i] == '\\':
			i++
		case rest[i] == '\n' && !q.multi:
			return i
		}
	}
	return len(rest)
}

func diffLine(rest string) (int, class) {
	n := lineEnd(rest)
	switch {
	case n == 0:
		return 1, text0
	case rest[0] == '+':
		return n, added
	case rest[0] == '-':
		return n, removed
	case strings.HasPrefix(rest, "@@") || strings.HasPrefix(rest, "diff "):
		return n, keyword
	}
	return n, text0
}

// tag does the work of next for markup. It finds the names of elements and the values of
// their attributes.
func (s *scanner) tag(rest string) (int, class) {
	switch c := rest[0]; {
	case c == '<':
		s.inTag = true
		n := 1
		for n < len(rest) && (isByte(rest[n]) || strings.IndexByte("/!?:-", rest[n]) >= 0) {
			n++
		}
		if n == 1 {
			s.inTag = false
			return 1, text0
		}
		return n, keyword
	case !s.inTag:
		if i := strings.IndexByte(rest, '<'); i > 0 {
			return i, text0
		}
		return len(rest), text0
	case c == '>':
		s.inTag = false
		return 1, keyword
	case c == '"' || c == '\'':
		return s.quoted(rest, quote{open: rest[:1], end: rest[:1], multi: true}), literal
	}
	_, size := utf8.DecodeRuneInString(rest)
	return size, text0
}
