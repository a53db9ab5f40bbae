package sandbox

import (
	"fmt"
	"strings"
	"unicode/utf8"

	"satchel/sandbox/protocol"
)

// Output is one stream of a command's output in displayable form: valid UTF-8 without
// terminal control sequences. Long output is cut in the middle, with a line that says so.
type Output struct {
	Text string
	// Cut is the number of bytes that Text lacks; 0 if it is complete.
	Cut int64
	// Saved is the file inside the sandbox that holds more; may be empty.
	Saved string
}

// markRoom is the maximum length of the line about a cut, and maxSaved is the maximum length of the
// file name in it.
const (
	markRoom = 240
	maxSaved = 100
)

// prepareOutput cleans both streams and fits them into max characters. If they do not fit,
// standard error is cut first, down to a third of max.
func prepareOutput(stdout, stderr protocol.Output, max int) (Output, Output) {
	o, e := newExcerpt(stdout), newExcerpt(stderr)
	if o.chars()+e.chars() <= max && o.dropped == 0 && e.dropped == 0 {
		return o.fit(max), e.fit(max)
	}
	room := max - min(o.chars(), max-max/3)
	errOut := e.fit(room)
	return o.fit(max - utf8.RuneCountInString(errOut.Text)), errOut
}

// excerpt is a cleaned stream; if nothing was dropped, all of it is in head.
type excerpt struct {
	head, tail         string
	headChars, tailLen int
	dropped            int64
	saved              string
}

func newExcerpt(o protocol.Output) excerpt {
	x := excerpt{dropped: o.Dropped, saved: firstChars(Clean([]byte(o.Saved)), maxSaved)}
	if o.Dropped == 0 {
		x.head = Clean(append(append([]byte(nil), o.Head...), o.Tail...))
	} else {
		head, tail := wholeRunes(o.Head, o.Tail)
		x.head, x.tail = Clean(head), Clean(tail)
	}
	x.headChars, x.tailLen = utf8.RuneCountInString(x.head), utf8.RuneCountInString(x.tail)
	return x
}

func (x excerpt) chars() int {
	n := x.headChars + x.tailLen
	if x.dropped > 0 {
		n += markRoom
	}
	return n
}

// fit returns at most max characters of x: its beginning and its end.
func (x excerpt) fit(max int) Output {
	if x.dropped == 0 && x.headChars <= max {
		return Output{Text: x.head, Saved: x.saved}
	}
	if max < markRoom {
		return Output{Cut: x.dropped + int64(len(x.head)+len(x.tail)), Saved: x.saved}
	}
	head, tail := x.head, x.tail
	if x.dropped == 0 { // this function cuts; the agent did not
		head, tail = x.head, x.head
	}
	room := max - markRoom
	head = firstChars(head, (room+1)/2)
	if x.dropped == 0 {
		tail = tail[len(head):]
	}
	tail = lastChars(tail, room-utf8.RuneCountInString(head))
	cut := x.dropped + int64(len(x.head)+len(x.tail)-len(head)-len(tail))
	where := "run it again with its output in a file to see the rest"
	if x.saved != "" {
		where = "more of it is in " + x.saved
	}
	nl := "\n"
	if head == "" || strings.HasSuffix(head, "\n") {
		nl = ""
	}
	return Output{
		Text:  fmt.Sprintf("%s%s[… %d bytes cut here; %s …]\n%s", head, nl, cut, where, tail),
		Cut:   cut,
		Saved: x.saved,
	}
}

func firstChars(s string, n int) string {
	for i := range s {
		if n == 0 {
			return s[:i]
		}
		n--
	}
	return s
}

func lastChars(s string, n int) string {
	i := len(s)
	for ; n > 0 && i > 0; n-- {
		_, size := utf8.DecodeLastRuneInString(s[:i])
		i -= size
	}
	return s[i:]
}

// wholeRunes removes parts of characters at the end of head and at the beginning of tail.
func wholeRunes(head, tail []byte) ([]byte, []byte) {
	for i := 1; i <= utf8.UTFMax && i <= len(head); i++ {
		c := head[len(head)-i]
		if utf8.RuneStart(c) {
			if !utf8.FullRune(head[len(head)-i:]) {
				head = head[:len(head)-i]
			}
			break
		}
	}
	for i := 0; i < utf8.UTFMax-1 && len(tail) > 0 && !utf8.RuneStart(tail[0]); i++ {
		tail = tail[1:]
	}
	return head, tail
}

// maxControlString bounds a control string (see Clean), so that an unterminated one does not hide
// the rest of the output.
const maxControlString = 4096

// Clean makes a command's output safe to show and to put into JSON. It removes control
// sequences (ECMA-48: CSI, OSC, DCS, APC, PM, SOS and two-character escapes, in their
// 7-bit and UTF-8 forms) and every control character but newline and tab. A carriage return
// becomes a newline. The controls that change the direction of text become their names
// (<U+202E>), and each run of bytes that is not UTF-8 becomes U+FFFD.
func Clean(b []byte) string {
	var out strings.Builder
	var c cleaner
	out.Grow(len(b))
	for i := 0; i < len(b); {
		if ch := b[i]; ch < utf8.RuneSelf {
			switch {
			case ch == 0x1b:
				i = c.escape(b, i)
				continue
			case ch == '\r':
				// CR LF is one line end. A lone CR ends a line too: dropping what it overwrites
				// would hide the text of files that end lines with CR.
				if i+1 >= len(b) || b[i+1] != '\n' {
					out.WriteByte('\n')
				}
			case ch == '\n' || ch == '\t' || ch >= 0x20 && ch != 0x7f:
				out.WriteByte(ch)
			}
			i++
			continue
		}
		r, size := utf8.DecodeRune(b[i:])
		switch {
		case r == utf8.RuneError && size == 1:
			out.WriteRune(utf8.RuneError)
			for i < len(b) {
				if r, size := utf8.DecodeRune(b[i:]); r != utf8.RuneError || size != 1 {
					break
				}
				i++
			}
			continue
		case r >= 0x202a && r <= 0x202e || r >= 0x2066 && r <= 0x2069:
			// These controls can make text appear in a different order (CVE-2021-42574), so their
			// names are shown, as less does.
			fmt.Fprintf(&out, "<%U>", r)
			i += size
			continue
		case r >= 0x80 && r <= 0x9f: // a C1 control: an escape as one character
			i = c.control(byte(r-0x40), b, i+size)
			continue
		}
		out.Write(b[i : i+size])
		i += size
	}
	return out.String()
}

// cleaner remembers how far it has searched for the end of a control string, so that many
// unterminated ones do not each cause a new search.
type cleaner struct {
	noST  int // the last search for a string terminator (ST) found none before this position
	noBEL int // the last search for ST or BEL found neither before this position
}

// escape returns the end of the escape sequence that begins at i.
func (c *cleaner) escape(b []byte, i int) int {
	if i+1 >= len(b) {
		return i + 1
	}
	switch ch := b[i+1]; {
	case ch >= 0x20 && ch <= 0x2f: // intermediate bytes, then a final byte
		return skipFinal(b, skip(b, i+1, 0x20, 0x2f), 0x30)
	case ch >= 0x40 && ch <= 0x5f:
		return c.control(ch, b, i+2)
	case ch >= 0x30 && ch <= 0x7e:
		return i + 2
	}
	return i + 1
}

// control returns the end of the control function ch (the second character of its 7-bit
// form), whose rest begins at i.
func (c *cleaner) control(ch byte, b []byte, i int) int {
	switch ch {
	case '[': // CSI: parameter bytes, intermediate bytes, a final byte
		return skipFinal(b, skip(b, skip(b, i, 0x30, 0x3f), 0x20, 0x2f), 0x40)
	case ']':
		return stringEnd(b, i, true, &c.noBEL)
	case 'P', 'X', '^', '_':
		return stringEnd(b, i, false, &c.noST)
	}
	return i
}

// skip returns the first position from i whose byte is not between lo and hi.
func skip(b []byte, i int, lo, hi byte) int {
	for i < len(b) && b[i] >= lo && b[i] <= hi {
		i++
	}
	return i
}

// skipFinal skips one final byte, if there is one.
func skipFinal(b []byte, i int, lo byte) int {
	if i < len(b) && b[i] >= lo && b[i] <= 0x7e {
		return i + 1
	}
	return i
}

// stringEnd returns the end of the control string that begins at i. The end is after ST or, if bel
// is true, after BEL. If neither follows within maxControlString bytes, stringEnd returns i.
// Earlier searches found no end before *none. If stringEnd finds no end, it advances *none.
func stringEnd(b []byte, i int, bel bool, none *int) int {
	limit := min(len(b), i+maxControlString)
	for n := max(i, *none); n < limit; n++ {
		switch {
		case bel && b[n] == 0x07:
			return n + 1
		case n+1 < len(b) && (b[n] == 0x1b && b[n+1] == '\\' || b[n] == 0xc2 && b[n+1] == 0x9c):
			return n + 2
		}
	}
	*none = max(*none, limit)
	return i
}
