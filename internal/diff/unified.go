package diff

import (
	"fmt"
	"slices"
	"strings"
)

// Limits of Unified.
const (
	unifiedWork   = 2_000_000 // steps of the comparison
	unifiedBytes  = 1 << 20   // of the parts that differ
	unifiedAround = 2         // lines around a change
	unifiedLine   = 200       // characters of a line
)

// Text is the difference of two texts.
type Text struct {
	// Lines holds hunks of the unified format, without the names of the files. It is empty
	// if too much differs.
	Lines []string `json:"lines,omitempty"`
	// Left counts the lines that Lines leaves out.
	Left    int `json:"left,omitempty"`
	Added   int `json:"added"`
	Removed int `json:"removed"`
}

// Unified compares two texts line by line. most limits the lines of the result. Long lines are
// cut.
func Unified(from, to string, most int) Text {
	first := 0
	for first < len(from) && first < len(to) && from[first] == to[first] {
		first++
	}
	last := 0
	for last < len(from)-first && last < len(to)-first && from[len(from)-1-last] == to[len(to)-1-last] {
		last++
	}
	// Compare whole lines, and some equal lines around them.
	start := strings.LastIndexByte(from[:first], '\n') + 1
	for range unifiedAround {
		if start > 0 {
			start = strings.LastIndexByte(from[:start-1], '\n') + 1
		}
	}
	for range unifiedAround + 1 {
		last -= firstLine(from[len(from)-last:])
	}
	x, y := from[start:len(from)-last], to[start:len(to)-last]
	if len(x)+len(y) > unifiedBytes {
		out := Text{Removed: len(splitLines(x)), Added: len(splitLines(y))}
		out.Left = out.Removed + out.Added
		return out
	}
	out := hunks(splitLines(x), splitLines(y), strings.Count(from[:start], "\n"))
	if n := len(out.Lines); n > most {
		out.Lines, out.Left = out.Lines[:most], n-most
	}
	return out
}

// firstLine returns the length of the first line of a text.
func firstLine(s string) int {
	if i := strings.IndexByte(s, '\n'); i >= 0 {
		return i + 1
	}
	return len(s)
}

// splitLines returns the lines of a text with their line endings.
func splitLines(s string) []string { return slices.Collect(strings.Lines(s)) }

// hunks returns the difference of two lists of lines. before is the number of equal lines
// before each list.
func hunks(x, y []string, before int) Text {
	work := unifiedWork
	runs, _ := Diff(x, y, &work)
	var out Text
	var hunk []string
	// i and j are how many lines of x and y come before the run. fromI and fromJ are how many come
	// before the hunk.
	i, j, fromI, fromJ := 0, 0, 0, 0
	flush := func() {
		if hunk != nil {
			out.Lines = append(out.Lines, fmt.Sprintf("@@ -%s +%s @@", span(before+fromI, i-fromI), span(before+fromJ, j-fromJ)))
			out.Lines = append(out.Lines, hunk...)
		}
		hunk = nil
	}
	take := func(kind Kind, n int) {
		all := x[i:]
		if kind == Added {
			all = y[j:]
		}
		for _, l := range all[:n] {
			hunk = append(hunk, string(kind)+shown(l))
			if !strings.HasSuffix(l, "\n") {
				hunk = append(hunk, "\\ No newline at end of file")
			}
		}
		if kind != Added {
			i += n
		}
		if kind != Removed {
			j += n
		}
	}
	for k, r := range runs {
		switch {
		case r.Kind == Removed:
			out.Removed += r.N
			take(r.Kind, r.N)
		case r.Kind == Added:
			out.Added += r.N
			take(r.Kind, r.N)
		case k > 0 && k < len(runs)-1 && r.N <= 2*unifiedAround:
			take(Same, r.N)
		default:
			after, ahead := min(r.N, unifiedAround), min(r.N, unifiedAround)
			if k == 0 {
				after = 0
			}
			if k == len(runs)-1 {
				ahead = 0
			}
			take(Same, after)
			flush()
			skip := r.N - after - ahead
			i, j = i+skip, j+skip
			fromI, fromJ = i, j
			take(Same, ahead)
		}
	}
	flush()
	return out
}

// span returns a range of lines as in the header of a hunk.
func span(before, n int) string {
	switch n {
	case 0:
		return fmt.Sprintf("%d,0", before)
	case 1:
		return fmt.Sprint(before + 1)
	}
	return fmt.Sprintf("%d,%d", before+1, n)
}

// shown returns a line without its ending, and only the beginning of a long line.
func shown(l string) string {
	l = strings.TrimSuffix(strings.TrimSuffix(l, "\n"), "\r")
	if r := []rune(l[:min(len(l), 4*unifiedLine+4)]); len(r) > unifiedLine {
		return string(r[:unifiedLine]) + "…"
	}
	return l
}
