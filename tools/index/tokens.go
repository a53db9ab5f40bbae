package index

import "unicode/utf8"

// EstimateTokens returns how many tokens a language model may count in s. It
// needs no vocabulary and errs upwards: byte-pair tokenizers of today make one
// token of an English word of up to 6 letters and about one for every 4 letters
// of a longer or unknown one; 1 to 3 digits a token; 1 token or fewer for a
// mark, a line feed or a run of spaces; and at most one for each character of
// other scripts on average (emoji and rare scripts: up to one per 2 bytes).
func EstimateTokens(s string) int {
	n := 0
	for i := 0; i < len(s); {
		c := s[i]
		switch {
		case isDigit(c):
			j := i
			for j < len(s) && isDigit(s[j]) {
				j++
			}
			n += (j - i + 1) / 2
			i = j
		case isWordByte(c):
			j := i
			for j < len(s) && isWordByte(s[j]) && !isDigit(s[j]) {
				j++
			}
			if j-i <= 6 {
				n++
			} else {
				n += (j - i + 3) / 4
			}
			i = j
		case c == ' ':
			j := i
			for j < len(s) && s[j] == ' ' {
				j++
			}
			if j-i > 1 {
				n += (j - i + 15) / 16
			}
			i = j // a single space belongs to the word after it
		case c < utf8.RuneSelf: // a run of one mark
			j := i
			for j < len(s) && s[j] == c {
				j++
			}
			n += (j - i + 3) / 4
			i = j
		default:
			_, size := utf8.DecodeRuneInString(s[i:])
			n += max(1, size/2)
			i += size
		}
	}
	return n
}
