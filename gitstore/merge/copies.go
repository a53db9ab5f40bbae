package merge

import (
	"path"
	"strconv"
	"strings"
	"unicode/utf8"

	"satchel/internal/space"
)

// ConflictName returns the n-th name (from 1) to keep a change under whose path
// is taken by head. component is the path, or the ancestor of it, that is in
// the way; rest is what follows it, with its slash. Where the name has no
// room beside the other, it is at the top of the space.
func ConflictName(component, rest string, head space.CommitID, n int) (space.Path, bool) {
	dir, name := path.Split(component)
	stem, ext := CopyStem(name)
	mark := space.ConflictMark + head.Short()
	if n > 1 {
		mark += "-" + strconv.Itoa(n)
	}
	for _, d := range []string{dir, ""} {
		room := min(space.MaxSegmentBytes, space.MaxPathBytes-len(d)-len(rest)) - len(mark) - len(ext)
		if room < 1 {
			continue
		}
		if p, err := space.ParsePath(d + cut(stem, room) + mark + ext + rest); err == nil {
			return p, true
		}
	}
	return "", false
}

// CopyStem splits a name where its conflict copies have their mark (see
// [ConflictName]).
func CopyStem(name string) (stem, ext string) {
	ext = path.Ext(name)
	stem = strings.TrimSuffix(name, ext)
	if stem == "" || len(ext) > 32 { // ".bashrc" has no extension
		return name, ""
	}
	return stem, ext
}

// cut shortens s to at most n bytes, at a rune's edge.
func cut(s string, n int) string {
	for n < len(s) && n > 0 && !utf8.RuneStart(s[n]) {
		n--
	}
	return s[:min(n, len(s))]
}
