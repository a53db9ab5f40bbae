package libraries

import (
	"bytes"
	"regexp"
	"strings"

	"satchel/internal/frontmatter"
	"satchel/tools/index/parse"
)

// sentence is a sentence of a page's prose.
type sentence struct {
	text       string // the sentence as a reader sees it
	start, end int    // where the sentence begins and ends in the page, in bytes
	first      bool   // whether the sentence begins the first paragraph of its section
	section    parse.Section
}

// Expressions for a page's markup and for the ends of its sentences.
var (
	roles     = regexp.MustCompile(":[a-z:+-]+:`~?([^`<]*?)(?:\\s*<[^`>]*>)?`")
	targets   = regexp.MustCompile("`([^`<]+?)\\s*<[^`>]*>`_{0,2}")
	links     = regexp.MustCompile(`!?\[([^\]]*)\](?:\([^)]*\)|\{[^}]*\})`)
	tags      = regexp.MustCompile(`</?[A-Za-z][^<>]*>|\{/\*.*?\*/\}`)
	attribute = regexp.MustCompile(`\{[^{}]*\}`)
	spaces    = regexp.MustCompile(`\s+`)
	ends      = regexp.MustCompile("[.!?:][`*\"')]*(\\s|$)")
	shortened = regexp.MustCompile(`(?:e\.g|i\.e|etc|vs|cf|\b\d{1,2})\.\s?$`)
)

// plain returns a text without markup.
func plain(text string) string {
	text = roles.ReplaceAllString(text, "$1")
	text = targets.ReplaceAllString(text, "$1")
	text = links.ReplaceAllString(text, "$1")
	text = tags.ReplaceAllString(text, " ")
	text = attribute.ReplaceAllString(text, " ")
	text = strings.NewReplacer("`", "", "**", "", "__", "", "“", "", "”", "").Replace(text)
	return strings.TrimSpace(spaces.ReplaceAllString(text, " "))
}

// sentences returns the sentences of a page's paragraphs. Lists, tables, quotes, code and
// components are not prose.
func sentences(name string, page []byte) (all []sentence) {
	sections := parse.Sections(name, page)
	body := len(page) - len(frontmatter.ParseLoosely(page).Body)
	rst := strings.HasSuffix(name, ".rst")
	var fence parse.FenceState
	from := -1 // the start of the open paragraph
	at, number, firstLine := 0, 0, 0
	begun := map[int]bool{} // by the first line of a section: whether a paragraph of it was read
	closeAt := func(end int) {
		if from < 0 {
			return
		}
		in := parse.Section{To: 1 << 30}
		for _, s := range sections { // the innermost section is the last that contains the line
			if s.From <= firstLine && firstLine <= s.To {
				in = s
			}
		}
		first := !begun[in.From]
		begun[in.From] = true
		for start := from; start < end; {
			stop := start
			for stop < end {
				m := ends.FindIndex(page[stop:end])
				if m == nil {
					stop = end
					break
				}
				stop += m[1]
				if !shortened.Match(page[start:stop]) {
					break
				}
			}
			if text := plain(string(page[start:stop])); text != "" {
				all = append(all, sentence{text: text, start: start, end: stop, first: first, section: in})
				first = false
			}
			start = stop
		}
		from = -1
	}
	for line := range bytes.Lines(page) {
		number++
		start := at
		at += len(line)
		if start < body {
			continue
		}
		if fence.Open() {
			fence.Close(line)
			continue
		}
		if !rst && fence.Start(line) {
			closeAt(start)
			continue
		}
		text := bytes.TrimRight(line, " \t\r\n")
		if len(text) == 0 || !prose(text, from >= 0) {
			closeAt(start)
			continue
		}
		if from < 0 {
			from, firstLine = start, number
		}
		if rst && bytes.HasSuffix(text, []byte("::")) {
			closeAt(at)
		}
	}
	closeAt(len(page))
	return all
}

// prose reports whether a line is part of a paragraph. within reports whether the line before it
// is part of one.
func prose(line []byte, within bool) bool {
	if c := line[0]; c == ' ' || c == '\t' || strings.IndexByte("#|>-=~^+{}<:.@\"", c) >= 0 {
		return false
	}
	s := string(line)
	if strings.HasPrefix(s, "import ") || strings.HasPrefix(s, "export ") || strings.HasPrefix(s, "* ") {
		return false
	}
	if digits := strings.TrimLeft(s, "0123456789"); !within && digits != s && strings.HasPrefix(digits, ".") {
		return false
	}
	return true
}

// without returns a page without some of its sentences. The lines keep their numbers.
func without(page []byte, cut []sentence) []byte {
	out := make([]byte, 0, len(page))
	at := 0
	for _, s := range cut { // sorted by start
		out = append(out, page[at:s.start]...)
		out = append(out, bytes.Repeat([]byte("\n"), bytes.Count(page[s.start:s.end], []byte("\n")))...)
		at = s.end
	}
	return append(out, page[at:]...)
}
