// Package pathlist reads lists of paths as git prints them. Every input is a valid list.
package pathlist

import (
	"bytes"
	"strconv"
	"strings"
	"unicode/utf8"
)

// Split splits a list at NULs if it has any, and otherwise at line ends. In a list of lines it
// unquotes the names that git quotes. It does not check that the names are valid paths.
func Split(data []byte) []string {
	paths := []string{}
	data = bytes.TrimPrefix(data, []byte("\ufeff"))
	if bytes.IndexByte(data, 0) >= 0 {
		for p := range bytes.SplitSeq(data, []byte{0}) {
			if len(bytes.TrimSpace(p)) > 0 {
				paths = append(paths, string(p))
			}
		}
		return paths
	}
	for line := range strings.Lines(string(data)) {
		p := strings.TrimRight(line, "\r\n")
		if strings.TrimSpace(p) == "" {
			continue
		}
		if strings.HasPrefix(p, `"`) {
			// The escapes of git's quotes (quote.c) are among Go's.
			if plain, err := strconv.Unquote(p); err == nil && plain != "" && utf8.ValidString(plain) {
				p = plain
			}
		}
		paths = append(paths, p)
	}
	return paths
}
