package render

import (
	"fmt"
	"strings"
	"unicode"
)

// visible escapes a line, and writes invisible and misleading characters as their numbers.
// These are control characters except the tab, format characters (which may change the
// direction of text), Unicode tags and variation selectors, letters without a shape, and all
// spaces except U+0020.
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

// Visible returns a text with invisible and misleading characters written as their numbers.
// It does not escape the text for HTML.
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

// Odd reports whether Visible writes a character as its number.
func Odd(r rune) bool { return odd(r) }

// odd reports whether a character in a line is invisible or misleading. This includes every
// character that Unicode calls default ignorable (DerivedCoreProperties.txt).
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
