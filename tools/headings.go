package tools

import (
	"satchel/internal/space"
	"slices"
	"strings"
	"unicode"

	"satchel/tools/index/parse"
)

// sections lists the headings in the first Limits.HeadingBytes of a file.
func (v view) sections(e space.Entry, b []byte) []parse.Section {
	return parse.Sections(string(e.Path), b[:min(len(b), v.s.o.Limits.HeadingBytes)])
}

// findSection finds a heading by its anchor or its words. If there is none, it compares
// only letters and digits, because programs create anchors in different ways.
func findSection(all []parse.Section, want string) (parse.Section, bool) {
	anchor := parse.Anchor(want)
	loose := func(s string) string { return strings.Map(letterOrDigit, strings.ToLower(s)) }
	for _, same := range []func(parse.Section) bool{
		func(s parse.Section) bool { return s.Anchor == want },
		func(s parse.Section) bool {
			return strings.EqualFold(s.Title, strings.TrimSpace(want)) || anchor != "" && s.Anchor == anchor
		},
		func(s parse.Section) bool { return loose(want) != "" && loose(s.Title) == loose(want) },
	} {
		if i := slices.IndexFunc(all, same); i >= 0 {
			return all[i], true
		}
	}
	return parse.Section{}, false
}

func letterOrDigit(r rune) rune {
	if unicode.IsLetter(r) || unicode.IsNumber(r) {
		return r
	}
	return -1
}
