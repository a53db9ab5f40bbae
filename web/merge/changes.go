package merge

import (
	"strings"

	"satchel/internal/diff"
)

// Kind says what became of a line.
type Kind = diff.Kind

// The kinds.
const (
	Same    = diff.Same
	Added   = diff.Added
	Removed = diff.Removed
)

// comparing bounds the search for the smallest difference, in steps: more than
// texts that people edit take, and some ten milliseconds.
const comparing = 4_000_000

// Line is one line of a comparison, without its end.
type Line struct {
	Kind Kind
	Text string
}

// Mark is how the line's kind is written before it.
func (l Line) Mark() string { return string(rune(l.Kind)) }

// Word is how the line's kind is said.
func (l Line) Word() string {
	switch l.Kind {
	case Added:
		return "added"
	case Removed:
		return "removed"
	}
	return ""
}

// Hunk is a place where two texts differ, with some lines around it.
type Hunk struct {
	Line  int // of the second text, from 1, at which it begins
	Lines []Line
}

// Changes lists where two texts differ, with as many lines as context around
// each place. Of more than most lines it leaves out the rest, which cut tells.
func Changes(from, to string, context, most int) (hunks []Hunk, cut bool) {
	a, b := lines(from), lines(to)
	numbers := numbering{}
	work := comparing
	runs, _ := diff.Diff(numbers.of(a), numbers.of(b), &work)
	var h *Hunk
	i, j, total := 0, 0, 0
	add := func(k Kind, text string) bool {
		if total >= most {
			return false
		}
		total++
		h.Lines = append(h.Lines, Line{k, strings.TrimRight(text, "\r\n")})
		return true
	}
	for n, r := range runs {
		if r.Kind == Same {
			tail := context
			if n == 0 {
				tail = 0
			}
			if h != nil && r.N <= 2*context && n < len(runs)-1 {
				tail = r.N // one place with the next
			}
			for k := range min(tail, r.N) {
				if h != nil && !add(Same, b[j+k]) {
					return hunks, true
				}
			}
			if h != nil && !(r.N <= 2*context && n < len(runs)-1) {
				h = nil
			}
			i, j = i+r.N, j+r.N
			continue
		}
		if h == nil {
			lead := 0
			if n > 0 {
				lead = min(context, runs[n-1].N)
			}
			hunks = append(hunks, Hunk{Line: j - lead + 1})
			h = &hunks[len(hunks)-1]
			for k := j - lead; k < j; k++ {
				if !add(Same, b[k]) {
					return hunks, true
				}
			}
		}
		for range r.N {
			text := ""
			if r.Kind == Removed {
				text = a[i]
				i++
			} else {
				text = b[j]
				j++
			}
			if !add(r.Kind, text) {
				return hunks, true
			}
		}
	}
	return hunks, false
}
