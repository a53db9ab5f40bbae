package cli

import (
	"regexp"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"satchel/tools/index/evaluate"
)

// Limits of the excerpt of one result.
const (
	excerptLines = 6
	excerptRunes = 200 // characters of one line
)

// marker emphasises the words of a query in its results, if the output is a terminal.
type marker struct {
	on    bool
	words []string // in lower case
}

// qualifier matches a word that says where to search, not what to search for.
var qualifier = regexp.MustCompile(`^-?[a-z]+:`)

func newMarker(c *call, query string) marker {
	m := marker{on: c.Terminal && environ(c.Environ, "NO_COLOR") == "" && environ(c.Environ, "TERM") != "dumb"}
	for field := range strings.FieldsSeq(strings.ToLower(query)) {
		if strings.HasPrefix(field, "-") || qualifier.MatchString(field) {
			continue
		}
		for _, w := range strings.FieldsFunc(field, notOfWord) {
			if !slices.Contains(m.words, w) && len(m.words) < 100 {
				m.words = append(m.words, w)
			}
		}
	}
	return m
}

// environ returns the value of a variable. If env has the name twice, the last one counts.
func environ(env []string, name string) string {
	for _, kv := range slices.Backward(env) {
		if k, v, ok := strings.Cut(kv, "="); ok && k == name {
			return v
		}
	}
	return ""
}

func notOfWord(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsDigit(r) && r != '_' }

// matches reports whether a word of a page is a word of the query, or an identifier
// with at least two parts that are words of the query.
func (m marker) matches(word string) bool {
	if m.matchesPlain(word) {
		return true
	}
	parts := strings.Fields(evaluate.SplitIdentifier(word))
	found := 0
	for _, p := range parts {
		if m.matchesPlain(p) {
			found++
		}
	}
	return found >= 2
}

// matchesPlain reports whether a word is a word of the query, or another form of one. It compares
// the beginnings of words, because an answer of search does not say which word stems matched.
func (m marker) matchesPlain(word string) bool {
	word = strings.ToLower(word)
	for _, w := range m.words {
		switch {
		case word == w:
			return true
		case len(w) >= 3 && w[0] >= utf8.RuneSelf && strings.Contains(word, w):
			return true // some scripts have no spaces between words
		case min(len(w), len(word)) < 4:
			continue
		}
		long, short := word, w
		if len(long) < len(short) {
			long, short = short, long
		}
		stem := short
		if strings.HasSuffix(short, "e") || strings.HasSuffix(short, "y") {
			stem = short[:len(short)-1]
		}
		if strings.HasPrefix(long, stem) && len(long)-len(short) <= 4 {
			return true
		}
	}
	return false
}

// strong emphasises a text.
func (m marker) strong(s string) string {
	if !m.on || s == "" {
		return s
	}
	return "\x1b[1m" + s + "\x1b[0m"
}

// mark emphasises the words of a text that match.
func (m marker) mark(s string) string {
	if !m.on {
		return s
	}
	var b strings.Builder
	for len(s) > 0 {
		n := strings.IndexFunc(s, func(r rune) bool { return !notOfWord(r) })
		if n < 0 {
			n = len(s)
		}
		b.WriteString(s[:n])
		s = s[n:]
		if n = strings.IndexFunc(s, notOfWord); n < 0 {
			n = len(s)
		}
		if word := s[:n]; word != "" && m.matches(word) {
			b.WriteString("\x1b[1;33m" + word + "\x1b[0m")
		} else {
			b.WriteString(word)
		}
		s = s[n:]
	}
	return b.String()
}

// shownLine is a line of a page.
type shownLine struct {
	number int
	text   string
}

// excerpt returns at most excerptLines consecutive lines of a snippet: the lines that together
// have most of the query's words. A snippet may be a whole page. first is the number of the
// snippet's first line.
func (m marker) excerpt(snippet string, first int) []shownLine {
	var lines []shownLine
	var has []map[string]bool
	for i, text := range strings.Split(strings.TrimRight(snippet, "\n"), "\n") {
		words := map[string]bool{}
		for w := range strings.FieldsFuncSeq(text, notOfWord) {
			if m.matches(w) {
				words[strings.ToLower(w)] = true
			}
		}
		lines = append(lines, shownLine{first + i, clipped(oneLine(text))})
		has = append(has, words)
	}
	best, most := 0, 0
	for i := range lines {
		if len(has[i]) == 0 {
			continue
		}
		seen := map[string]bool{}
		for _, words := range has[i:min(i+excerptLines, len(lines))] {
			for w := range words {
				seen[w] = true
			}
		}
		if len(seen) > most {
			best, most = i, len(seen)
		}
	}
	lines = lines[best:min(best+excerptLines, len(lines))]
	for len(lines) > 0 && lines[len(lines)-1].text == "" {
		lines = lines[:len(lines)-1]
	}
	for len(lines) > 0 && lines[0].text == "" {
		lines = lines[1:]
	}
	return lines
}

// oneLine returns a text on one line, without the characters that could control
// a terminal.
func oneLine(s string) string {
	s = strings.Map(func(r rune) rune {
		switch {
		case r == '\t':
			return ' '
		case !unicode.IsPrint(r) || r == utf8.RuneError:
			return -1
		}
		return r
	}, s)
	return strings.TrimRight(s, " ")
}

func clipped(s string) string {
	if utf8.RuneCountInString(s) <= excerptRunes {
		return s
	}
	return string([]rune(s)[:excerptRunes]) + "…"
}
