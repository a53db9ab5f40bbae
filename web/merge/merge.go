package merge

import (
	"bytes"
	"context"
	"errors"
	"slices"
	"strconv"
	"strings"
)

// The lines that mark a conflict. Their words also make sense to people who do not know git.
const (
	MarkYours  = "▼▼▼ Both changed this place. Your lines: ▼▼▼"
	MarkTheirs = "■■■ Their lines: ■■■"
	// markTheirsBefore is the mark of earlier versions, in texts that are still open in a browser.
	markTheirsBefore = "■■■ What is there now: ■■■"
	MarkEnd          = "▲▲▲ End of the conflict ▲▲▲"
)

// maxLines is the maximum number of lines that git merges, without the common first and last
// lines. The work grows faster than the number of lines. A merge of 50,000 lines takes a few
// tenths of a second at worst.
const maxLines = 50_000

// Result is a merged text.
type Result struct {
	Text string
	// Conflicts counts the places that both sides changed differently. There, Text has the
	// lines of both, between marks.
	Conflicts int
}

// Merger merges texts like git merge-file. It marks conflicts with lines that begin with
// seven "<", "=" or ">".
type Merger func(ctx context.Context, base, ours, theirs []byte) ([]byte, error)

// Three merges yours and theirs, which both derive from base. Line endings are part of a
// line. If the merger fails, everything that differs is one conflict. A line of yours or
// theirs is lost only if it is unchanged from base and the other side removed it.
func Three(ctx context.Context, m Merger, base, yours, theirs string) Result {
	switch base {
	case yours:
		return Result{Text: theirs}
	case theirs:
		return Result{Text: yours}
	}
	if yours == theirs {
		return Result{Text: yours}
	}
	o, a, b := lines(base), lines(yours), lines(theirs)
	var w writer
	first, last := 0, 0
	if max(len(o), len(a), len(b)) > maxLines {
		first, last = common(o, a, b)
	}
	w.write(a[:first])
	x, y := a[first:len(a)-last], b[first:len(b)-last]
	if !w.merge(ctx, m, o[first:len(o)-last], x, y) {
		w.conflict(x, y)
	}
	w.write(a[len(a)-last:])
	return Result{w.out.String(), w.conflicts}
}

// common returns how many lines all texts have in common at the beginning, and how many of
// the remaining lines at the end.
func common(o, a, b []string) (first, last int) {
	n := min(len(o), len(a), len(b))
	for first < n && o[first] == a[first] && o[first] == b[first] {
		first++
	}
	for last < n-first && o[len(o)-1-last] == a[len(a)-1-last] && o[len(o)-1-last] == b[len(b)-1-last] {
		last++
	}
	return first, last
}

// numbering gives each distinct line a number.
type numbering map[string]int

func (n numbering) of(lines []string) []int {
	out := make([]int, len(lines))
	for i, l := range lines {
		if _, ok := n[l]; !ok {
			n[l] = len(n)
		}
		out[i] = n[l]
	}
	return out
}

type writer struct {
	out       strings.Builder
	ended     bool // the last line has a line ending
	begun     bool // a line has been written
	conflicts int
}

func (w *writer) write(lines []string) {
	for _, l := range lines {
		if w.begun && !w.ended {
			w.out.WriteByte('\n') // the previous line was the end of its text, without a line ending
		}
		w.out.WriteString(l)
		w.begun, w.ended = true, strings.HasSuffix(l, "\n")
	}
}

// conflict writes both versions of a place. The conflict excludes their common first and
// last lines.
func (w *writer) conflict(a, b []string) {
	first, last := common(a, a, b)
	w.write(a[:first])
	x, y := a[first:len(a)-last], b[first:len(b)-last]
	if len(x) > 0 || len(y) > 0 {
		w.conflicts++
		w.write([]string{MarkYours + "\n"})
		w.write(x)
		w.write([]string{MarkTheirs + "\n"})
		w.write(y)
		w.write([]string{MarkEnd + "\n"})
	}
	w.write(a[len(a)-last:])
}

// part is some lines of a merged text. If both is set, it has two versions.
type part struct {
	lines, theirs []string
	both          bool
}

// merge merges the texts with git, and writes the result. If git fails or the texts have too
// many lines, it writes nothing and returns false.
func (w *writer) merge(ctx context.Context, m Merger, o, a, b []string) bool {
	if max(len(o), len(a), len(b)) > maxLines {
		return false
	}
	// Git gets a number in place of each line. So no line looks like a mark, no byte turns a
	// text into a binary one, and a last line without a line ending differs from one with it.
	numbers := numbering{}
	in := [3][]byte{}
	for i, text := range [][]string{o, a, b} {
		for _, n := range numbers.of(text) {
			in[i] = append(strconv.AppendInt(in[i], int64(n), 10), '\n')
		}
	}
	out, err := m(ctx, in[0], in[1], in[2])
	if err != nil {
		return false
	}
	names := make([]string, len(numbers))
	for l, n := range numbers {
		names[n] = l
	}
	parts, err := read(out, names)
	if err != nil {
		return false
	}
	for _, p := range parts {
		if p.both {
			w.conflict(p.lines, p.theirs)
		} else {
			w.write(p.lines)
		}
	}
	return true
}

var errOutput = errors.New("merge: git printed no merge")

// read parses the output of git.
func read(out []byte, names []string) ([]part, error) {
	parts := []part{{}}
	side := 0 // in a conflict: 1 for yours, 2 for theirs
	for l := range bytes.Lines(out) {
		p := &parts[len(parts)-1]
		text := strings.TrimSuffix(string(l), "\n")
		switch {
		case side == 0 && strings.HasPrefix(text, "<<<<<<<"):
			parts = append(parts, part{both: true})
			side = 1
			continue
		case side == 1 && strings.HasPrefix(text, "======="):
			side = 2
			continue
		case side == 2 && strings.HasPrefix(text, ">>>>>>>"):
			parts = append(parts, part{})
			side = 0
			continue
		}
		n, err := strconv.Atoi(text)
		if err != nil || n < 0 || n >= len(names) {
			return nil, errOutput
		}
		if side == 2 {
			p.theirs = append(p.theirs, names[n])
		} else {
			p.lines = append(p.lines, names[n])
		}
	}
	if side != 0 {
		return nil, errOutput
	}
	return parts, nil
}

// Marked counts the marks in a text.
func Marked(text string) int {
	n := 0
	for l := range strings.Lines(text) {
		switch strings.TrimRight(l, "\r\n \t") {
		case MarkYours, MarkTheirs, markTheirsBefore, MarkEnd:
			n++
		}
	}
	return n
}

// lines splits a text into lines with their line endings.
func lines(s string) []string { return slices.Collect(strings.Lines(s)) }
