package query

import (
	"fmt"
	"satchel/tools/index/parse"
	"slices"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"
)

// Parsed is a parsed query. Every query can be parsed: unknown syntax counts as words, with
// notes.
type Parsed struct {
	Explain bool     // see Explain of index.Query
	Words   []string // in order, as written
	Phrases []string // a document must contain them
	Without []string // words and phrases that a document must not contain
	Filters Filters
	Sort    SortOrder
	Limit   int // 0: not given
	Notes   []string
}

// SortOrder is the order of an answer.
type SortOrder int

const (
	ByRelevance SortOrder = iota
	ByDate
	ByPath
)

// Limits of one query besides its length. Qualifiers and phrases above a limit are words.
const (
	maxQualifiers = 40
	MaxPhrases    = 16
	MaxNotes      = 8
	maxDateWords  = 4 // "since:the last 2 weeks"
)

// Parse reads the query language:
//
//	word  -word  "exact phrase"  -"exact phrase"
//	source:nuxt  path:docs/**  kind:memory  lang:en  version:5.1  tag:draft
//	since:2026-01-01  since:last week  before:2026-06  sort:recent  limit:20
//
// A "-" negates a qualifier. The value of a qualifier may be quoted, and commas separate several
// values. An unknown qualifier is a word, and gets a note. The syntax of other search engines
// (AND, OR, NEAR, *, ^, parentheses, braces) is a word, or is ignored.
func Parse(text string, now time.Time, maxBytes int) (q Parsed) {
	if len(text) > maxBytes {
		text = parse.Clip(text, maxBytes)
		q.Notef("The query is longer than %d bytes; only its beginning was used.", maxBytes)
	}
	text = cleanQuery(text)
	p := queryParser{q: &q, rest: text, now: now, command: isCommand(text)}
	for p.next() {
	}
	if len(q.Words) == 0 && len(q.Without) > 0 && q.Filters.Empty() {
		q.Notef("The query has only words to exclude; add words to search for.")
	}
	return q
}

// cleanQuery removes invalid and invisible characters from a query: control characters, marks
// of direction, characters of zero width, and more than two accents on one letter.
func cleanQuery(s string) string {
	marks := 0
	return strings.Map(func(r rune) rune {
		if !unicode.Is(unicode.Mn, r) {
			marks = 0
		} else if marks++; marks > 2 {
			return -1
		}
		switch {
		case unicode.IsControl(r) || unicode.IsSpace(r), r == utf8.RuneError:
			return ' '
		case r == 0x200c || r == 0x200d: // these distinguish words in Persian and Indian scripts
			return r
		case unicode.Is(unicode.Cf, r):
			return -1
		}
		return r
	}, strings.ToValidUTF8(s, " "))
}

// isCommand reports whether a query is a shell command. In a command, "-name" is an option and
// excludes nothing.
func isCommand(s string) bool {
	for _, sign := range []string{" --", " | ", " && ", "$(", " 2>", "./"} {
		if i := strings.Index(s, sign); i >= 0 && (sign != " --" || i+3 < len(s) && parse.IsWordByte(s[i+3])) {
			return true
		}
	}
	return false
}

// queryParser is the state of parsing a query.
type queryParser struct {
	q       *Parsed
	rest    string
	now     time.Time
	command bool
	values  int // the number of qualifiers so far
	phrases int
}

// next reads one word, phrase or qualifier of the rest. It returns false at the end.
func (p *queryParser) next() bool {
	p.rest = strings.TrimLeft(p.rest, " ")
	if p.rest == "" {
		return false
	}
	at := strings.TrimLeft(p.rest, "(") // ignore parentheses, as in "(source:nuxt OR …)"
	at, not := p.cutMinus(at)
	if phrase, rest, ok := cutQuoted(at); ok && p.phrases < MaxPhrases && endsWord(rest) {
		p.phrases++
		p.rest = strings.TrimLeft(rest, "),;")
		p.q.addPhrase(phrase, not)
		return true
	}
	if key, value, rest, ok := cutQualifier(at); ok && p.values < maxQualifiers {
		p.values++
		if rest, ok := p.q.qualify(key, value, rest, not, p.now); ok {
			p.rest = rest
			return true
		}
	}
	if not {
		p.rest = at
	}
	w, rest, _ := strings.Cut(p.rest, " ")
	p.rest = rest
	w = strings.Trim(w, `"“”„«»`)
	switch {
	case w == "":
	case not:
		p.q.Without = append(p.q.Without, w)
	default:
		if w == "NOT" && rest != "" {
			p.q.Notef("NOT was searched for as a word; use -word to exclude pages that have a word.")
		}
		p.q.Words = append(p.q.Words, w)
	}
	return true
}

// cutMinus reads the minus sign of an exclusion. The sign of a command's option is not an
// exclusion. A sign before one or two letters or digits ("ls -la", "-40") is not an exclusion
// either, because options and numbers often look like this, and people rarely exclude such short
// words.
func (p *queryParser) cutMinus(s string) (rest string, not bool) {
	if len(s) < 2 || s[0] != '-' || p.command {
		return s, false
	}
	next, _ := utf8.DecodeRuneInString(s[1:])
	if isQuote(next) {
		return s[1:], true
	}
	n := 1
	for n < len(s) && parse.IsWordByte(s[n]) {
		n++
	}
	if n <= 3 && (n == len(s) || s[n] == ' ') {
		return s, false
	}
	if unicode.IsLetter(next) || unicode.IsDigit(next) {
		return s[1:], true
	}
	return s, false
}

// Notef adds a note for the caller.
func (q *Parsed) Notef(format string, args ...any) {
	n := fmt.Sprintf(format, args...)
	if len(q.Notes) < MaxNotes && !slices.Contains(q.Notes, n) {
		q.Notes = append(q.Notes, n)
	}
}

func (q *Parsed) addPhrase(p string, not bool) {
	p = strings.TrimSpace(p)
	switch {
	case p == "":
	case not:
		q.Without = append(q.Without, p)
	default:
		q.Phrases = append(q.Phrases, p)
		q.Words = append(q.Words, strings.Fields(p)...)
	}
}

func isQuote(r rune) bool { return r == '"' || r == '“' || r == '„' || r == '«' }

// closingQuotes maps the quote that begins a phrase to the quotes that may end it. In German, “
// ends a phrase.
var closingQuotes = map[rune]string{'"': `"`, '“': `"”`, '„': `“”`, '«': `»`}

// cutQuoted reads a quoted phrase. An unclosed quote does not start a phrase.
func cutQuoted(s string) (phrase, rest string, ok bool) {
	open, size := utf8.DecodeRuneInString(s)
	if !isQuote(open) {
		return "", s, false
	}
	i := strings.IndexAny(s[size:], closingQuotes[open])
	if i < 0 {
		return "", s, false
	}
	_, n := utf8.DecodeRuneInString(s[size+i:])
	return s[size : size+i], s[size+i+n:], true
}

// endsWord reports whether the quoted text before rest is a phrase. In {"name":"x"} and
// "a"+"b", the quotes are part of code.
func endsWord(rest string) bool {
	if strings.TrimLeft(rest, `),.;!?`) == "" {
		return true
	}
	return strings.IndexByte(` ),.;!?`, rest[0]) >= 0
}

// cutQualifier reads key:value where key is a plain word.
func cutQualifier(s string) (key, value, rest string, ok bool) {
	i := strings.IndexByte(s, ':')
	if i <= 0 || i > 20 || i+1 == len(s) {
		return "", "", s, false
	}
	for j := range i {
		if c := s[j] | 0x20; (c < 'a' || c > 'z') && s[j] != '_' {
			return "", "", s, false
		}
	}
	key = strings.ToLower(s[:i])
	s = s[i+1:]
	if v, rest, ok := cutQuoted(s); ok {
		return key, v, strings.TrimLeft(rest, ")"), v != ""
	}
	if q := s[0]; q == '\'' || q == '`' {
		if v, rest, ok := strings.Cut(s[1:], s[:1]); ok && endsWord(rest) {
			return key, v, rest, v != ""
		}
	}
	value, rest, _ = strings.Cut(s, " ")
	value = strings.Trim(value, `",;`)
	for strings.Count(value, ")") > strings.Count(value, "(") && strings.HasSuffix(value, ")") {
		value = value[:len(value)-1]
	}
	// URLs, C++ names and Windows paths are not qualifiers.
	if value == "" || strings.HasPrefix(value, "//") || value[0] == ':' || value[0] == '\\' {
		return "", "", s, false
	}
	return key, value, rest, true
}
