package parse

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"satchel/tools/index/language"
)

// Terms are the entries of the index and of queries. A term consists of ASCII letters, ASCII
// digits and bytes from 0x80 on. For FTS5's "ascii" tokenizer, all of these are parts of words,
// so it never splits or changes a term.

const (
	MaxTermBytes = 64  // longer runs are not words (base64, minified code)
	VersionDot   = "·" // separates the numbers of a version, or a language and a stem, in a term
)

// Word is one occurrence of a word in a text.
type Word struct {
	Start, End int      // bytes in the text
	Term       string   // folded and stemmed, the same in every language
	Parts      []string // the terms of the parts of an identifier; nil for other words
	// Joined is the term of a compound that ends with this word (use_async_data,
	// use-async-data, 1.0.21, @nuxt/kit, C++); "" if there is none.
	Joined string
	// Own is another form of the word: its stem in the language that Analyzer.In sets. For the
	// last pair of a run without spaces, it is the last character, with which no pair begins.
	Own string
}

// token is a Word with ids in place of texts, because building an index reads millions of words.
type token struct {
	start, end  int
	word        wordID
	term        termID
	parts       []termID
	joined, own termID
}

// Analyzer turns text into terms. It caches the forms of words and is not safe for
// concurrent use.
type Analyzer struct {
	Known *vocabulary
	lang  string // the language for Own; "" for none

	// Buffers of ChunkTerms.
	plain, derived []termID
	hashes         []uint32
	counts         []termCount
	bytes          Tokens
}

// NewAnalyzer returns an analyzer for queries and updates.
func NewAnalyzer() *Analyzer { return &Analyzer{Known: NewVocabulary(queryWords)} }

// NewBuilder returns an analyzer for building a whole index. It caches more words than an
// analyzer for queries.
func NewBuilder() *Analyzer { return &Analyzer{Known: NewVocabulary(buildWords)} }

// In sets the language of the following texts; "" means unknown. The language only affects
// Word.Own.
func (a *Analyzer) In(lang string) {
	if !language.Stems(lang) {
		lang = ""
	}
	a.lang = language.Base(lang)
}

// OwnTerm returns the term of a stem in a language. It differs from the terms of other languages
// and from the results of language.Term. Otherwise a word would find pages in another language
// with a word of the same spelling, and a search could take a stem for a correctly spelt word.
func OwnTerm(lang, stem string) string {
	if stem == "" {
		return ""
	}
	return lang + VersionDot + stem
}

// Fold lower-cases a word, removes accents and compatibility forms, and stems
// (see language.Term).
func (a *Analyzer) Fold(s string) string {
	a.refresh()
	_, t := a.Known.know(s)
	return a.Known.texts[t]
}

// IsWordByte reports whether a byte of ASCII is part of a word.
func IsWordByte(c byte) bool {
	return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9'
}

// Spaceless reports whether a character is from a script that is best matched by pairs of
// characters: a script without spaces between words, or Hangul, whose words carry particles.
func Spaceless(r rune) bool {
	switch {
	case r < 0x0e00:
		return false
	case r >= 0x4e00 && r < 0xa000, r >= 0xac00 && r < 0xd7a4, r >= 0x3041 && r < 0x3097, r >= 0x30a1 && r < 0x30fb, r == 'ー', r == 'ｰ':
		return true
	}
	return unicode.In(r, unicode.Han, unicode.Hiragana, unicode.Katakana, unicode.Hangul,
		unicode.Thai, unicode.Lao, unicode.Khmer, unicode.Myanmar)
}

// IsWordRune reports whether a character is part of a word.
func IsWordRune(r rune) bool {
	return unicode.IsLetter(r) || unicode.IsDigit(r) || unicode.IsMark(r)
}

// Words calls yield with each word of the text, in order.
func (a *Analyzer) Words(text string, yield func(Word)) {
	a.refresh()
	known := a.Known // yield may make the analyzer start another vocabulary
	known.scan(text, a.lang, func(t token) {
		w := Word{Start: t.start, End: t.end, Term: known.texts[t.term], Joined: known.texts[t.joined], Own: known.texts[t.own]}
		if t.parts != nil {
			w.Parts = known.forms[known.words[t.word].forms].texts
		}
		yield(w)
	})
}

// scan calls yield with each word of a text in the language lang.
func (v *vocabulary) scan(text, lang string, yield func(token)) {
	var names [8]string
	chain := names[:0] // words of the compound being read
	chainEnd := -1
	numeric, scoped := true, false // whether the compound is a version, and whether @ precedes it
	for i := 0; i < len(text); {
		c := text[i]
		if c < utf8.RuneSelf && !IsWordByte(c) {
			i++
			continue
		}
		r, size := rune(c), 1
		if c >= utf8.RuneSelf {
			r, size = utf8.DecodeRuneInString(text[i:])
			if r == utf8.RuneError || !IsWordRune(r) {
				i += size
				continue
			}
			if Spaceless(r) {
				i = v.bigrams(text, i, yield)
				continue
			}
		}
		start := i
		i += size
		for i < len(text) {
			c = text[i]
			if c < utf8.RuneSelf {
				if !IsWordByte(c) {
					break
				}
				i++
				continue
			}
			r, size = utf8.DecodeRuneInString(text[i:])
			if r == utf8.RuneError || !IsWordRune(r) || Spaceless(r) {
				break
			}
			i += size
		}
		if i-start > MaxTermBytes {
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
		// A mark without spaces around it continues a compound.
		if chainEnd >= 0 && start == chainEnd+1 && len(chain) < len(names) && joins(text[chainEnd], chain, raw, scoped) {
			chain = append(chain, raw)
			numeric = numeric && text[chainEnd] == '.' && isNumber(raw)
			w.joined = v.compound(chain, numeric)
		} else {
			chain = append(chain[:0], raw)
			numeric = IsDigit(raw[len(raw)-1]) && isNumber(strings.TrimLeft(raw, "vV"))
			scoped = start > 0 && text[start-1] == '@'
			w.joined = v.marked(text, start, i)
		}
		chainEnd = i
		yield(w)
	}
}

// joins reports whether a mark joins a compound and the word after it into one name:
// use_async_data, node:fs, @nuxt/kit, HTTP/2.
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

// marked returns the term of a word whose marks change its meaning: C++ is cpp, C# is csharp,
// .NET is dotnet.
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
	// A dot begins a name, unless it belongs to a method call or a file name.
	if start == 0 || text[start-1] != '.' || start > 1 && strings.IndexByte(" (\"'`\n,/", text[start-2]) < 0 || strings.HasPrefix(rest, "(") || IsDigit(raw[0]) {
		return 0
	}
	return v.compound([]string{"dot", raw}, false)
}

// compound returns the term of a compound: the term of its joined parts. So use_async_data and
// useAsyncData have the same term. A version keeps its dots.
func (v *vocabulary) compound(parts []string, version bool) termID {
	sep := ""
	if version {
		sep = VersionDot
	}
	j := strings.Join(parts, sep)
	if version {
		j = strings.TrimLeft(j, "vV") // v1.0.21 is 1.0.21
	}
	if len(j) > MaxTermBytes {
		return 0
	}
	_, t := v.know(j)
	return t
}

// Join returns the term of the compound with these parts, or "" if there is none.
func (a *Analyzer) Join(parts []string, version bool) string {
	a.refresh()
	return a.Known.texts[a.Known.compound(parts, version)]
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

// bigrams reads a run of a spaceless script and yields its pairs of characters, or its only
// character. A character includes its marks. A query of one character finds the pairs that
// begin with the character, and the runs that end with it.
func (v *vocabulary) bigrams(text string, i int, yield func(token)) int {
	prev, at := -1, -1 // where the last two characters begin
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
			if !Spaceless(r) {
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

// cut returns the positions at which the parts of a camelCase, PascalCase or letter-digit
// word begin, except the first. The result is valid until the next call.
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
		case IsUpper(c) && !IsUpper(p):
			v.marks = append(v.marks, i)
		case IsUpper(c) && IsUpper(p) && i+1 < len(s) && s[i+1] >= 'a' && s[i+1] <= 'z' && !(s[i+1] == 's' && i+2 == len(s)):
			v.marks = append(v.marks, i) // HTTPServer: before the S
		case IsDigit(c) != IsDigit(p):
			v.marks = append(v.marks, i)
		}
	}
	return v.marks
}

// IsUpper reports whether a byte is an ASCII capital.
func IsUpper(c byte) bool { return c >= 'A' && c <= 'Z' }

// IsDigit reports whether a byte is an ASCII digit.
func IsDigit(c byte) bool { return c >= '0' && c <= '9' }

// Terms appends the terms of the words in text to dst, in order. It appends the words' other
// terms to extra: those of Parts, Joined and Own.
func (a *Analyzer) Terms(text string, dst, extra []string) (words, extras []string) {
	a.Words(text, func(w Word) {
		dst = append(dst, w.Term)
		extra = append(extra, w.Parts...)
		if w.Joined != "" {
			extra = append(extra, w.Joined)
		}
		if w.Own != "" {
			extra = append(extra, w.Own)
		}
	})
	return dst, extra
}

// IsWhole reports whether identifier is the term of all words of the text, joined into one.
func (a *Analyzer) IsWhole(text, identifier string) bool {
	// The first letter usually decides, because no stemmer changes it.
	if identifier == "" || text != "" && IsWordByte(text[0]) && identifier[0] < utf8.RuneSelf && text[0]|0x20 != identifier[0]|0x20 {
		return false
	}
	var b strings.Builder
	a.Words(text, func(w Word) { b.WriteString(text[w.Start:w.End]) })
	return a.Join([]string{b.String()}, false) == identifier
}

// maxPhrase is how many words of a phrase are used.
const maxPhrase = 32

// Phrase returns the terms of the first maxPhrase words of a phrase.
func (a *Analyzer) Phrase(text string) []string {
	words, _ := a.Terms(text, nil, nil)
	return words[:min(len(words), maxPhrase)]
}
