package tools

import (
	"unicode/utf8"

	"satchel/tools/index/present"
)

// clipTokens returns the longest beginning of s that costs at most budget tokens
// (by present.EstimateTokens) and ends between two code points, after a line's
// end if one is near.
func clipTokens(s string, budget int) (head string, cut bool) {
	budget = max(budget, 1)
	// No text costs less than one token for each 16 bytes, so that a long one
	// need not be measured as a whole.
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
