// Package editdistance computes how similar two words are, to suggest a word after a typing
// error.
package editdistance

import "strings"

// Within returns how many letters must be inserted, deleted, replaced or swapped with their
// neighbour to turn a into b (optimal string alignment; a letter is a code point). It returns
// limit+1 if the number is more than limit. The time is proportional to the product of the
// lengths, so callers must limit the length of text from strangers.
func Within(a, b string, limit int) int {
	// Words of a usual length need nothing from the heap.
	const usual = 32
	var letters [2][usual]rune
	var rows [3][usual + 1]int
	x, y := append(letters[0][:0], []rune(a)...), append(letters[1][:0], []rune(b)...)
	if len(x)-len(y) > limit || len(y)-len(x) > limit {
		return limit + 1
	}
	older, prev, row := rows[0][:], rows[1][:], rows[2][:]
	if len(y) > usual {
		older, prev, row = make([]int, len(y)+1), make([]int, len(y)+1), make([]int, len(y)+1)
	}
	for j := range len(y) + 1 {
		prev[j] = j
	}
	for i := 1; i <= len(x); i++ {
		row[0] = i
		least := i
		for j := 1; j <= len(y); j++ {
			cost := 1
			if x[i-1] == y[j-1] {
				cost = 0
			}
			row[j] = min(prev[j]+1, row[j-1]+1, prev[j-1]+cost)
			if i > 1 && j > 1 && x[i-1] == y[j-2] && x[i-2] == y[j-1] {
				row[j] = min(row[j], older[j-2]+1)
			}
			least = min(least, row[j])
		}
		if least > limit { // so do later rows: prev is at least limit, and a swap adds one
			return limit + 1
		}
		older, prev, row = prev, row, older
	}
	return min(prev[len(y)], limit+1)
}

// Nearest returns the known word that a person most likely means by a word, or "" if none is
// close. Case does not matter.
func Nearest(word string, known []string) string {
	word = strings.ToLower(word)
	if len(word) > 100 {
		return ""
	}
	best, found := max(2, len(word)/3)+1, ""
	for _, k := range known {
		if d := Within(word, strings.ToLower(k), best-1); d < best {
			best, found = d, k
		}
	}
	return found
}
