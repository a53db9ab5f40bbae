package language

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/blevesearch/snowballstem"
	"github.com/blevesearch/snowballstem/arabic"
	"github.com/blevesearch/snowballstem/danish"
	"github.com/blevesearch/snowballstem/dutch"
	"github.com/blevesearch/snowballstem/english"
	"github.com/blevesearch/snowballstem/finnish"
	"github.com/blevesearch/snowballstem/french"
	"github.com/blevesearch/snowballstem/german"
	"github.com/blevesearch/snowballstem/hungarian"
	"github.com/blevesearch/snowballstem/italian"
	"github.com/blevesearch/snowballstem/norwegian"
	"github.com/blevesearch/snowballstem/portuguese"
	"github.com/blevesearch/snowballstem/romanian"
	"github.com/blevesearch/snowballstem/russian"
	"github.com/blevesearch/snowballstem/spanish"
	"github.com/blevesearch/snowballstem/swedish"
	"github.com/blevesearch/snowballstem/turkish"
	"golang.org/x/text/unicode/norm"
)

// maxStemBytes is the length of the longest word that is stemmed. Longer words are names,
// hashes and encoded data.
const maxStemBytes = 40

func stemmer(lang string) func(*snowballstem.Env) bool {
	switch lang {
	case "ar":
		return arabic.Stem
	case "da":
		return danish.Stem
	case "de":
		return german.Stem
	case "en":
		return english.Stem
	case "es":
		return spanish.Stem
	case "fi":
		return finnish.Stem
	case "fr":
		return french.Stem
	case "hu":
		return hungarian.Stem
	case "it":
		return italian.Stem
	case "nl":
		return dutch.Stem
	case "no":
		return norwegian.Stem
	case "pt":
		return portuguese.Stem
	case "ro":
		return romanian.Stem
	case "ru":
		return russian.Stem
	case "sv":
		return swedish.Stem
	case "tr":
		return turkish.Stem
	}
	return nil
}

// Stems reports whether Stem and Term can differ for words in Latin letters in a language.
func Stems(lang string) bool {
	lang = Base(lang)
	switch lang {
	case "en", "ar", "ru":
		return false
	case "vi":
		return true
	}
	return stemmer(lang) != nil
}

// Term returns the form of a word that is indexed and searched for, whatever the language of
// the page or the query. It folds the word and stems it by script: Latin as English, Cyrillic
// as Russian, Arabic as Arabic, and Devanagari as Hindi.
func Term(word string) string {
	if isASCII(word) {
		return stemASCII(strings.ToLower(word))
	}
	if isSteady(word) {
		return word
	}
	script, _ := utf8.DecodeRuneInString(word)
	switch {
	case unicode.Is(unicode.Cyrillic, script):
		low := strings.ReplaceAll(strings.ToLower(norm.NFC.String(word)), "ё", "е")
		if !strings.ContainsAny(low, "іїєґўјљњћђџ") { // other Slavic languages
			low = run(russian.Stem, low)
		}
		return Fold(low)
	case unicode.Is(unicode.Arabic, script):
		return stemArabic(Fold(word))
	case unicode.Is(unicode.Devanagari, script):
		return stemHindi(Fold(word))
	}
	return stemASCII(Fold(word))
}

// isSteady reports whether a word consists only of Chinese, Japanese and Korean characters.
// Such words have one form and no stem. Stemming them would be slow, because the index splits
// texts in these scripts into pairs of characters, which are many words.
func isSteady(word string) bool {
	for _, r := range word {
		switch {
		case r >= 0x4e00 && r < 0xa000, r >= 0xac00 && r < 0xd7a4, r >= 0x3041 && r < 0x3097, r >= 0x30a1 && r < 0x30fb, r == 'ー':
		default:
			return false
		}
	}
	return true
}

// Stem returns the folded stem of a word in a language for which Stems is true. The stems of a
// word with and without its accents can differ. For Vietnamese, Stem returns the word itself,
// because accents distinguish words.
func Stem(lang, word string) string {
	lang = Base(lang)
	if len(word) > maxStemBytes || !latin(word) {
		return Term(word)
	}
	low := norm.NFC.String(word)
	if lang == "tr" {
		low = strings.ToLowerSpecial(unicode.TurkishCase, low)
	} else {
		low = strings.ToLower(low)
	}
	if lang == "vi" {
		return low
	}
	if s := stemmer(lang); s != nil {
		low = run(s, low)
	}
	return Fold(low)
}

// latin reports whether a word consists of Latin letters.
func latin(word string) bool {
	for _, r := range word {
		if !unicode.Is(unicode.Latin, r) && !unicode.Is(unicode.Mn, r) {
			return false
		}
	}
	return true
}

func isASCII(s string) bool {
	for i := range len(s) {
		if s[i] >= utf8.RuneSelf {
			return false
		}
	}
	return true
}

// stemASCII stems a folded word of the letters a to z as English.
func stemASCII(word string) string {
	if len(word) <= 2 || len(word) > maxStemBytes {
		return word
	}
	for i := range len(word) {
		if word[i] < 'a' || word[i] > 'z' {
			return word
		}
	}
	return run(english.Stem, word)
}

// run runs a generated stemmer. It returns the word itself if the stemmer leaves nothing or
// panics.
func run(stem func(*snowballstem.Env) bool, word string) (stemmed string) {
	if len(word) > maxStemBytes {
		return word
	}
	defer func() {
		if recover() != nil || stemmed == "" {
			stemmed = word
		}
	}()
	env := snowballstem.NewEnv(word)
	stem(env)
	return env.Current()
}

// stemArabic removes the article and the endings of a folded word: "ال", alone or after a
// conjunction or preposition, and the endings of number, gender and possession. It is the light
// stemmer of Larkey, Ballesteros and Connell ("Light Stemming for Arabic", 2007, light10). With
// it, searches find more than with a root stemmer. The generated stemmer expects letters that
// are not folded.
func stemArabic(word string) string {
	r := []rune(word)
	if len(r) > 3 && r[0] == 'و' {
		r = r[1:]
	}
	for _, p := range []string{"وال", "بال", "كال", "فال", "ال", "لل"} {
		if n := utf8.RuneCountInString(p); len(r) >= n+2 && string(r[:n]) == p {
			r = r[n:]
			break
		}
	}
	for _, s := range []string{"ها", "ان", "ات", "ون", "ين", "يه", "ه", "ي"} {
		if n := utf8.RuneCountInString(s); len(r) >= n+2 && string(r[len(r)-n:]) == s {
			r = r[:len(r)-n]
		}
	}
	return string(r)
}

// stemHindi removes the endings of case, number and gender of a folded word, after Ramanathan
// and Rao ("A Lightweight Stemmer for Hindi", 2003).
func stemHindi(word string) string {
	for _, s := range []string{"ियों", "ियां", "ाओं", "ाएं", "ुओं", "ुएं", "ताओं", "नाओं", "कर", "ाओ", "िए", "ाई", "ाए", "ने", "नी", "ना", "ते", "ती", "ता",
		"ों", "ें", "ीं", "ां", "ा", "े", "ी", "ो", "ि", "ु", "ू"} {
		if strings.HasSuffix(word, s) && utf8.RuneCountInString(word)-utf8.RuneCountInString(s) >= 2 {
			return strings.TrimSuffix(word, s)
		}
	}
	return word
}
