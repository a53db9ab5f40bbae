package config

import (
	"slices"
	"strings"
)

// nearest returns the known name that a person most likely meant, or "" where
// none is close.
func nearest(unknown string, known []string) string {
	unknown = strings.ToLower(unknown)
	if len(unknown) > 100 {
		return ""
	}
	best, found := max(2, len(unknown)/3)+1, ""
	for _, k := range known {
		if d := distance(unknown, strings.ToLower(k)); d < best {
			best, found = d, k
		}
	}
	if found != "" {
		return found
	}
	// The right name in the wrong section.
	last := unknown[strings.LastIndexByte(unknown, '.')+1:]
	for _, k := range known {
		if k[strings.LastIndexByte(k, '.')+1:] == last {
			return k
		}
	}
	return ""
}

// distance is the number of inserted, deleted, changed and swapped characters
// between a and b (optimal string alignment).
func distance(a, b string) int {
	prev2 := make([]int, len(b)+1)
	prev := make([]int, len(b)+1)
	cur := make([]int, len(b)+1)
	for j := range prev {
		prev[j] = j
	}
	for i := 1; i <= len(a); i++ {
		cur[0] = i
		for j := 1; j <= len(b); j++ {
			cost := 1
			if a[i-1] == b[j-1] {
				cost = 0
			}
			cur[j] = slices.Min([]int{prev[j] + 1, cur[j-1] + 1, prev[j-1] + cost})
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				cur[j] = min(cur[j], prev2[j-2]+1)
			}
		}
		prev2, prev, cur = prev, cur, prev2
	}
	return prev[len(b)]
}
