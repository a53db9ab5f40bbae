package parse

import (
	"strconv"
	"strings"
	"unicode"
)

// Section is the part of a document under one heading.
type Section struct {
	Title string // as a reader sees it
	// Anchor names the heading within its document, as Hit.Anchor does. It may be empty if the
	// heading contains no letter.
	Anchor   string
	Level    int // 1 to 6
	From, To int // the first and the last line, counted from 1, including the sections below
}

// maxSections is how many headings Sections lists. No page that a person wrote has more, and
// the limit bounds the cost of other files.
const maxSections = 5000

// Sections lists the first 5,000 headings of a document, in order. The extension of the name
// determines the format: Markdown, HTML, reStructuredText, AsciiDoc, Org, notebooks, and the
// declarations of programs. Sections ignores front matter and code in pages. Hits name their
// headings by the same rules, so a hit's anchor is in this list.
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

// Title returns the title that search shows for a document: the title or the name in its front
// matter, or else its first heading of the first two levels, or else its file's name.
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

// Anchor returns the fragment by which GitHub and most documentation sites link to the first
// heading with this text: lower case, without punctuation, with hyphens for spaces.
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

// anchorer creates the anchors of a document's headings, in order. A repeated anchor gets the
// suffix -1, -2 and so on, as on GitHub.
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
