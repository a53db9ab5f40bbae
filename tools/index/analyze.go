package index

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"
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
	term       string // folded and stemmed
	parts      []string
	// joined is the term of a compound that ends here (use_async_data,
	// use-async-data, 1.0.21), "" where there is none.
	joined string
}

// analyzer turns text into terms. It caches stems and is not safe for
// concurrent use: every goroutine makes its own.
type analyzer struct {
	stems map[string]string
	buf   []byte
	marks []int
}

const maxCachedStems = 1 << 16

func newAnalyzer() *analyzer { return &analyzer{stems: make(map[string]string, 1024)} }

// fold lower-cases a word, removes accents and compatibility forms, and stems.
func (a *analyzer) fold(s string) string {
	ascii := true
	a.buf = a.buf[:0]
	for i := range len(s) {
		c := s[i]
		if c >= utf8.RuneSelf {
			ascii = false
			break
		}
		if c >= 'A' && c <= 'Z' {
			c += 'a' - 'A'
		}
		a.buf = append(a.buf, c)
	}
	if ascii {
		if t, ok := a.stems[string(a.buf)]; ok {
			return t
		}
		return a.remember(string(a.buf), stem(string(a.buf)))
	}
	if t, ok := a.stems[s]; ok {
		return t
	}
	var b strings.Builder
	for _, r := range norm.NFKD.String(s) {
		if unicode.Is(unicode.Mn, r) && r < 0x0600 { // accents of Latin, Greek and Cyrillic
			continue
		}
		if r < utf8.RuneSelf && !isWordByte(byte(r)) {
			continue
		}
		b.WriteRune(unicode.ToLower(r))
	}
	return a.remember(s, stem(norm.NFC.String(b.String())))
}

func isWordByte(c byte) bool {
	return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9'
}

func (a *analyzer) remember(k, v string) string {
	if len(a.stems) >= maxCachedStems {
		clear(a.stems)
	}
	a.stems[k] = v
	return v
}

// spaceless tells whether a script is written without spaces between words,
// or is better matched by pairs of characters (Hangul, whose words carry
// particles).
func spaceless(r rune) bool {
	if r < 0x0e00 {
		return false
	}
	return unicode.In(r, unicode.Han, unicode.Hiragana, unicode.Katakana, unicode.Hangul,
		unicode.Thai, unicode.Lao, unicode.Khmer, unicode.Myanmar) || r == 'ー'
}

func isWordRune(r rune) bool {
	return unicode.IsLetter(r) || unicode.IsDigit(r) || unicode.IsMark(r)
}

// words calls yield for every word of the text in order.
func (a *analyzer) words(text string, yield func(word)) {
	var chain []string // words of the compound being read
	chainEnd := -1
	numeric := true
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
				i = a.bigrams(text, i, yield)
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
		w := word{start: start, end: i, term: a.fold(raw), parts: a.split(raw)}
		if w.term == "" {
			continue
		}
		// A compound goes on over one joiner with no space around it.
		if chainEnd >= 0 && start == chainEnd+1 && isJoiner(text[chainEnd]) && len(chain) < 8 {
			chain = append(chain, raw)
			numeric = numeric && isNumber(raw)
			w.joined = a.join(chain, numeric)
		} else {
			chain = append(chain[:0], raw)
			numeric = isNumber(strings.TrimLeft(raw, "vV"))
		}
		chainEnd = i
		yield(w)
	}
}

// join returns the term of a compound: the same as of the one word that its
// parts make, so that use_async_data and useAsyncData meet; a version keeps its
// dots.
func (a *analyzer) join(parts []string, version bool) string {
	sep := ""
	if version {
		sep = versionDot
	}
	j := strings.Join(parts, sep)
	if version {
		j = strings.TrimLeft(j, "vV") // v1.0.21 is 1.0.21
	}
	if len(j) > maxTermBytes {
		return ""
	}
	return a.fold(j)
}

func isJoiner(c byte) bool { return c == '_' || c == '-' || c == '.' || c == '$' }

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
// character.
func (a *analyzer) bigrams(text string, i int, yield func(word)) int {
	prev, n := -1, 0
	for i < len(text) {
		r, size := utf8.DecodeRuneInString(text[i:])
		if !spaceless(r) && !(n > 0 && unicode.IsMark(r)) {
			break
		}
		n++
		if prev >= 0 {
			if t := a.fold(text[prev : i+size]); t != "" {
				yield(word{start: prev, end: i + size, term: t})
			}
		}
		prev = i
		i += size
	}
	if n == 1 {
		if t := a.fold(text[prev:i]); t != "" {
			yield(word{start: prev, end: i, term: t})
		}
	}
	return i
}

// split returns the folded parts of a camelCase, PascalCase or letter-digit
// word, nil where it has only one.
func (a *analyzer) split(s string) []string {
	if len(s) < 3 {
		return nil
	}
	a.marks = a.marks[:0]
	for i := 1; i < len(s); i++ {
		p, c := s[i-1], s[i]
		if c >= utf8.RuneSelf || p >= utf8.RuneSelf {
			continue
		}
		switch {
		case isUpper(c) && !isUpper(p):
			a.marks = append(a.marks, i)
		case isUpper(c) && isUpper(p) && i+1 < len(s) && s[i+1] >= 'a' && s[i+1] <= 'z' && !(s[i+1] == 's' && i+2 == len(s)):
			a.marks = append(a.marks, i) // HTTPServer: before the S
		case isDigit(c) != isDigit(p):
			a.marks = append(a.marks, i)
		}
	}
	if len(a.marks) == 0 {
		return nil
	}
	parts := make([]string, 0, len(a.marks)+1)
	from := 0
	for _, m := range a.marks {
		parts = append(parts, a.fold(s[from:m]))
		from = m
	}
	return append(parts, a.fold(s[from:]))
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
	})
	return dst, extra
}

// stopWords carry no topic. They are indexed, so that phrases hold, but a query
// drops them unless it has nothing else.
var stopWords = func() map[string]bool {
	m := make(map[string]bool, 200)
	for w := range strings.FieldsSeq(`a about above after again against all also am an and any are as at be because been
		before being below between both but by can could did do does doing down during each few for from further had has
		have having he her here hers him his how i if in into is it its itself just me might more most must my no nor not
		now of off on once only or other our out over own same shall she should so some such than that the their theirs
		them then there these they this those through to too under until up upon us very was we were what when where which
		while who whom why will with would you your yours`) {
		m[w] = true
	}
	return m
}()
