package index

import "strings"

// stem returns the stem of a lower-case English word by the Porter2 ("English")
// algorithm as snowballstem.org describes it. Words that are not plain a–z are
// returned as they are. It is only ever compared with itself, so that what
// matters is that forms of a word meet, not that the stem is a word.
func stem(word string) string {
	if len(word) <= 2 || len(word) > 40 {
		return word
	}
	for i := range len(word) {
		if word[i] < 'a' || word[i] > 'z' {
			return word
		}
	}
	if s, ok := stemExceptions[word]; ok {
		return s
	}
	w := []byte(word)
	markY(w)
	r1, r2 := regions(w)
	w = step1a(w)
	if stemInvariant[string(w)] {
		return string(w)
	}
	w = step1b(w, r1)
	w = step1c(w)
	w = replaceLongest(w, step2Suffixes, r1, r1)
	w = replaceLongest(w, step3Suffixes, r1, r2)
	w = step4(w, r2)
	w = step5(w, r1, r2)
	for i, c := range w {
		if c == 'Y' {
			w[i] = 'y'
		}
	}
	return string(w)
}

// The words that the rules treat wrongly, from the algorithm's description.
var stemExceptions = map[string]string{
	"skis": "ski", "skies": "sky", "dying": "die", "lying": "lie", "tying": "tie",
	"idly": "idl", "gently": "gentl", "ugly": "ugli", "early": "earli", "only": "onli", "singly": "singl",
	"sky": "sky", "news": "news", "howe": "howe", "atlas": "atlas", "cosmos": "cosmos", "bias": "bias", "andes": "andes",
}

var stemInvariant = map[string]bool{
	"inning": true, "outing": true, "canning": true, "herring": true,
	"earring": true, "proceed": true, "exceed": true, "succeed": true,
}

func isVowel(c byte) bool { return strings.IndexByte("aeiouy", c) >= 0 }

// markY writes Y for a y that is a consonant: at the start or after a vowel.
func markY(w []byte) {
	for i, c := range w {
		if c == 'y' && (i == 0 || isVowel(w[i-1])) {
			w[i] = 'Y'
		}
	}
}

// regions returns where R1 and R2 begin: after the first consonant that follows
// a vowel, and the same again within R1.
func regions(w []byte) (r1, r2 int) {
	after := func(from int) int {
		for i := from + 1; i < len(w); i++ {
			if !isVowel(w[i]) && isVowel(w[i-1]) {
				return i + 1
			}
		}
		return len(w)
	}
	r1 = -1
	for _, p := range []string{"gener", "commun", "arsen"} {
		if strings.HasPrefix(string(w), p) {
			r1 = len(p)
		}
	}
	if r1 < 0 {
		r1 = after(0)
	}
	return r1, after(r1)
}

func hasSuffix(w []byte, s string) bool {
	return len(w) >= len(s) && string(w[len(w)-len(s):]) == s
}

func hasVowel(w []byte) bool {
	for _, c := range w {
		if isVowel(c) {
			return true
		}
	}
	return false
}

// endsShort tells whether w ends in a short syllable.
func endsShort(w []byte) bool {
	n := len(w)
	if n == 2 {
		return isVowel(w[0]) && !isVowel(w[1])
	}
	return n > 2 && !isVowel(w[n-3]) && isVowel(w[n-2]) && !isVowel(w[n-1]) && strings.IndexByte("wxY", w[n-1]) < 0
}

func step1a(w []byte) []byte {
	n := len(w)
	switch {
	case hasSuffix(w, "sses"):
		return w[:n-2]
	case hasSuffix(w, "ied"), hasSuffix(w, "ies"):
		if n > 4 {
			return w[:n-2]
		}
		return w[:n-1]
	case hasSuffix(w, "us"), hasSuffix(w, "ss"):
		return w
	case hasSuffix(w, "s") && n > 2 && hasVowel(w[:n-2]):
		return w[:n-1]
	}
	return w
}

func step1b(w []byte, r1 int) []byte {
	for _, s := range []string{"eedly", "eed"} {
		if hasSuffix(w, s) {
			if at := len(w) - len(s); at >= r1 {
				return w[:at+2]
			}
			return w
		}
	}
	for _, s := range []string{"ingly", "edly", "ing", "ed"} {
		if !hasSuffix(w, s) {
			continue
		}
		base := w[:len(w)-len(s)]
		if !hasVowel(base) {
			return w
		}
		n := len(base)
		switch {
		case hasSuffix(base, "at"), hasSuffix(base, "bl"), hasSuffix(base, "iz"):
			return append(base, 'e')
		case n >= 2 && base[n-1] == base[n-2] && strings.IndexByte("bdfgmnprt", base[n-1]) >= 0:
			return base[:n-1]
		case n <= r1 && endsShort(base):
			return append(base, 'e')
		}
		return base
	}
	return w
}

func step1c(w []byte) []byte {
	if n := len(w); n > 2 && (w[n-1] == 'y' || w[n-1] == 'Y') && !isVowel(w[n-2]) {
		w[n-1] = 'i'
	}
	return w
}

type suffixRule struct {
	suffix, to string
	inR2       bool   // must lie in R2 rather than R1
	after      string // one of these must come before it
}

// Longest first: only the longest suffix that fits is looked at.
var step2Suffixes = []suffixRule{
	{suffix: "ational", to: "ate"}, {suffix: "fulness", to: "ful"}, {suffix: "iveness", to: "ive"},
	{suffix: "ization", to: "ize"}, {suffix: "ousness", to: "ous"}, {suffix: "biliti", to: "ble"},
	{suffix: "lessli", to: "less"}, {suffix: "tional", to: "tion"}, {suffix: "alism", to: "al"},
	{suffix: "aliti", to: "al"}, {suffix: "ation", to: "ate"}, {suffix: "entli", to: "ent"},
	{suffix: "fulli", to: "ful"}, {suffix: "iviti", to: "ive"}, {suffix: "ousli", to: "ous"},
	{suffix: "abli", to: "able"}, {suffix: "alli", to: "al"}, {suffix: "anci", to: "ance"},
	{suffix: "ator", to: "ate"}, {suffix: "enci", to: "ence"}, {suffix: "izer", to: "ize"},
	{suffix: "bli", to: "ble"}, {suffix: "ogi", to: "og", after: "l"}, {suffix: "li", to: "", after: "cdeghkmnrt"},
}

var step3Suffixes = []suffixRule{
	{suffix: "ational", to: "ate"}, {suffix: "tional", to: "tion"}, {suffix: "alize", to: "al"},
	{suffix: "ative", to: "", inR2: true}, {suffix: "icate", to: "ic"}, {suffix: "iciti", to: "ic"},
	{suffix: "ical", to: "ic"}, {suffix: "ness", to: ""}, {suffix: "ful", to: ""},
}

func replaceLongest(w []byte, rules []suffixRule, r1, r2 int) []byte {
	for _, r := range rules {
		if !hasSuffix(w, r.suffix) {
			continue
		}
		at, from := len(w)-len(r.suffix), r1
		if r.inR2 {
			from = r2
		}
		if at < from || r.after != "" && (at == 0 || strings.IndexByte(r.after, w[at-1]) < 0) {
			return w
		}
		return append(w[:at], r.to...)
	}
	return w
}

var step4Suffixes = []string{
	"ement", "able", "ance", "ence", "ible", "ment", "ant", "ate", "ent", "ion", "ism", "iti", "ive", "ize", "ous", "al", "er", "ic",
}

func step4(w []byte, r2 int) []byte {
	for _, s := range step4Suffixes {
		if !hasSuffix(w, s) {
			continue
		}
		at := len(w) - len(s)
		if at >= r2 && (s != "ion" || at > 0 && (w[at-1] == 's' || w[at-1] == 't')) {
			return w[:at]
		}
		return w
	}
	return w
}

func step5(w []byte, r1, r2 int) []byte {
	n := len(w)
	switch {
	case hasSuffix(w, "e") && (n-1 >= r2 || n-1 >= r1 && !endsShort(w[:n-1])):
		return w[:n-1]
	case hasSuffix(w, "ll") && n-1 >= r2:
		return w[:n-1]
	}
	return w
}
