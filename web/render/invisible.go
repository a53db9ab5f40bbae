package render

import (
	"fmt"
	"strings"
	"unicode"
)

// visible escapes a line and writes what nobody would see of it, or would see
// elsewhere than it is, by its number: control and format characters, such as those
// that turn the direction of writing, tags and variation selectors, letters without
// a shape, and spaces other than the space.
func visible(line string) string {
	if strings.IndexFunc(line, odd) < 0 {
		return escapeText(line)
	}
	var b strings.Builder
	from := 0
	for i, r := range line {
		if !odd(r) {
			continue
		}
		b.WriteString(escapeText(line[from:i]))
		fmt.Fprintf(&b, `<span class="odd">⟨U+%04X⟩</span>`, r)
		from = i + len(string(r))
	}
	b.WriteString(escapeText(line[from:]))
	return b.String()
}

// Visible is a text without marks in which the same is written by its number, for
// where the page escapes it.
func Visible(text string) string {
	var b strings.Builder
	for _, r := range text {
		if odd(r) {
			fmt.Fprintf(&b, "⟨U+%04X⟩", r)
		} else {
			b.WriteRune(r)
		}
	}
	return b.String()
}

// Odd reports whether a character of a line of text is one that Visible writes by its
// number.
func Odd(r rune) bool { return odd(r) }

// odd reports whether a character of a line of text is not to be seen as one. What
// Unicode calls default ignorable (DerivedCoreProperties.txt) is among them.
func odd(r rune) bool {
	switch {
	case r == '\t' || r >= ' ' && r < 0x7F:
		return false
	case unicode.In(r, unicode.Cc, unicode.Cf, unicode.Co, unicode.Zl, unicode.Zp, unicode.Zs, unicode.Variation_Selector, unicode.Other_Default_Ignorable_Code_Point, unicode.Noncharacter_Code_Point):
		return true
	case r == 0x2800, r == 0x1D159, r >= 0x1D173 && r <= 0x1D17A, r >= 0xE0000 && r <= 0xE0FFF:
		return true
	}
	return r > 0x7F && !unicode.IsGraphic(r)
}
