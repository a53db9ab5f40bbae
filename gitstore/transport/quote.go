package transport

import (
	"strconv"
	"strings"
	"unicode"
)

// maxQuoted bounds what is quoted of a remote's words, in letters.
const maxQuoted = 120

// quoted makes a name that a remote chose fit for a sentence: where it begins
// and ends is seen, and nothing in it changes what is around it.
func quoted(s string) string {
	if strings.ContainsFunc(s, func(r rune) bool { return !unicode.IsPrint(r) || r == '“' || r == '”' }) {
		s = strconv.QuoteToASCII(s)
	}
	if r := []rune(s); len(r) > maxQuoted {
		s = string(r[:maxQuoted]) + "…"
	}
	return "“" + s + "”"
}
