package tools

import (
	"unicode/utf8"

	"satchel/tools/index/present"
)

// clipTokens returns about the longest prefix of s that costs at most budget tokens (by
// present.EstimateTokens). The prefix ends between two code points, and after a line break if
// there is one nearby.
func clipTokens(s string, budget int) (head string, cut bool) {
	budget = max(budget, 1)
	// Every 16 bytes cost at least one token, so only the beginning of a long text needs to
	// be measured.
	if limit := 16*budget + 64; len(s) > limit {
		s, cut = s[:limit], true
	}
	if !cut && present.EstimateTokens(s) <= budget {
		return s, false
	}
	lo, hi := 0, len(s)+1
	for hi-lo > 1 {
		mid := lo + (hi-lo)/2
		if present.EstimateTokens(s[:mid]) <= budget {
			lo = mid
		} else {
			hi = mid
		}
	}
	for lo > 0 && lo < len(s) && !utf8.RuneStart(s[lo]) {
		lo--
	}
	for i := lo; i > lo-200 && i > 0; i-- {
		if s[i-1] == '\n' {
			return s[:i], true
		}
	}
	return s[:lo], true
}
