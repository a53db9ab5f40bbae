package textedit

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
)

// minSimilarity is the least similarity of a line that an error quotes.
const minSimilarity = 0.4

// notFound returns a message that says that a text lacks old and quotes the nearest line.
func notFound(text, old string) string {
	out := quote(old) + " does not occur in the file."
	if numbered.MatchString(old) {
		return out + " If its numbers are those of a list of lines, leave them out."
	}
	have, want := strings.SplitN(text, "\n", maxNearLines), strings.Split(strings.TrimSuffix(old, "\n"), "\n")
	start, ok := nearest(have, want)
	if !ok {
		return out + " No line is similar."
	}
	for i, w := range want { // find the first line that differs
		switch k := start + i; {
		case k < 0:
		case k >= len(have):
			return out + fmt.Sprintf(" The nearest text begins in line %d, but the file ends after line %d.", start+1, len(have))
		case have[k] != w:
			out += fmt.Sprintf(" The nearest text is in line %d: %s.", k+1, quote(have[k]))
			if len(want) > 1 {
				out += fmt.Sprintf(" There, old has %s.", quote(w))
			}
			return out
		}
	}
	return out + fmt.Sprintf(" The nearest text is in line %d.", start+1)
}

// numbered matches lines that begin with a line number, as the tool read returns them.
var numbered = regexp.MustCompile(`(?m)^\d+\t`)

// nearest returns the index of the line where the lines of want most likely begin. The index
// can be negative. ok is false if no line is similar. nearest looks for the lines that are
// most similar to the longest line of want, and prefers those with more equal lines around
// them.
func nearest(have, want []string) (start int, ok bool) {
	longest := 0
	for i, w := range want {
		if len(w) > len(want[longest]) {
			longest = i
		}
	}
	pattern := newBigrams(want[longest])
	best, bestEqual := minSimilarity, -1
	for i, h := range have {
		similarity := pattern.similarity(h)
		if similarity < best {
			continue
		}
		equal := 0
		for k := range min(len(want), maxAround) {
			if at := i - longest + k; at >= 0 && at < len(have) && strings.TrimSpace(have[at]) == strings.TrimSpace(want[k]) {
				equal++
			}
		}
		if similarity > best || equal > bestEqual {
			start, ok, best, bestEqual = i-longest, true, similarity, equal
		}
	}
	return start, ok
}

// Limits of the search for the nearest lines.
const (
	maxNearLines = 100_000 // lines of the file that are searched
	maxNearBytes = 1000    // bytes of a line that are compared
	maxAround    = 20      // lines of old that are compared at each line of the file
)

// bigrams counts the pairs of neighbouring bytes in a line, without blanks.
type bigrams struct {
	n     int
	count map[[2]byte]int
}

func newBigrams(line string) bigrams {
	p := bigrams{count: map[[2]byte]int{}}
	eachBigram(line, func(x [2]byte) { p.n++; p.count[x]++ })
	return p
}

// similarity returns the Dice coefficient of two lines, from 0 to 1.
func (p bigrams) similarity(line string) float64 {
	n, both := 0, 0
	seen := map[[2]byte]int{}
	eachBigram(line, func(x [2]byte) {
		n++
		if c := p.count[x]; c > 0 && seen[x] < c {
			seen[x]++
			both++
		}
	})
	if n+p.n == 0 {
		return 0
	}
	return 2 * float64(both) / float64(n+p.n)
}

func eachBigram(line string, f func([2]byte)) {
	var last byte
	for i := range min(len(line), maxNearBytes) {
		c := line[i]
		if c == ' ' || c == '\t' || c == '\r' {
			continue
		}
		if last != 0 {
			f([2]byte{last, c})
		}
		last = c
	}
}

// maxQuoted limits a quoted text, in characters.
const maxQuoted = 200

// quote quotes a text, or its beginning if it is long.
func quote(s string) string {
	short := s
	if r := []rune(s[:min(len(s), 4*maxQuoted+4)]); len(r) > maxQuoted {
		short = string(r[:maxQuoted]) + "…"
	}
	return strconv.Quote(short)
}
