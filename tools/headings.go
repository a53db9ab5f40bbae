package tools

import (
	"satchel/internal/space"
	"slices"
	"strings"
	"unicode"

	"satchel/tools/index"
)

// sections lists the headings of a file, in as much of it as they are looked for.
func (v view) sections(e space.Entry, b []byte) []index.Section {
	return index.Sections(string(e.Path), b[:min(len(b), v.s.o.Limits.HeadingBytes)])
}

// findSection finds a heading by its anchor or its words; where there is none,
// by its letters and digits alone, since not everyone makes anchors alike.
func findSection(all []index.Section, want string) (index.Section, bool) {
	anchor := index.Anchor(want)
	loose := func(s string) string { return strings.Map(letterOrDigit, strings.ToLower(s)) }
	for _, same := range []func(index.Section) bool{
		func(s index.Section) bool { return s.Anchor == want },
		func(s index.Section) bool {
			return strings.EqualFold(s.Title, strings.TrimSpace(want)) || anchor != "" && s.Anchor == anchor
		},
		func(s index.Section) bool { return loose(want) != "" && loose(s.Title) == loose(want) },
	} {
		if i := slices.IndexFunc(all, same); i >= 0 {
			return all[i], true
		}
	}
	return index.Section{}, false
}

func letterOrDigit(r rune) rune {
	if unicode.IsLetter(r) || unicode.IsNumber(r) {
		return r
	}
	return -1
}
