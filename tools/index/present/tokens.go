package present

import (
	"unicode/utf8"

	"satchel/tools/index/parse"
)

// EstimateTokens returns about how many tokens a language model counts in s, and errs
// upwards. It needs no vocabulary. For prose in any tested language and for source code, the
// estimate is never less than the count of o200k_base (for English and code, it is 1.2 to 1.5
// times that count). It is at most a fifth less than the counts of cl100k_base and Llama 3, and
// at most a quarter less than that of Claude's published, older tokenizer. It may be a quarter
// less for long base64, and even less for random characters. testdata/tokens.json has such counts.
//
// The rules count quarters of a token. Byte-pair tokenizers have tokens for English words up to
// some length. They split mixtures of cases and digits, spell out letters that are not a word,
// and encode scripts that were rare in their training byte by byte.
func EstimateTokens(s string) int {
	n := 0
	short := -1 // where a piece of one or two letters or digits ended
	for i := 0; i < len(s); {
		j := i + 1
		cost := 0
		switch c := s[i]; {
		case parse.IsDigit(c):
			for j < len(s) && parse.IsDigit(s[j]) {
				j++
			}
			cost = (j - i + 1) / 2 * 4
		case parse.IsWordByte(c):
			j, cost = letters(s, i)
		case c == ' ': // a single space belongs to the word after it
			for j < len(s) && s[j] == ' ' {
				j++
			}
			if j-i > 1 {
				cost = (j - i + 15) / 16 * 4
			}
			n += cost
			i = j
			continue
		case c < utf8.RuneSelf:
			j, cost = marks(s, i)
			n += cost
			i = j
			continue
		default:
			r, size := utf8.DecodeRuneInString(s[i:])
			n += runeCost(r, size)
			i += size
			continue
		}
		if short == i {
			cost++ // this piece follows a short one, as in base64 and hashes
		}
		if j-i <= 2 {
			short = j
		}
		n += cost
		i = j
	}
	return (n + 3) / 4
}

// letters reads a run of letters of one case, or capitals with the small letters after
// them, and returns the end of the run and its cost in quarters of a token.
func letters(s string, i int) (end, cost int) {
	j := i
	for j < len(s) && parse.IsUpper(s[j]) {
		j++
	}
	capitals := j - i
	for j < len(s) && s[j] >= 'a' && s[j] <= 'z' {
		j++
	}
	if j == i+capitals {
		return j, capitalsCost(capitals)
	}
	if capitals > 1 { // as in HTTPServer
		cost = capitalsCost(capitals - 1)
		i += capitals - 1
	}
	vowel := false
	for k := i; k < j && !vowel; k++ {
		switch s[k] | 0x20 {
		case 'a', 'e', 'i', 'o', 'u', 'y':
			vowel = true
		}
	}
	n := j - i
	switch {
	case !vowel:
		return j, cost + max(4, 2*n)
	case n <= 5:
		return j, cost + 4
	case n <= 16:
		return j, cost + n + 1
	}
	return j, cost + 17 + 2*(n-16) // no word is that long
}

func capitalsCost(n int) int {
	switch {
	case n <= 3:
		return 4
	case n == 4:
		return 6
	case n <= 8:
		return 2 * n
	}
	return 16 + (n-8)*12/5
}

// marks reads a run of punctuation marks and line breaks, and returns its end and its cost in
// quarters of a token. Tokenizers join two different marks, and up to eight equal ones.
func marks(s string, i int) (end, cost int) {
	first := true
	for i < len(s) && s[i] < utf8.RuneSelf && s[i] != ' ' && !parse.IsWordByte(s[i]) {
		j := i
		for j < len(s) && s[j] == s[i] {
			j++
		}
		switch {
		case first:
			cost += 4
		case s[i] == '\n':
			cost += 2
		default:
			cost += 3
		}
		cost += (j - i - 1) / 8 * 4
		if j-i > 1 && s[i] != '\n' && s[i] != '\t' {
			cost++
		}
		first = false
		i = j
	}
	return i, cost
}

// runeCost returns the cost of a character outside ASCII in quarters of a token. It is the cost
// in the worst measured tokenizer or, without a measurement, a token for each byte.
func runeCost(r rune, size int) int {
	for _, c := range runeCosts {
		if r < c.below {
			return c.quarters
		}
	}
	return 4 * size
}

// runeCosts are sorted by below. A range that was not measured costs a token for each byte.
var runeCosts = [...]struct {
	below    rune
	quarters int
}{
	{0xa0, 8},
	{0x100, 4},   // Latin-1
	{0x250, 6},   // Latin of Central Europe
	{0x370, 8},   // phonetic letters, combining marks
	{0x400, 5},   // Greek
	{0x530, 3},   // Cyrillic
	{0x590, 8},   // Armenian
	{0x600, 5},   // Hebrew
	{0x780, 5},   // Arabic
	{0x900, 12},  //
	{0x980, 5},   // Devanagari
	{0xe00, 12},  //
	{0xe80, 7},   // Thai
	{0x10a0, 12}, //
	{0x1100, 9},  // Georgian
	{0x1e00, 12}, //
	{0x2000, 6},  // Vietnamese, ancient Greek
	{0x2070, 4},  // dashes, quotation marks
	{0x3000, 8},  // arrows, boxes, symbols
	{0x3100, 4},  // kana and its marks
	{0x3400, 8},  //
	{0x4e00, 12}, // rare Han
	{0xa000, 5},  // Han
	{0xac00, 12}, //
	{0xd7b0, 6},  // Hangul
	{0xfe00, 12}, //
	{0xfe10, 8},  // variation selectors
	{0xff00, 12}, //
	{0xfff0, 5},  // full-width forms
	{0x10000, 8}, //
	{0x1f000, 16},
	{0x1fb00, 12}, // emoji
}
