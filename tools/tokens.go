package tools

import "unicode/utf8"

// EstimateTokens bounds how many tokens a model is charged for a text. It
// needs no vocabulary: a run of ASCII letters counts one token for each six
// begun, a run of digits one for each three, white space nothing but for line
// breaks and indentation, every other ASCII character one, and every other
// code point one. That is above what the common tokenizers take for English
// prose and about right for source code.
func EstimateTokens(s string) int {
	n := 0
	for i := 0; i < len(s); {
		c := s[i]
		j := i + 1
		switch {
		case isLetter(c):
			for j < len(s) && isLetter(s[j]) {
				j++
			}
			n += (j - i + 5) / 6
		case c >= '0' && c <= '9':
			for j < len(s) && s[j] >= '0' && s[j] <= '9' {
				j++
			}
			n += (j - i + 2) / 3
		case c == ' ' || c == '\t' || c == '\n' || c == '\r':
			for j < len(s) && s[j] == c {
				j++
			}
			if c == '\n' || j-i > 1 {
				n++
			}
		case c < utf8.RuneSelf:
			n++
		default:
			_, w := utf8.DecodeRuneInString(s[i:])
			j = i + w
			n++
		}
		i = j
	}
	return n
}

func isLetter(c byte) bool { return c|0x20 >= 'a' && c|0x20 <= 'z' }

// clipTokens returns the longest beginning of s that costs at most max tokens
// and ends between two code points, at a line's end where one is near.
func clipTokens(s string, max int) (head string, cut bool) {
	// A token has at least one byte, and white space alone is cheaper than
	// that, so measure, and halve the interval.
	if EstimateTokens(s) <= max {
		return s, false
	}
	lo, hi := 0, len(s)
	for hi-lo > 1 {
		mid := lo + (hi-lo)/2
		if EstimateTokens(s[:mid]) <= max {
			lo = mid
		} else {
			hi = mid
		}
	}
	for lo > 0 && !utf8.RuneStart(s[lo]) {
		lo--
	}
	for i := lo; i > lo-200 && i > 0; i-- {
		if s[i-1] == '\n' {
			return s[:i], true
		}
	}
	return s[:lo], true
}
