package merge

import (
	"strings"

	"satchel/internal/diff"
)

// Kind says whether a line was added, removed or kept.
type Kind = diff.Kind

// The kinds of lines.
const (
	Same    = diff.Same
	Added   = diff.Added
	Removed = diff.Removed
)

// maxSteps limits the search for the smallest difference. Texts that people edit need fewer
// steps. All steps together take some ten milliseconds.
const maxSteps = 4_000_000

// Line is one line of a comparison, without its line ending.
type Line struct {
	Kind Kind
	Text string
}

// Mark returns the character that precedes the line in a diff.
func (l Line) Mark() string { return string(rune(l.Kind)) }

// Word returns a word for the line's kind.
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
	Line  int // first line in the second text, counted from 1
	Lines []Line
}

// Changes returns the places where two texts differ, each with context lines around it. most
// limits the lines of all hunks together. cut reports whether lines were left out.
func Changes(from, to string, context, most int) (hunks []Hunk, cut bool) {
	a, b := lines(from), lines(to)
	numbers := numbering{}
	work := maxSteps
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
				tail = r.N // join with the next hunk
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
