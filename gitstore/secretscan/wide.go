package secretscan

// wide describes a UTF-16 text in a content.
type wide struct {
	at   int // where the text begins, after a byte order mark
	high int // which byte of a unit is the upper one, 0 or 1
}

// wideText reports whether a content is text in UTF-16: it has a byte order mark, or nearly
// every other byte of its beginning is zero.
func wideText(content []byte) (wide, bool) {
	if len(content) < 4 {
		return wide{}, false
	}
	switch {
	case content[0] == 0xff && content[1] == 0xfe:
		return wide{2, 1}, true
	case content[0] == 0xfe && content[1] == 0xff:
		return wide{2, 0}, true
	}
	head := content[:min(len(content), 512)&^1]
	var zeros [2]int
	for i, c := range head {
		if c == 0 {
			zeros[i&1]++
		}
	}
	for side := range zeros {
		if zeros[side] >= len(head)*2/5 && zeros[1-side] == 0 {
			return wide{0, side}, true
		}
	}
	return wide{}, false
}

// narrow returns the text with one byte per unit. A unit that is not ASCII becomes 0xff.
func (w wide) narrow(content []byte) []byte {
	units := content[w.at : len(content)-(len(content)-w.at)%2]
	text := make([]byte, len(units)/2)
	for i := range text {
		text[i] = 0xff
		if low := units[2*i+1-w.high]; units[2*i+w.high] == 0 && low < 0x80 {
			text[i] = low
		}
	}
	return text
}

// widen returns ASCII text as UTF-16.
func (w wide) widen(text string) []byte {
	out := make([]byte, 2*len(text))
	for i := range len(text) {
		out[2*i+1-w.high] = text[i]
	}
	return out
}
