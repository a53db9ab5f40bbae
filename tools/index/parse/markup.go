package parse

import (
	"bytes"
	"path"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// markupLines marks the headings and blocks of reStructuredText, AsciiDoc and
// Org.
func markupLines(name string, data []byte, body int) []Line {
	lines := PlainLines(data)
	from := 0
	for from < len(lines) && lines[from].End <= body {
		lines[from].Structure = true
		if from > 0 {
			lines[from].Group = inBlock
		}
		from++
	}
	text := func(i int) string {
		return strings.TrimRight(string(data[lines[i].Start:min(lines[i].End, lines[i].Start+4*maxHeadingBytes)]), " \t\r\n")
	}
	switch strings.ToLower(path.Ext(name)) {
	case ".rst":
		restructuredHeadings(lines, from, text)
	case ".org":
		prefixedHeadings(lines, from, text, '*', func(s string) string {
			switch low := strings.ToLower(strings.TrimSpace(s)); {
			case strings.HasPrefix(low, "#+begin_"):
				return "#+end_" + strings.Fields(low[len("#+begin_"):] + " x")[0]
			}
			return ""
		})
	default:
		prefixedHeadings(lines, from, text, '=', func(s string) string {
			if len(s) >= 4 && strings.IndexByte("-.+/", s[0]) >= 0 && strings.Trim(s, s[:1]) == "" {
				return s
			}
			return ""
		})
	}
	return lines
}

// prefixedHeadings marks headings such as "== Part" and "** Part". opens returns the line that
// ends the block which a line begins, or "" if the line begins no block.
func prefixedHeadings(lines []Line, from int, text func(int) string, mark byte, opens func(string) string) {
	end, first := "", 0
	for i := from; i < len(lines); i++ {
		s := text(i)
		if end != "" {
			lines[i].Group, lines[i].First = InFence, first
			if strings.EqualFold(strings.TrimSpace(s), end) {
				end = ""
			}
			continue
		}
		if end = opens(s); end != "" {
			first = i
			continue
		}
		n := 0
		for n < len(s) && s[n] == mark {
			n++
		}
		if n > 0 && n <= 6 && n < len(s) && s[n] == ' ' {
			lines[i].Level, lines[i].Heading = n, CleanHeading(s[n:])
		} else if t, ok := strings.CutPrefix(s, "#+TITLE:"); ok {
			lines[i].Level, lines[i].Heading = 1, CleanHeading(t)
		}
	}
}

// restructuredHeadings marks titles that have a line of marks below them, or below and above. The
// level of a title depends on the order in which its kind of line first appears.
func restructuredHeadings(lines []Line, from int, text func(int) string) {
	var levels []string
	adorn := func(i int) byte {
		if i < from || i >= len(lines) {
			return 0
		}
		s := text(i)
		if len(s) < 2 || !strings.ContainsRune("=-~^\"'`*+#<>:._!$%&,/;?@\\|", rune(s[0])) || strings.Trim(s, s[:1]) != "" {
			return 0
		}
		return s[0]
	}
	for i := from + 1; i < len(lines); i++ {
		c := adorn(i)
		title := text(i - 1)
		if c == 0 || title == "" || adorn(i-1) != 0 || title[0] == ' ' && adorn(i-2) != c || utf8.RuneCountInString(title) > len(text(i))+2 {
			continue
		}
		if i >= 2 && i-2 >= from && !lines[i-2].Blank && adorn(i-2) != c {
			continue // the last line of a paragraph or of a table
		}
		kind := string(c)
		at := i - 1
		if adorn(i-2) == c {
			kind += "over"
			at = i - 2
			lines[i-1].Structure = true
		}
		level := slices.Index(levels, kind)
		if level < 0 {
			level = len(levels)
			levels = append(levels, kind)
		}
		lines[at].Level, lines[at].Heading = min(level+1, 6), CleanHeading(strings.TrimSpace(title))
		lines[i].Structure = true
	}
}

// tableLines marks the rows of CSV as one table under its first line.
func tableLines(data []byte) []Line {
	lines := PlainLines(data)
	for i := 1; i < len(lines); i++ {
		lines[i].Group = InTable
	}
	return lines
}

// spoken removes the header of subtitles, and the numbers, times and tags of their cues.
func spoken(text string) string {
	var b strings.Builder
	b.Grow(len(text))
	for l := range strings.Lines(text) {
		t := strings.TrimSpace(l)
		if t == "WEBVTT" || CueTime(t) != "" || t != "" && strings.Trim(t, "0123456789") == "" {
			b.WriteByte('\n')
			continue
		}
		b.WriteString(anyTag().ReplaceAllString(l, ""))
	}
	return b.String()
}

// CueTime returns the time at which a cue begins, as 1:02:03, or "" if the line contains no
// times.
func CueTime(l string) string {
	from, _, ok := strings.Cut(l, "-->")
	from = strings.TrimSpace(from)
	if !ok || len(from) < len("0:00") || len(from) > 20 || !IsDigit(from[0]) {
		return ""
	}
	t, _, _ := strings.Cut(from, ".")
	t, _, _ = strings.Cut(t, ",")
	if strings.Trim(t, "0123456789:") != "" {
		return ""
	}
	if s := strings.TrimLeft(t, "0:"); len(s) < len("0:00") { // under ten minutes: keep at least 0:00
		return t[max(0, len(t)-len("0:00")):]
	}
	return strings.TrimLeft(t, "0:")
}

// sourceLines marks the declarations of a program that begin a line or belong to a class:
// functions, types, classes. A comment directly above a declaration belongs to it.
func sourceLines(name string, data []byte) []Line {
	lines := PlainLines(data)
	python := strings.EqualFold(path.Ext(name), ".py")
	for i := range lines {
		l := &lines[i]
		if l.Blank {
			continue
		}
		text := data[l.Start:min(l.End, l.Start+maxHeadingBytes)]
		indent := len(text) - len(bytes.TrimLeft(text, " \t"))
		declared := declaration(string(text[indent:]))
		if declared == "" || indent > 8 || indent > 0 && !python && !classMember(lines[:i], data, indent) {
			continue
		}
		at := i
		for at > 0 && i-at < 100 && lines[at-1].Level == 0 && aboutNext(data[lines[at-1].Start:lines[at-1].End], indent) {
			at--
		}
		lines[at].Level, lines[at].Heading = min(2+(indent+3)/4, 6), declared
	}
	return lines
}

// classMember reports whether an indented declaration belongs to an unindented one. A function
// inside a function is not a section.
func classMember(above []Line, data []byte, indent int) bool {
	for i := len(above) - 1; i >= 0 && len(above)-i < 200; i-- {
		l := above[i]
		if l.Blank {
			continue
		}
		text := data[l.Start:min(l.End, l.Start+maxHeadingBytes)]
		if n := len(text) - len(bytes.TrimLeft(text, " \t")); n < indent {
			if c := text[n]; c == '{' || c == '}' || c == ')' {
				continue
			}
			for _, w := range bytes.Fields(text) {
				switch string(w) {
				case "class", "interface", "struct", "trait", "impl", "module", "namespace", "object", "enum", "extension", "protocol", "record":
					return true
				}
			}
			return false
		}
	}
	return false
}

// aboutNext reports whether a line is a comment or a decorator of the next declaration.
func aboutNext(text []byte, indent int) bool {
	t := bytes.TrimLeft(text, " \t")
	if len(text)-len(t) < indent || len(bytes.TrimSpace(t)) == 0 {
		return false
	}
	for _, p := range []string{"//", "#", "/*", "*", "--", ";;", "@", "'''", "\"\"\""} {
		if bytes.HasPrefix(t, []byte(p)) {
			return !bytes.HasPrefix(t, []byte("#include")) && !bytes.HasPrefix(t, []byte("#!")) && !bytes.HasPrefix(t, []byte("#define"))
		}
	}
	return false
}

// declarers are words that declare something. Modifiers may precede them. The words are from
// many programming languages.
var (
	modifiers = set(`pub public private protected internal static final abstract async export default declare virtual override inline unsafe
		extern sealed partial open data suspend local readonly const pub(crate) constexpr`)
	declarers = set(`func function fn def fun class interface struct enum trait impl module namespace type object protocol extension sub record macro_rules! defmodule defp function*`)
)

func set(words string) map[string]bool {
	m := map[string]bool{}
	for w := range strings.FieldsSeq(words) {
		m[w] = true
	}
	return m
}

// declaration returns the name that a line of a program declares, or "" if it declares none.
func declaration(s string) string {
	exported := false
	for range 6 {
		w, rest, ok := strings.Cut(s, " ")
		if !ok {
			return ""
		}
		rest = strings.TrimLeft(rest, " ")
		switch {
		case declarers[w]:
			if w == "func" && strings.HasPrefix(rest, "(") { // a Go method
				if _, after, ok := strings.Cut(rest, ") "); ok {
					rest = after
				}
			}
			name := nameAt(rest)
			if after := strings.TrimLeft(rest[len(name):], " "); w == "type" && (after == "" || strings.HasPrefix(after, ":")) {
				return "" // "type: x" is data
			}
			return name
		case exported && (w == "const" || w == "let" || w == "var"):
			return nameAt(rest)
		case modifiers[w]:
			exported = exported || w == "export"
			s = rest
			if exported && w == "const" {
				return nameAt(rest)
			}
		default:
			return ""
		}
	}
	return ""
}

// nameAt returns the name at the start of s.
func nameAt(s string) string {
	end := strings.IndexFunc(s, func(r rune) bool { return r != '_' && r != '$' && !unicode.IsLetter(r) && !unicode.IsDigit(r) })
	if end < 0 {
		end = len(s)
	}
	return s[:min(end, maxHeadingBytes)]
}
