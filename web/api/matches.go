package api

import (
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// matchView is a line that shows why a page was found.
type matchView struct {
	Path    string `json:"path"`
	Line    int    `json:"lineNumber" doc:"The line in the file. For a page whose snippet leaves lines out, the line where the snippet begins." api:"minimum=1"`
	Content string `json:"content" doc:"The line, at most 200 characters."`
}

// Limits of the matches of a result.
const (
	maxMatches    = 3
	maxMatchRunes = 200
)

// queryWords are the words of a query, in lower case.
type queryWords []string

// maxQueryWords limits the words that are compared.
const maxQueryWords = 64

func wordsOf(query string) queryWords {
	var words queryWords
	for field := range strings.FieldsSeq(strings.ToLower(query)) {
		if strings.HasPrefix(field, "-") || strings.Contains(field, ":") && !strings.HasSuffix(field, ":") {
			continue // a word that must not occur, or a qualifier
		}
		for _, w := range strings.FieldsFunc(field, func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsDigit(r) && r != '_' }) {
			if !slices.Contains(words, w) && len(words) < maxQueryWords {
				words = append(words, w)
			}
		}
	}
	return words
}

// lines returns the indexes of the lines of a text that contain the largest number of the words.
func (q queryWords) lines(text string) []int {
	var best []int
	most, i := 1, -1
	for line := range strings.Lines(strings.ToLower(text)) {
		i++
		n := 0
		for _, w := range q {
			if strings.Contains(line, w) {
				n++
			}
		}
		if n > most {
			best, most = nil, n
		}
		if n == most {
			best = append(best, i)
		}
	}
	return best
}

// matches returns the first lines of a result that contain the largest number of the words. If no
// line has a word, as in a page that was found by its title, it returns the first line that is not
// empty.
func (q queryWords) matches(r resultView) []matchView {
	lines := strings.Split(strings.TrimRight(r.Snippet, "\n"), "\n")
	first, last := 1, 0
	if from, to, ok := strings.Cut(r.Lines, "-"); ok {
		first, _ = strconv.Atoi(from)
		last, _ = strconv.Atoi(to)
	}
	found := q.lines(r.Snippet)
	if len(found) == 0 {
		found = []int{max(0, slices.IndexFunc(lines, func(s string) bool { return strings.TrimSpace(s) != "" }))}
	}
	var out []matchView
	for _, i := range found[:min(maxMatches, len(found))] {
		m := matchView{Path: r.Path, Line: max(1, first), Content: clipped(lines[i])}
		if last-first == len(lines)-1 {
			m.Line += i // the snippet leaves no line out
		}
		out = append(out, m)
	}
	return out
}

// clipped returns the beginning of a line.
func clipped(line string) string {
	line = strings.TrimRight(line, "\r\n")
	if utf8.RuneCountInString(line) <= maxMatchRunes {
		return line
	}
	return string([]rune(line)[:maxMatchRunes-1]) + "…"
}
