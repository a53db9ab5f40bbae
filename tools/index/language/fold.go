package language

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"
)

// Fold returns the common form of all spellings of a word. The form is in lower case, without
// accents, vowel points and tatweel (the mark that stretches Arabic letters). Characters that
// have several forms get one: full width, ligatures, Arabic letters (alef, ya, ta marbuta) and
// digits. ß becomes ss, dotless ı becomes i, and ё becomes е.
func Fold(word string) string {
	var b strings.Builder
	for _, r := range norm.NFKD.String(word) {
		r = foldRune(r)
		switch r {
		case -1:
		case 'ß', 'ẞ':
			b.WriteString("ss")
		case 'æ':
			b.WriteString("ae")
		case 'œ':
			b.WriteString("oe")
		case 'þ':
			b.WriteString("th")
		default:
			b.WriteRune(r)
		}
	}
	return norm.NFC.String(b.String())
}

// foldRune folds one decomposed code point. It returns -1 if Fold must leave out the code
// point.
func foldRune(r rune) rune {
	if r < utf8.RuneSelf {
		if r >= 'A' && r <= 'Z' {
			return r + 'a' - 'A'
		}
		if r >= 'a' && r <= 'z' || r >= '0' && r <= '9' {
			return r
		}
		return -1
	}
	if r < 0x0600 {
		// Accents of Latin, Greek and Cyrillic, and the points of Hebrew.
		if unicode.Is(unicode.Mn, r) {
			return -1
		}
		switch r = unicode.ToLower(r); r {
		case 'ı':
			return 'i'
		case 'ø':
			return 'o'
		case 'ł':
			return 'l'
		case 'đ', 'ð':
			return 'd'
		case 'ħ':
			return 'h'
		case 'ς':
			return 'σ'
		}
		return r
	}
	if r < 0x0700 || r >= 0x0750 && r < 0x0780 {
		return foldArabic(r)
	}
	if r >= 0x0900 && r < 0x0980 {
		switch {
		case r == 'ँ': // chandrabindu is often written as anusvara
			return 'ं'
		case r == 0x093c: // nukta
			return -1
		case r >= '०' && r <= '९':
			return '0' + r - '०'
		}
		return r
	}
	switch r {
	case 0x200c, 0x200d, 0xfeff: // joiners only change how letters look
		return -1
	}
	return unicode.ToLower(r)
}

func foldArabic(r rune) rune {
	switch {
	case r == 0x0640, unicode.Is(unicode.Mn, r): // tatweel; vowel points and hamza above or below
		return -1
	case r == 'ٱ':
		return 'ا'
	case r == 'ى', r == 'ی':
		return 'ي'
	case r == 'ة':
		return 'ه'
	case r == 'ک':
		return 'ك'
	case r >= '٠' && r <= '٩':
		return '0' + r - '٠'
	case r >= '۰' && r <= '۹':
		return '0' + r - '۰'
	}
	return r
}
