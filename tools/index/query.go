package index

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"
)

// parsedQuery is what a person or a model typed, taken apart. Nothing that can
// be typed is an error: what is odd is a word, or is told in notes.
type parsedQuery struct {
	words   []string // in order, as typed
	phrases []string // must occur
	without []string // words and phrases that must not
	filters filters
	sort    sortOrder
	limit   int // 0: not given
	notes   []string
}

// filters narrow down what is searched. Several values of one filter are
// alternatives; filters add up.
type filters struct {
	source, path, kind, lang, version condition
	since, before                     time.Time
}

// condition is the values of one qualifier.
type condition struct{ is, not []string }

func (c condition) empty() bool { return len(c.is)+len(c.not) == 0 }

type sortOrder int

const (
	byRelevance sortOrder = iota
	byDate
	byPath
)

// maxQualifiers bounds the values of one query's filters.
const maxQualifiers = 40

// parseQuery reads the query language:
//
//	word  -word  "exact phrase"  -"exact phrase"
//	source:nuxt  path:docs/**  kind:memory  lang:en  version:5.1
//	since:2026-01-01  since:7d  before:2026-06  sort:recent  limit:20
//
// A qualifier may be negated with "-" and its value quoted; values may be
// separated by commas. A qualifier that is not known is a word, and noted.
func parseQuery(text string, now time.Time, o Options) (q parsedQuery) {
	if len(text) > o.MaxQueryBytes {
		text = clip(text, o.MaxQueryBytes)
		q.notef("The query is longer than %d bytes; only its beginning was used.", o.MaxQueryBytes)
	}
	text = strings.ToValidUTF8(text, " ")
	values := 0
	for text != "" {
		r, size := utf8.DecodeRuneInString(text)
		if unicode.IsSpace(r) || unicode.IsControl(r) {
			text = text[size:]
			continue
		}
		not := false
		if r == '-' && len(text) > 1 {
			if next, _ := utf8.DecodeRuneInString(text[1:]); unicode.IsLetter(next) || unicode.IsDigit(next) || isQuote(next) {
				not = true
				text = text[1:]
			}
		}
		if phrase, rest, ok := cutQuoted(text); ok {
			text = rest
			q.addPhrase(phrase, not)
			continue
		}
		key, value, rest, ok := cutQualifier(text)
		if ok && values < maxQualifiers {
			values++
			if q.qualify(key, value, not, now) {
				text = rest
				continue
			}
		}
		end := strings.IndexFunc(text, func(r rune) bool { return unicode.IsSpace(r) || unicode.IsControl(r) })
		if end < 0 {
			end = len(text)
		}
		w := strings.Trim(text[:end], `"“”„«»`)
		text = text[end:]
		switch {
		case w == "":
		case not:
			q.without = append(q.without, w)
		default:
			q.words = append(q.words, w)
		}
	}
	return q
}

func (q *parsedQuery) notef(format string, args ...any) {
	n := fmt.Sprintf(format, args...)
	if len(q.notes) < 8 && !slices.Contains(q.notes, n) {
		q.notes = append(q.notes, n)
	}
}

func (q *parsedQuery) addPhrase(p string, not bool) {
	p = strings.TrimSpace(p)
	switch {
	case p == "":
	case not:
		q.without = append(q.without, p)
	default:
		q.phrases = append(q.phrases, p)
		q.words = append(q.words, strings.Fields(p)...)
	}
}

func isQuote(r rune) bool { return r == '"' || r == '“' || r == '„' || r == '«' }

// cutQuoted reads a quoted phrase. A quote that is never closed is none.
func cutQuoted(s string) (phrase, rest string, ok bool) {
	open, size := utf8.DecodeRuneInString(s)
	if !isQuote(open) {
		return "", s, false
	}
	closing := map[rune]string{'"': `"`, '“': `"”`, '„': `“”`, '«': `»`}[open]
	i := strings.IndexAny(s[size:], closing)
	if i < 0 {
		return "", s, false
	}
	_, n := utf8.DecodeRuneInString(s[size+i:])
	return s[size : size+i], s[size+i+n:], true
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
		return key, v, rest, v != ""
	}
	end := strings.IndexFunc(s, unicode.IsSpace)
	if end < 0 {
		end = len(s)
	}
	value = strings.Trim(s[:end], `",`)
	// A URL, a C++ name and a Windows path are no qualifiers.
	if value == "" || value[0] == '/' && strings.HasPrefix(value, "//") || value[0] == ':' || value[0] == '\\' {
		return "", "", s, false
	}
	return key, value, s[end:], true
}

// qualify takes a qualifier in; false means that it is a word.
func (q *parsedQuery) qualify(key, value string, not bool, now time.Time) bool {
	f := &q.filters
	add := func(c *condition, fold bool) bool {
		for v := range strings.SplitSeq(value, ",") {
			if v = strings.TrimSpace(v); v == "" {
				continue
			}
			if fold {
				v = strings.ToLower(v)
			}
			if not {
				c.not = append(c.not, v)
			} else {
				c.is = append(c.is, v)
			}
		}
		return true
	}
	date := func(into *time.Time) bool {
		if t, ok := queryDate(value, now); ok {
			*into = t
		} else {
			q.notef("%s:%s was left out: a date is written as 2026-01-31, 2026-01, 7d, 2w, 3m or 1y.", key, clip(value, 40))
		}
		return true
	}
	switch key {
	case "source":
		return add(&f.source, true)
	case "path":
		return add(&f.path, false)
	case "kind":
		for v := range strings.SplitSeq(strings.ToLower(value), ",") {
			if v = strings.TrimSpace(v); v != "" && !slices.Contains(kinds, Kind(strings.TrimSuffix(v, "s"))) {
				q.notef("kind:%s is unknown: it can be memory, resource, skill, knowledge or file.", clip(v, 40))
			}
		}
		return add(&f.kind, true)
	case "lang":
		return add(&f.lang, true)
	case "version":
		return add(&f.version, true)
	case "since", "after":
		return date(&f.since)
	case "before":
		return date(&f.before)
	case "sort":
		switch strings.ToLower(value) {
		case "recent", "date", "newest", "updated":
			q.sort = byDate
		case "path", "name":
			q.sort = byPath
		case "relevance", "best":
			q.sort = byRelevance
		default:
			q.notef("sort:%s was left out: it can be recent, path or relevance.", clip(value, 40))
		}
		return true
	case "limit":
		if n, err := strconv.Atoi(value); err == nil && n > 0 {
			q.limit = n
		} else {
			q.notef("limit:%s was left out: it is a number from 1.", clip(value, 40))
		}
		return true
	}
	q.notef("%s: is no qualifier, so %q was searched for as words. The qualifiers are source, path, kind, lang, version, since, before, sort and limit.", key, clip(key+":"+value, 60))
	return false
}

// queryDate reads a date or an age such as 7d.
func queryDate(s string, now time.Time) (time.Time, bool) {
	now = now.UTC()
	today := time.Date(now.Year(), now.Month(), now.Day(), 0, 0, 0, 0, time.UTC)
	switch strings.ToLower(s) {
	case "today":
		return today, true
	case "yesterday":
		return today.AddDate(0, 0, -1), true
	}
	if n, err := strconv.Atoi(s[:len(s)-1]); err == nil && n > 0 && n < 10_000 {
		switch s[len(s)-1] {
		case 'h':
			return now.Add(-time.Duration(n) * time.Hour), true
		case 'd':
			return now.AddDate(0, 0, -n), true
		case 'w':
			return now.AddDate(0, 0, -7*n), true
		case 'm':
			return now.AddDate(0, -n, 0), true
		case 'y':
			return now.AddDate(-n, 0, 0), true
		}
	}
	return parseDate(s)
}

// single takes apart what documents must be into filters of one value each,
// without sources, which are no property of a document.
func (f filters) single() []filters {
	var all []filters
	for _, v := range f.path.is {
		all = append(all, filters{path: condition{is: []string{v}}})
	}
	for _, v := range f.kind.is {
		if slices.Contains(kinds, Kind(strings.TrimSuffix(v, "s"))) { // others are noted when they are read
			all = append(all, filters{kind: condition{is: []string{v}}})
		}
	}
	for _, v := range f.lang.is {
		all = append(all, filters{lang: condition{is: []string{v}}})
	}
	for _, v := range f.version.is {
		all = append(all, filters{version: condition{is: []string{v}}})
	}
	return all
}

// describe says what the filters narrow the search to, in the query language.
func (f filters) describe() string {
	var b []string
	for _, c := range []struct {
		name string
		condition
	}{{"source", f.source}, {"path", f.path}, {"kind", f.kind}, {"lang", f.lang}, {"version", f.version}} {
		if len(c.is) > 0 {
			b = append(b, c.name+":"+strings.Join(c.is, ","))
		}
		if len(c.not) > 0 {
			b = append(b, "-"+c.name+":"+strings.Join(c.not, ","))
		}
	}
	if !f.since.IsZero() {
		b = append(b, "since:"+f.since.Format(time.DateOnly))
	}
	if !f.before.IsZero() {
		b = append(b, "before:"+f.before.Format(time.DateOnly))
	}
	return strings.Join(b, " ")
}
