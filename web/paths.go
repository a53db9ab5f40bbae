package web

import (
	"strings"

	"satchel/web/render"
)

// WholePath is that a path is shown whole: no path has as many characters.
const WholePath = 1 << 20

// ShownPath is a path as pages show it: what nobody would see of it is written by
// its number, since two paths must not look alike where a person decides about one
// of them. Of more than n characters the middle is left out, so that the name stays.
func ShownPath[T ~string](p T, n int) string {
	text := strings.ToValidUTF8(string(p), "\uFFFD")
	var out []string // what stands for each character
	for i, c := range text {
		// A space is seen between two other characters alone.
		if c == ' ' && (i == 0 || i == len(text)-1 || strings.ContainsRune(" /", rune(text[i-1])) || strings.ContainsRune(" /", rune(text[i+1]))) {
			out = append(out, "⟨U+0020⟩")
			continue
		}
		if c == '\t' {
			out = append(out, "⟨U+0009⟩")
			continue
		}
		out = append(out, render.Visible(string(c)))
	}
	if len(out) > n {
		head := n / 3
		out = append(append(out[:head:head], "…"), out[len(out)-(n-head):]...)
	}
	return strings.Join(out, "")
}
