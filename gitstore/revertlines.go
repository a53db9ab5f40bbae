package gitstore

import (
	"context"
	"strconv"
	"strings"
)

// mergeLines makes of a text what both others made of it, by lines, as git does. Where
// they changed the same lines or lines that touch, it takes theirs, and all of theirs
// where the texts are too large to be merged; clean is false then. The error is ctx's.
func (s *Store) mergeLines(ctx context.Context, base, ours, theirs string) (text string, clean bool, err error) {
	switch base {
	case ours:
		return theirs, true, nil
	case theirs:
		return ours, true, nil
	}
	if ours == theirs {
		return ours, true, nil
	}
	// git gets a number for each line, so that no text looks like one of its marks.
	var lines []string
	numbers := map[string]int{}
	numbered := func(text string) []byte {
		var b []byte
		for _, l := range splitLines(text) {
			n, known := numbers[l]
			if !known {
				n = len(lines)
				lines, numbers[l] = append(lines, l), n
			}
			b = append(strconv.AppendInt(b, int64(n), 10), '\n')
		}
		return b
	}
	merged, err := s.MergeText(ctx, numbered(base), numbered(ours), numbered(theirs))
	if err != nil {
		return theirs, false, ctx.Err()
	}
	var out strings.Builder
	clean = true
	inOurs := false // of a place that both changed
	for l := range strings.Lines(string(merged)) {
		n, err := strconv.Atoi(strings.TrimSuffix(l, "\n"))
		switch {
		case err != nil: // a mark
			clean, inOurs = false, strings.HasPrefix(l, "<<<<<<<")
		case n >= len(lines):
			return theirs, false, nil
		case !inOurs:
			out.WriteString(lines[n])
		}
	}
	return out.String(), clean, nil
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
