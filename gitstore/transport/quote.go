package transport

import (
	"strconv"
	"strings"
	"unicode"
)

// maxQuoted is the maximum length of a quoted text of a remote, in letters.
const maxQuoted = 120

// quoted quotes a name that a remote chose, for a sentence: its beginning and end are
// visible, and it cannot affect the text around it.
func quoted(s string) string {
	if strings.ContainsFunc(s, func(r rune) bool { return !unicode.IsPrint(r) || r == '“' || r == '”' }) {
		s = strconv.QuoteToASCII(s)
	}
	if r := []rune(s); len(r) > maxQuoted {
		s = string(r[:maxQuoted]) + "…"
	}
	return "“" + s + "”"
}
