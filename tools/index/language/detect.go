package language

import (
	"bytes"
	"math/bits"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// The limits of how much of a page is read to detect its language, and the evidence that is
// required.
const (
	sampleBytes = 6 << 10
	sampleWords = 400
	minStops    = 3 // how many stop words a page must contain
	// minShare is the least share of a language's stop words in all words of the page. A word of
	// several languages counts in part for each. The share is 0.2 to 0.4 in prose, and almost 0
	// in a table of names.
	minShare = 0.05
	minLead  = 1.4 // the least ratio of the best score to the score of the next language
	// scriptShare is the share of a page's letters that must be in the script of its language.
	// The other letters are in names and code. A Chinese, Japanese or Korean character counts
	// as three letters.
	scriptShare = 0.3
	cjkLetters  = 3
)

// Guess is a guess at the language of a text.
type Guess struct {
	// Langs are the possible languages, the likeliest first; nil if the language is unknown.
	Langs []string
	// Sure reports whether the first of Langs is certain.
	Sure bool
}

// Detect returns the language of a page by its script, or else by its stop words and accented
// letters. It returns "" if they are not clear. It ignores fenced code.
func Detect(text []byte) string {
	var c count
	fenced := false
	for at := 0; at < min(len(text), sampleBytes) && c.words < sampleWords; {
		end := len(text)
		if i := bytes.IndexByte(text[at:], '\n'); i >= 0 {
			end = at + i + 1
		}
		line := text[at:min(end, at+2<<10)]
		at = end
		if trimmed := bytes.TrimLeft(line, " \t"); bytes.HasPrefix(trimmed, []byte("```")) || bytes.HasPrefix(trimmed, []byte("~~~")) {
			fenced = !fenced
			continue
		}
		if !fenced {
			c.add(string(line))
		}
	}
	if l := c.script(scriptShare); l != "" {
		return l
	}
	lang, best, next := c.best()
	if c.hits < minStops || best < minShare*float64(c.words) || best < minLead*next {
		return ""
	}
	return lang
}

// OfQuery guesses the language of a query's words from their script, or else from stop words
// and from letters that few languages have.
func OfQuery(words []string) Guess {
	var c count
	for _, w := range words {
		c.add(w)
	}
	if l := c.script(0); l != "" {
		if l == "zh" { // a query without kana may be Japanese too
			return Guess{Langs: []string{"zh", "ja"}}
		}
		return Guess{Langs: []string{l}, Sure: true}
	}
	_, best, next := c.best()
	g := Guess{Langs: c.ranked()}
	g.Sure = best >= 0.5 && best >= minLead*next
	return g
}

// count holds the counts of words and letters that distinguish languages.
type count struct {
	letters, words, hits              int
	kana, hangul, han, cyrillic       int
	arabic, thai, hindi, greek, hebre int
	ukrainian, persian                int
	score                             [64]float64 // by language, indexed like stops.order
}

func (c *count) add(text string) {
	t := table()
	for i := 0; i < len(text); {
		if b := text[i]; b < utf8.RuneSelf && !isLetter(b) {
			i++
			continue
		}
		r, size := utf8.DecodeRuneInString(text[i:])
		if !unicode.IsLetter(r) {
			i += size
			continue
		}
		start := i
		for i < len(text) {
			if b := text[i]; b < utf8.RuneSelf {
				if !isLetter(b) {
					break
				}
				c.letters++
				i++
				continue
			}
			r, size = utf8.DecodeRuneInString(text[i:])
			if !unicode.IsLetter(r) && !unicode.IsMark(r) {
				break
			}
			c.letters++
			c.letter(r, t.order)
			i += size
		}
		c.words++
		// A word that is joined to another word or to digits is a name.
		if i-start > 24 || start > 0 && joins(text[start-1]) || i < len(text) && joins(text[i]) && (text[i] != '.' || i+1 < len(text) && text[i+1] > ' ') {
			continue
		}
		in := t.of[strings.ToLower(text[start:i])]
		if in == 0 {
			continue
		}
		c.hits++
		share := 1 / float64(bits.OnesCount64(in))
		for ; in != 0; in &= in - 1 {
			c.score[bits.TrailingZeros64(in)] += share
		}
	}
}

func isLetter(b byte) bool { return b|0x20 >= 'a' && b|0x20 <= 'z' }

func joins(b byte) bool {
	return b == '_' || b == '$' || b == '/' || b == '@' || b == '.' || b >= '0' && b <= '9'
}

// letter counts a letter that only some languages have.
func (c *count) letter(r rune, order []string) {
	switch {
	case r < 0x0250:
		langs := accents(r)
		for l := range strings.FieldsSeq(langs) {
			c.score[slices.Index(order, l)] += 0.6 / float64(1+strings.Count(langs, " "))
		}
	case r < 0x0370:
	case r < 0x0400:
		c.greek++
	case r < 0x0530:
		c.cyrillic++
		if strings.ContainsRune("іїєґІЇЄҐ", r) {
			c.ukrainian++
		}
	case r >= 0x0590 && r < 0x0600:
		c.hebre++
	case r >= 0x0600 && r < 0x0700:
		c.arabic++
		if strings.ContainsRune("پچژگکی", r) {
			c.persian++
		}
	case r >= 0x0900 && r < 0x0980:
		c.hindi++
	case r >= 0x0e00 && r < 0x0e80:
		c.thai++
	case r >= 0x1ea0 && r < 0x1f00:
		c.score[slices.Index(order, "vi")] += 0.6
	case unicode.In(r, unicode.Hiragana, unicode.Katakana) || r == 'ー':
		c.kana++
	case unicode.Is(unicode.Hangul, r):
		c.hangul++
	case unicode.Is(unicode.Han, r):
		c.han++
	}
}

// accents returns the languages that a letter suggests, separated by spaces.
func accents(r rune) string {
	switch unicode.ToLower(r) {
	case 'ñ', '¿', '¡':
		return "es"
	case 'ß':
		return "de"
	case 'ä', 'ö':
		return "de sv fi hu tr"
	case 'ü':
		return "de tr hu es"
	case 'å':
		return "sv da no"
	case 'ø', 'æ':
		return "da no"
	case 'ã', 'õ':
		return "pt vi"
	case 'ç':
		return "fr pt tr"
	case 'œ', 'î', 'ï', 'ë', 'û':
		return "fr"
	case 'ê', 'ô', 'â':
		return "fr pt vi ro"
	case 'é':
		return "fr es pt hu cs it"
	case 'è', 'à', 'ù':
		return "fr it"
	case 'ì', 'ò':
		return "it"
	case 'á', 'í', 'ó', 'ú':
		return "es pt hu cs vi"
	case 'ł', 'ą', 'ę', 'ś', 'ź', 'ż', 'ć', 'ń':
		return "pl"
	case 'ğ', 'ş', 'ı':
		return "tr"
	case 'ř', 'ě', 'ů', 'č', 'š', 'ž', 'ý':
		return "cs"
	case 'ő', 'ű':
		return "hu"
	case 'ă':
		return "ro vi"
	case 'ț', 'ș':
		return "ro"
	case 'đ', 'ơ', 'ư':
		return "vi"
	}
	return ""
}

// script returns the language that the script of a text identifies, if letters in this script
// are at least the given share of all letters.
func (c *count) script(share float64) string {
	over := func(n int) bool { return n > 0 && float64(n) >= share*float64(c.letters) }
	cjk := c.kana + c.han
	switch {
	case c.hangul > 0 && over(cjkLetters*(c.hangul+c.han)):
		return "ko"
	// Han with kana is Japanese, but a single kana in a Chinese text is part of a quote.
	case c.kana > 0 && over(cjkLetters*cjk) && c.kana*20 >= cjk:
		return "ja"
	case over(cjkLetters * cjk):
		return "zh"
	case over(c.cyrillic):
		if c.ukrainian*50 >= c.cyrillic && c.ukrainian > 0 {
			return "uk"
		}
		return "ru"
	case over(c.arabic):
		if c.persian*20 >= c.arabic && c.persian > 0 {
			return "fa"
		}
		return "ar"
	case over(c.hindi):
		return "hi"
	case over(c.greek):
		return "el"
	case over(c.hebre):
		return "he"
	case over(c.thai):
		return "th"
	}
	return ""
}

// ranked returns the languages with any evidence, the likeliest first.
func (c *count) ranked() []string {
	t := table()
	var all []string
	for j, l := range t.order {
		if c.score[j] > 0 {
			all = append(all, l)
		}
	}
	slices.SortStableFunc(all, func(a, b string) int {
		switch x, y := c.score[slices.Index(t.order, a)], c.score[slices.Index(t.order, b)]; {
		case x > y:
			return -1
		case x < y:
			return 1
		}
		return 0
	})
	return all
}

// best returns the likeliest language, its score and the score of the next language.
func (c *count) best() (lang string, best, next float64) {
	for j, l := range table().order {
		switch s := c.score[j]; {
		case s > best:
			lang, best, next = l, s, best
		case s > next:
			next = s
		}
	}
	return lang, best, next
}
