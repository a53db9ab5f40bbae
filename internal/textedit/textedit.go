// Package textedit replaces parts of texts, and keeps their line endings and byte order
// marks. Call [Apply] for edits, and [Keep] for a text that replaces a whole file.
package textedit

import (
	"fmt"
	"slices"
	"strings"

	"satchel/internal/bytesize"
	"satchel/internal/fault"
)

// Edit replaces a part of a text.
type Edit struct {
	// Old must occur exactly once, unless All is set.
	Old string `json:"old"`
	New string `json:"new"`
	// All replaces every occurrence of Old.
	All bool `json:"all,omitempty"`
}

const bom = "\ufeff"

// maxMistakes limits the failed edits that an error describes.
const maxMistakes = 5

// Apply applies all edits in order, or none. An LF in an edit stands for the line ending of
// the text at that place. The text keeps its byte order mark. A last line without a line ending
// stays without one. The error is a fault.Invalid that describes the failed edits, or a
// fault.TooLarge if the text would have more than limit bytes after an edit.
func Apply(text string, edits []Edit, limit int64) (string, error) {
	body, marked := strings.CutPrefix(text, bom)
	var mistakes []string
	for i, e := range edits {
		if marked {
			e.Old, e.New = strings.TrimPrefix(e.Old, bom), strings.TrimPrefix(e.New, bom)
		}
		next, why, err := apply(body, e, limit)
		if err != nil {
			return "", err
		}
		if why == "" {
			body = next
			continue
		}
		if mistakes = append(mistakes, fmt.Sprintf("edits[%d]: %s", i, why)); len(mistakes) == maxMistakes {
			break
		}
	}
	if len(mistakes) > 0 {
		return "", fault.New(fault.Invalid, "%s", strings.Join(mistakes, "\n"))
	}
	if marked {
		body = bom + body
	}
	return body, nil
}

// apply applies one edit. If it cannot, why is the reason.
func apply(text string, e Edit, limit int64) (next, why string, err error) {
	old, repl := toLF(e.Old), toLF(e.New)
	switch {
	case old == "":
		return "", "old is empty. Give the text to replace. To add text, give the text beside it in both old and new.", nil
	case old == repl:
		return "", "old and new are the same.", nil
	}
	t := newLines(text)
	at, n := t.occurrences(old), strings.Count(t.lf, old)
	if last := strings.TrimSuffix(old, "\n"); n == 0 && last != "" && last != old && strings.HasSuffix(t.lf, last) {
		// Models cannot see in the answer of read that the last line has no line ending.
		at, n = []int{len(t.lf) - len(last)}, 1
		old, repl = last, strings.TrimSuffix(repl, "\n")
	}
	switch {
	case n == 0:
		return "", notFound(t.lf, old), nil
	case len(at) > 1 && !e.All:
		return "", fmt.Sprintf("%s occurs %d times, in %s. Add text around it until it is unique, or set all.", quote(old), max(n, len(at)), lineList(t.lf, at)), nil
	}
	// Each LF can become CRLF.
	if size := int64(len(text)) + int64(n)*int64(len(repl)+strings.Count(repl, "\n")-len(old)); size > limit {
		return "", "", fault.New(fault.TooLarge, "The file would have %s, and %s are allowed.", bytesize.Text(size), bytesize.Text(limit))
	}
	return t.replace(at[0], old, repl, n), "", nil
}

func toLF(s string) string { return strings.ReplaceAll(s, "\r\n", "\n") }

// lines holds a text, and the text with its CRLF line endings as LF.
type lines struct {
	text, lf string
	crs      []int // offsets in lf of the line endings that are CRLF in text
}

func newLines(text string) lines {
	t := lines{text: text, lf: toLF(text)}
	for i := 0; ; {
		n := strings.Index(text[i:], "\r\n")
		if n < 0 {
			return t
		}
		t.crs = append(t.crs, i+n-len(t.crs))
		i += n + 2
	}
}

// offset converts an offset in lf to an offset in text.
func (t lines) offset(i int) int {
	before, _ := slices.BinarySearch(t.crs, i)
	return i + before
}

// maxPlaces limits the lines that an error lists.
const maxPlaces = 10

// occurrences returns the offsets in lf of the first occurrences of old, up to one more
// than maxPlaces. The first two can overlap.
func (t lines) occurrences(old string) []int {
	var at []int
	for i := 0; len(at) <= maxPlaces; {
		n := strings.Index(t.lf[i:], old)
		if n < 0 {
			break
		}
		at = append(at, i+n)
		i += n + len(old)
	}
	if len(at) == 1 {
		if n := strings.Index(t.lf[at[0]+1:], old); n >= 0 {
			at = append(at, at[0]+1+n)
		}
	}
	return at
}

// replace returns the text with n occurrences of old replaced by repl, beginning with the
// first one at or after an offset of lf.
func (t lines) replace(first int, old, repl string, n int) string {
	var b strings.Builder
	done := 0
	ending, until := "", -1 // ending holds for offsets up to until
	for i := first; n > 0; n-- {
		i += strings.Index(t.lf[i:], old)
		from, to := t.offset(i), t.offset(i+len(old))
		if from > until {
			ending, until = t.ending(from)
		}
		b.WriteString(t.text[done:from])
		b.WriteString(strings.ReplaceAll(repl, "\n", ending))
		done, i = to, i+len(old)
	}
	b.WriteString(t.text[done:])
	return b.String()
}

// ending returns the line ending for new text at an offset of the text: the first line ending
// after the offset, or else the last one before it. The result is the same up to offset until.
func (t lines) ending(from int) (ending string, until int) {
	i := strings.IndexByte(t.text[from:], '\n') + from
	until = i
	if i < from {
		i, until = strings.LastIndexByte(t.text[:from], '\n'), len(t.text)
	}
	if i > 0 && t.text[i-1] == '\r' {
		return "\r\n", until
	}
	return "\n", until
}

// lineList lists the numbers of the lines that contain offsets.
func lineList(text string, at []int) string {
	var out []string
	line, done := 1, 0
	for k, i := range at {
		line += strings.Count(text[done:i], "\n")
		done = i
		name := fmt.Sprint(line)
		switch {
		case len(out) > 0 && out[len(out)-1] == name:
		case k == maxPlaces:
			out = append(out, "…")
		default:
			out = append(out, name)
		}
	}
	if len(out) == 1 {
		return "line " + out[0]
	}
	return "lines " + strings.Join(out, ", ")
}

// Keep returns a text that replaces the text of a file, with the byte order mark of the
// file, and with CRLF if every line of the file ends with CRLF.
func Keep(file, text string) string {
	body, marked := strings.CutPrefix(file, bom)
	if n := strings.Count(body, "\n"); n > 0 && n == strings.Count(body, "\r\n") {
		text = strings.ReplaceAll(toLF(text), "\n", "\r\n")
	}
	if marked && !strings.HasPrefix(text, bom) {
		text = bom + text
	}
	return text
}
