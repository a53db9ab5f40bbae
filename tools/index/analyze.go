package index

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"satchel/tools/index/language"
)

// Terms are what FTS5 stores and what queries are made of. Every term consists
// of ASCII letters and digits and of bytes from 0x80 on, which FTS5's "ascii"
// tokenizer passes through one by one: it never splits or changes a term.

const (
	maxTermBytes = 64 // longer runs (base64, minified code) are no words
	versionDot   = "·"
)

// word is one occurrence in a text.
type word struct {
	start, end int    // bytes in the text
	term       string // folded and stemmed, the same in every language
	parts      []string
	// joined is the term of a compound that ends here (use_async_data,
	// use-async-data, 1.0.21, @nuxt/kit, C++), "" where there is none.
	joined string
	// own is another form that a page has the word under: its stem in the
	// language that the analyzer was told of; the last character of a run without
	// spaces, which begins no pair.
	own string
}

// token is a word as the analyzer knows it, for those who count words by the
// million; see word, which says the same.
type token struct {
	start, end  int
	word        wordID
	term        termID
	parts       []termID
	joined, own termID
}

// analyzer turns text into terms. It keeps what it made of words and is not safe
// for concurrent use: every goroutine has its own.
type analyzer struct {
	known *vocabulary
	lang  string // whose stems words are given beside their terms, "" for none

	// Of chunkTerms.
	plain, derived []termID
	hashes         []uint32
	counts         []termCount
	bytes          tokens
}

// newAnalyzer returns one for queries and updates; newBuilder one that meets all
// words of a collection.
func newAnalyzer() *analyzer { return &analyzer{known: newVocabulary(queryWords)} }
func newBuilder() *analyzer  { return &analyzer{known: newVocabulary(buildWords)} }

// in tells the analyzer what language the texts after it are in, "" where that
// is not known. It changes nothing but word.own.
func (a *analyzer) in(lang string) {
	if !language.Stems(lang) {
		lang = ""
	}
	a.lang = language.Base(lang)
}

// ownTerm is the term of a stem in a language. It is no other language's, nor
// anything that Term gives: words that look alike in two languages would be
// found in pages of the wrong one, and a stem is no word to respell another with.
func ownTerm(lang, stem string) string {
	if stem == "" {
		return ""
	}
	return lang + versionDot + stem
}

// fold lower-cases a word, removes accents and compatibility forms, and stems
// (see language.Term).
func (a *analyzer) fold(s string) string {
	a.refresh()
	_, t := a.known.know(s)
	return a.known.texts[t]
}

func isWordByte(c byte) bool {
	return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9'
}

// spaceless tells whether a script is written without spaces between words,
// or is better matched by pairs of characters (Hangul, whose words carry
// particles).
func spaceless(r rune) bool {
	switch {
	case r < 0x0e00:
		return false
	case r >= 0x4e00 && r < 0xa000, r >= 0xac00 && r < 0xd7a4, r >= 0x3041 && r < 0x3097, r >= 0x30a1 && r < 0x30fb, r == 'ー', r == 'ｰ':
		return true
	}
	return unicode.In(r, unicode.Han, unicode.Hiragana, unicode.Katakana, unicode.Hangul,
		unicode.Thai, unicode.Lao, unicode.Khmer, unicode.Myanmar)
}

func isWordRune(r rune) bool {
	return unicode.IsLetter(r) || unicode.IsDigit(r) || unicode.IsMark(r)
}

// words calls yield for every word of the text in order.
func (a *analyzer) words(text string, yield func(word)) {
	a.refresh()
	known := a.known // also where yield makes the analyzer begin another one
	known.scan(text, a.lang, func(t token) {
		w := word{start: t.start, end: t.end, term: known.texts[t.term], joined: known.texts[t.joined], own: known.texts[t.own]}
		if t.parts != nil {
			w.parts = known.forms[known.words[t.word].forms].texts
		}
		yield(w)
	})
}

// scan is words within one vocabulary, for texts in a language.
func (v *vocabulary) scan(text, lang string, yield func(token)) {
	var names [8]string
	chain := names[:0] // words of the compound being read
	chainEnd := -1
	numeric, scoped := true, false // it is a version; it began with @
	for i := 0; i < len(text); {
		c := text[i]
		if c < utf8.RuneSelf && !isWordByte(c) {
			i++
			continue
		}
		r, size := rune(c), 1
		if c >= utf8.RuneSelf {
			r, size = utf8.DecodeRuneInString(text[i:])
			if r == utf8.RuneError || !isWordRune(r) {
				i += size
				continue
			}
			if spaceless(r) {
				i = v.bigrams(text, i, yield)
				continue
			}
		}
		start := i
		i += size
		for i < len(text) {
			c = text[i]
			if c < utf8.RuneSelf {
				if !isWordByte(c) {
					break
				}
				i++
				continue
			}
			r, size = utf8.DecodeRuneInString(text[i:])
			if r == utf8.RuneError || !isWordRune(r) || spaceless(r) {
				break
			}
			i += size
		}
		if i-start > maxTermBytes {
			chainEnd = -1
			continue
		}
		raw := text[start:i]
		w := token{start: start, end: i}
		if w.word, w.term = v.know(raw); w.term == 0 {
			continue
		}
		w.parts = v.parts(w.word, raw)
		if lang != "" && w.parts == nil && i-start > 2 {
			w.own = v.ownStem(w.word, raw, lang)
		}
		// A compound goes on over one joiner with no space around it.
		if chainEnd >= 0 && start == chainEnd+1 && len(chain) < len(names) && joins(text[chainEnd], chain, raw, scoped) {
			chain = append(chain, raw)
			numeric = numeric && text[chainEnd] == '.' && isNumber(raw)
			w.joined = v.compound(chain, numeric)
		} else {
			chain = append(chain[:0], raw)
			numeric = isDigit(raw[len(raw)-1]) && isNumber(strings.TrimLeft(raw, "vV"))
			scoped = start > 0 && text[start-1] == '@'
			w.joined = v.marked(text, start, i)
		}
		chainEnd = i
		yield(w)
	}
}

// joins tells whether a mark between a compound and the word after it makes them
// one name: use_async-data, node:fs, @nuxt/kit, HTTP/2.
func joins(mark byte, chain []string, raw string, scoped bool) bool {
	switch mark {
	case '_', '-', '.', '$':
		return true
	case ':':
		return !isNumber(raw) && !isNumber(chain[len(chain)-1])
	case '/':
		return len(chain) == 1 && (scoped || isNumber(raw) && !isNumber(chain[0]))
	}
	return false
}

// marked returns the term of a word that the marks around it make another one:
// C++ is cpp, C# csharp, .NET dotnet.
func (v *vocabulary) marked(text string, start, end int) termID {
	raw, rest := text[start:end], text[end:]
	if len(raw) == 1 {
		switch c := raw[0] | 0x20; {
		case (c == 'c' || c == 'g') && strings.HasPrefix(rest, "++"):
			return v.term(string(c) + "pp")
		case (c == 'c' || c == 'f' || c == 'j') && strings.HasPrefix(rest, "#"):
			return v.term(string(c) + "sharp")
		}
		return 0
	}
	// A dot before a name, not one that calls a method or ends a file's name.
	if start == 0 || text[start-1] != '.' || start > 1 && strings.IndexByte(" (\"'`\n,/", text[start-2]) < 0 || strings.HasPrefix(rest, "(") || isDigit(raw[0]) {
		return 0
	}
	return v.compound([]string{"dot", raw}, false)
}

// compound returns the term of a compound: the same as of the one word that its
// parts make, so that use_async_data and useAsyncData meet; a version keeps its
// dots.
func (v *vocabulary) compound(parts []string, version bool) termID {
	sep := ""
	if version {
		sep = versionDot
	}
	j := strings.Join(parts, sep)
	if version {
		j = strings.TrimLeft(j, "vV") // v1.0.21 is 1.0.21
	}
	if len(j) > maxTermBytes {
		return 0
	}
	_, t := v.know(j)
	return t
}

// join is compound, by the term's text; "" where there is none.
func (a *analyzer) join(parts []string, version bool) string {
	a.refresh()
	return a.known.texts[a.known.compound(parts, version)]
}

func isNumber(s string) bool {
	if s == "" {
		return false
	}
	for i := range len(s) {
		if s[i] < '0' || s[i] > '9' {
			return false
		}
	}
	return true
}

// bigrams reads a run of a spaceless script and yields its pairs, or its one
// character. A character has its marks with it. A query of one character finds
// the pairs that begin with it (see oneCharacter), and the run that ends with it.
func (v *vocabulary) bigrams(text string, i int, yield func(token)) int {
	prev, at := -1, -1 // the last two characters
	var pair token     // not yielded yet
	emit := func(t token) {
		if t.term != 0 {
			yield(t)
		}
	}
	read := func(start, end int) token {
		w, t := v.know(text[start:end])
		return token{start: start, end: end, word: w, term: t}
	}
	for i < len(text) {
		r, size := utf8.DecodeRuneInString(text[i:])
		if mark := at >= 0 && (unicode.IsMark(r) || r == 'ﾞ' || r == 'ﾟ'); !mark {
			if !spaceless(r) {
				break
			}
			if prev >= 0 {
				emit(pair)
				pair = read(prev, i)
			}
			prev, at = at, i
		}
		i += size
	}
	if at < 0 {
		return i
	}
	last := read(at, i)
	if prev < 0 {
		emit(last)
		return i
	}
	emit(pair)
	pair = read(prev, i)
	pair.own = last.term
	emit(pair)
	return i
}

// cut returns where the parts of a camelCase, PascalCase or letter-digit word
// begin after its first, none where it has only one; until it is called again.
func (v *vocabulary) cut(s string) []int {
	v.marks = v.marks[:0]
	if len(s) < 3 {
		return nil
	}
	for i := 1; i < len(s); i++ {
		p, c := s[i-1], s[i]
		if c >= utf8.RuneSelf || p >= utf8.RuneSelf {
			continue
		}
		switch {
		case isUpper(c) && !isUpper(p):
			v.marks = append(v.marks, i)
		case isUpper(c) && isUpper(p) && i+1 < len(s) && s[i+1] >= 'a' && s[i+1] <= 'z' && !(s[i+1] == 's' && i+2 == len(s)):
			v.marks = append(v.marks, i) // HTTPServer: before the S
		case isDigit(c) != isDigit(p):
			v.marks = append(v.marks, i)
		}
	}
	return v.marks
}

func isUpper(c byte) bool { return c >= 'A' && c <= 'Z' }
func isDigit(c byte) bool { return c >= '0' && c <= '9' }

// terms appends the terms of text to dst (words, in order) and to extra (parts
// of identifiers and whole compounds).
func (a *analyzer) terms(text string, dst, extra []string) (words, extras []string) {
	a.words(text, func(w word) {
		dst = append(dst, w.term)
		extra = append(extra, w.parts...)
		if w.joined != "" {
			extra = append(extra, w.joined)
		}
		if w.own != "" {
			extra = append(extra, w.own)
		}
	})
	return dst, extra
}

// isWhole reports whether a text's words make one identifier.
func (a *analyzer) isWhole(text, identifier string) bool {
	// Mostly the first letter tells, which no stemmer changes.
	if identifier == "" || text != "" && isWordByte(text[0]) && identifier[0] < utf8.RuneSelf && text[0]|0x20 != identifier[0]|0x20 {
		return false
	}
	var b strings.Builder
	a.words(text, func(w word) { b.WriteString(text[w.start:w.end]) })
	return a.join([]string{b.String()}, false) == identifier
}

// maxPhrase is how many words of a phrase are looked for.
const maxPhrase = 32

// phrase returns the terms of a text's words.
func (a *analyzer) phrase(text string) []string {
	words, _ := a.terms(text, nil, nil)
	return words[:min(len(words), maxPhrase)]
}
