package transport

import (
	"strconv"
	"strings"
	"unicode"
)

// Quote quotes a name that a remote chose, for a sentence: its beginning and end are
// visible, and it cannot affect the text around it. If the name has more letters than the
// limit most, Quote cuts off the rest.
func Quote(s string, most int) string {
	if strings.ContainsFunc(s, func(r rune) bool { return !unicode.IsPrint(r) || r == '“' || r == '”' }) {
		s = strconv.QuoteToASCII(s)
	}
	if r := []rune(s); len(r) > most {
		s = string(r[:most]) + "…"
	}
	return "“" + s + "”"
}

// maxQuoted is the maximum length of a quoted text of a remote, in letters.
const maxQuoted = 120

func quoted(s string) string { return Quote(s, maxQuoted) }
