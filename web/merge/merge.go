package merge

import (
	"slices"
	"strings"
	"time"

	"github.com/sergi/go-diff/diffmatchpatch"
)

// The lines that mark a place that both changed, in plain words, since who meets
// them need not know what a merge is.
const (
	MarkYours  = "▼▼▼ Both changed this place. Your lines: ▼▼▼"
	MarkTheirs = "■■■ What is there now: ■■■"
	MarkEnd    = "▲▲▲ Until here. Keep what is right and take the three marks out. ▲▲▲"
)

// Bounds of the search for the smallest difference. Past them a coarser one is
// found, which is as right. The search looks for one text in the other by trying
// each place, so that of more lines its time would be their square.
const (
	effort    = 300 * time.Millisecond
	mostLines = 30_000 // of either text, without what both begin and end with
)

// Result is a merged text.
type Result struct {
	Text string
	// Conflicts is how many places both changed, each differently. There Text
	// has the lines of both, between marks.
	Conflicts int
}

// Three puts together what became of base in yours and in theirs (diff3). Line
// ends are part of a line.
func Three(base, yours, theirs string) Result {
	o, a, b := lines(base), lines(yours), lines(theirs)
	toA, toB := matches(o, a), matches(o, b)
	var out strings.Builder
	var res Result
	i, ia, ib := 0, 0, 0
	for i < len(o) || ia < len(a) || ib < len(b) {
		if i < len(o) && toA[i] == ia && toB[i] == ib {
			out.WriteString(o[i])
			i, ia, ib = i+1, ia+1, ib+1
			continue
		}
		// What follows differs, up to the next line that all have.
		j := i
		for j < len(o) && (toA[j] < 0 || toB[j] < 0) {
			j++
		}
		ja, jb := len(a), len(b)
		if j < len(o) {
			ja, jb = toA[j], toB[j]
		}
		if settle(&out, o[i:j], a[ia:ja], b[ib:jb]) {
			res.Conflicts++
		}
		i, ia, ib = j, ja, jb
	}
	res.Text = out.String()
	return res
}

// settle writes what becomes of one place, and tells whether both changed it.
func settle(out *strings.Builder, o, a, b []string) bool {
	switch {
	case slices.Equal(a, o), slices.Equal(a, b):
		write(out, b)
		return false
	case slices.Equal(b, o):
		write(out, a)
		return false
	}
	first := 0
	for first < len(a) && first < len(b) && a[first] == b[first] {
		first++
	}
	last := 0
	for last < len(a)-first && last < len(b)-first && a[len(a)-1-last] == b[len(b)-1-last] {
		last++
	}
	write(out, a[:first])
	for _, part := range []struct {
		mark  string
		lines []string
	}{{MarkYours, a[first : len(a)-last]}, {MarkTheirs, b[first : len(b)-last]}, {MarkEnd, nil}} {
		out.WriteString(part.mark + "\n")
		write(out, part.lines)
		if n := len(part.lines); n > 0 && !strings.HasSuffix(part.lines[n-1], "\n") {
			out.WriteString("\n")
		}
	}
	write(out, a[len(a)-last:])
	return true
}

func write(out *strings.Builder, lines []string) {
	for _, l := range lines {
		out.WriteString(l)
	}
}

// Marked counts the marks that a text still has.
func Marked(text string) int {
	n := 0
	for l := range strings.Lines(text) {
		switch strings.TrimRight(l, "\r\n \t") {
		case MarkYours, MarkTheirs, MarkEnd:
			n++
		}
	}
	return n
}

// lines takes a text apart; each line has its end.
func lines(s string) []string { return slices.Collect(strings.Lines(s)) }

// matches finds for each line of from its place in to, or -1; places only grow.
func matches(from, to []string) []int {
	out := make([]int, len(from))
	i, j := 0, 0
	for _, d := range diff(from, to) {
		switch d.kind {
		case Same:
			for range d.n {
				out[i] = j
				i, j = i+1, j+1
			}
		case Removed:
			for range d.n {
				out[i] = -1
				i++
			}
		case Added:
			j += d.n
		}
	}
	return out
}

// Kind says what became of a line.
type Kind byte

// The kinds.
const (
	Same    Kind = ' '
	Added   Kind = '+'
	Removed Kind = '-'
)

type run struct {
	kind Kind
	n    int // lines
}

// diff compares lists of lines.
func diff(from, to []string) []run {
	first := 0
	for first < len(from) && first < len(to) && from[first] == to[first] {
		first++
	}
	last := 0
	for last < len(from)-first && last < len(to)-first && from[len(from)-1-last] == to[len(to)-1-last] {
		last++
	}
	var out []run
	add := func(k Kind, n int) {
		if n > 0 {
			out = append(out, run{k, n})
		}
	}
	add(Same, first)
	a, b := from[first:len(from)-last], to[first:len(to)-last]
	if max(len(a), len(b)) > mostLines || len(a) == 0 || len(b) == 0 {
		add(Removed, len(a))
		add(Added, len(b))
	} else {
		out = append(out, search(a, b)...)
	}
	add(Same, last)
	return out
}

// search compares lists of lines, each of which stands for one letter of a text
// that is compared by letters.
func search(from, to []string) []run {
	letters := map[string]rune{}
	encode := func(lines []string) []rune {
		out := make([]rune, len(lines))
		for i, l := range lines {
			r, ok := letters[l]
			if !ok {
				r = rune(len(letters)) + 1
				if r >= 0xd800 {
					r += 0x800 // these are no letters
				}
				letters[l] = r
			}
			out[i] = r
		}
		return out
	}
	d := diffmatchpatch.New()
	d.DiffTimeout = effort
	var out []run
	for _, x := range d.DiffMainRunes(encode(from), encode(to), false) {
		n := len([]rune(x.Text))
		switch x.Type {
		case diffmatchpatch.DiffEqual:
			out = append(out, run{Same, n})
		case diffmatchpatch.DiffDelete:
			out = append(out, run{Removed, n})
		case diffmatchpatch.DiffInsert:
			out = append(out, run{Added, n})
		}
	}
	return out
}
