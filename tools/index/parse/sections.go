package parse

import (
	"strconv"
	"strings"
	"unicode"
)

// Section is a part of a document under one heading.
type Section struct {
	Title string // as a reader sees it
	// Anchor names the heading within its document, as Hit.Anchor does; it may
	// be empty if the heading has no letter.
	Anchor   string
	Level    int // 1 to 6
	From, To int // lines from 1, To included, with the sections under it
}

// maxSections is how many headings Sections lists: more than any page that a
// person wrote, and few enough that no file can make it costly.
const maxSections = 5000

// Sections lists the first 5,000 headings of a document, in order, by the
// extension of its name: of Markdown, HTML, reStructuredText, AsciiDoc, Org and
// notebooks, outside of front matter and code, and what programs declare. Hits
// name their headings by the same rules, so that a hit's anchor is found here.
func Sections(name string, text []byte) []Section {
	lines := ParseLines(name, text, 0)
	var all []Section
	var open []int // the sections that the next heading may end, by index
	anchors := anchorer{}
	for _, l := range lines {
		if l.Level == 0 {
			continue
		}
		if len(all) == maxSections {
			break
		}
		for len(open) > 0 && all[open[len(open)-1]].Level >= l.Level {
			all[open[len(open)-1]].To = max(l.Number-1, all[open[len(open)-1]].From)
			open = open[:len(open)-1]
		}
		open = append(open, len(all))
		all = append(all, Section{Title: l.Heading, Anchor: anchors.next(l.Heading), Level: l.Level, From: l.Number, To: lines[len(lines)-1].Number})
	}
	return all
}

// Title is what search calls a document: the title or the name of its front
// matter, its first heading of the first two levels, or its file's name.
func Title(name string, text []byte) string {
	if isBinary(text) {
		text = nil
	}
	fm, lines := ReadPage(name, text)
	if fm.Title != "" {
		return fm.Title
	}
	return titleOf(name, lines)
}

// Anchor returns the fragment by which GitHub and most documentation sites link
// to a heading, the first of its text in a document: lower case, punctuation
// dropped, spaces to hyphens.
func Anchor(heading string) string {
	var b strings.Builder
	for _, r := range strings.ToLower(heading) {
		switch {
		case unicode.IsLetter(r), unicode.IsDigit(r), unicode.IsMark(r), unicode.Is(unicode.Pc, r), r == '-':
			b.WriteRune(r)
		case r == ' ' || r == '\t':
			b.WriteByte('-')
		}
	}
	return b.String()
}

// anchorer creates the anchors of a document's headings, in order. A repeated anchor gets
// the suffix -1, -2, …, as on GitHub.
type anchorer map[string]int

func (seen anchorer) next(heading string) string {
	plain := Anchor(heading)
	anchor := plain
	for {
		if _, taken := seen[anchor]; !taken {
			seen[anchor] = 0
			return anchor
		}
		seen[plain]++
		anchor = plain + "-" + strconv.Itoa(seen[plain])
	}
}
