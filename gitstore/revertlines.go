package gitstore

import (
	"slices"
	"strings"
	"time"

	udiff "github.com/go-git/go-git/v5/utils/diff"
)

// hunk replaces the lines from, to (of a base) by others.
type hunk struct {
	from, to int
	lines    []string
}

// mergeThree makes of a text what both others made of it, line by line; ok is
// false where they changed the same lines or lines that touch, and where one of
// the two comparisons takes longer than within.
func mergeThree(base, ours, theirs string, within time.Duration) (text string, ok bool) {
	lines := splitLines(base)
	mine, yours := hunks(base, ours, within), hunks(base, theirs, within)
	all := slices.Clone(mine)
	for _, y := range yours {
		if slices.ContainsFunc(mine, func(m hunk) bool { return same(m, y) }) {
			continue
		}
		if slices.ContainsFunc(mine, func(m hunk) bool { return y.from <= m.to && m.from <= y.to }) {
			return "", false
		}
		all = append(all, y)
	}
	// A comparison that gave up in time, or met more lines than it can tell apart,
	// is not to be built upon.
	if patched(lines, mine) != ours || patched(lines, yours) != theirs {
		return "", false
	}
	return patched(lines, all), true
}

// patched replaces lines by hunks, which do not touch.
func patched(lines []string, all []hunk) string {
	all = slices.SortedFunc(slices.Values(all), func(a, b hunk) int { return a.from - b.from })
	var b strings.Builder
	at := 0
	write := func(part []string) {
		for _, l := range part {
			b.WriteString(l)
		}
	}
	for _, h := range all {
		write(lines[at:h.from])
		write(h.lines)
		at = h.to
	}
	write(lines[at:])
	return b.String()
}

func same(a, b hunk) bool { return a.from == b.from && a.to == b.to && slices.Equal(a.lines, b.lines) }

// hunks returns how one text becomes another, in order.
func hunks(from, to string, within time.Duration) []hunk {
	var out []hunk
	at, open := 0, false
	for _, d := range udiff.DoWithTimeout(from, to, max(within, 1)) {
		lines := splitLines(d.Text)
		if d.Type == 0 { // the operation is -1, 0 or 1
			at, open = at+len(lines), false
			continue
		}
		if !open {
			out, open = append(out, hunk{from: at, to: at}), true
		}
		h := &out[len(out)-1]
		if d.Type < 0 {
			at += len(lines)
			h.to = at
		} else {
			h.lines = append(h.lines, lines...)
		}
	}
	return out
}

// splitLines returns lines with their ends.
func splitLines(s string) []string {
	if s == "" {
		return nil
	}
	out := strings.SplitAfter(s, "\n")
	if out[len(out)-1] == "" {
		out = out[:len(out)-1]
	}
	return out
}
