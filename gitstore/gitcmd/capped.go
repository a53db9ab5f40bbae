package gitcmd

import (
	"bytes"
	"strings"
	"unicode"
	"unicode/utf8"
)

// maxProgressLine limits a line for Cmd.Progress, in bytes. maxLine limits every line.
const (
	maxProgressLine = 200
	maxLine         = 8 << 10
)

// capped keeps the first max bytes.
type capped struct {
	b   bytes.Buffer
	max int
	cut bool
}

func (c *capped) Write(p []byte) (int, error) {
	keep := p[:min(len(p), c.max-c.b.Len())]
	c.b.Write(keep)
	c.cut = c.cut || len(keep) < len(p)
	return len(p), nil
}

// lines reads standard error line by line and passes each line to tell. Lines that end in a
// carriage return are progress and are not kept. Of the other lines, it keeps the first and
// the last ones, up to half bytes of each: git prints the reason of a failure last, whatever
// a remote printed before it.
type lines struct {
	half int // how many bytes of the first lines, and of the last lines, are kept
	tell func(string)

	part  []byte // the unfinished line, cut at maxLine
	cr    bool   // part ended in a carriage return, which may belong to \r\n
	first bytes.Buffer
	last  [][]byte
	size  int // the bytes in last, with a line break for each line
	cut   bool
}

func (l *lines) Write(p []byte) (int, error) {
	for _, b := range p {
		if l.cr {
			l.cr = false
			if b == '\n' {
				l.end(true)
				continue
			}
			l.end(false)
		}
		switch {
		case b == '\n':
			l.end(true)
		case b == '\r':
			l.cr = true
		case len(l.part) < maxLine:
			l.part = append(l.part, b)
		}
	}
	return len(p), nil
}

// end handles a finished line.
func (l *lines) end(keep bool) {
	line := l.part
	if l.tell != nil {
		if s := oneLine(string(line), maxProgressLine); s != "" {
			l.tell(s)
		}
	}
	l.part = l.part[:0]
	switch {
	case !keep:
	case len(l.last) == 0 && l.first.Len()+len(line) < l.half:
		l.first.Write(line)
		l.first.WriteByte('\n')
	default:
		l.last = append(l.last, bytes.Clone(line))
		l.size += len(line) + 1
		for l.size > l.half {
			l.size -= len(l.last[0]) + 1
			l.last[0] = nil
			l.last = l.last[1:]
			l.cut = true
		}
	}
}

// text ends the last line and returns the kept text.
func (l *lines) text() string {
	if l.cr || len(l.part) > 0 {
		l.end(!l.cr)
	}
	var out strings.Builder
	out.Write(l.first.Bytes())
	if l.cut {
		out.WriteString("…\n")
	}
	for _, line := range l.last {
		out.Write(line)
		out.WriteByte('\n')
	}
	return strings.TrimSpace(out.String())
}

// oneLine prepares text from git or a remote for a log line: no control characters, no runs
// of blanks, at most max bytes.
func oneLine(s string, max int) string {
	s = strings.Map(func(r rune) rune {
		if unicode.IsControl(r) || r == '\u2028' || r == '\u2029' {
			return ' '
		}
		return r
	}, strings.ToValidUTF8(s, "\uFFFD"))
	s = strings.Join(strings.Fields(s), " ")
	if len(s) <= max {
		return s
	}
	for max > 0 && !utf8.RuneStart(s[max]) {
		max--
	}
	return s[:max]
}
