package index

import (
	"errors"
	"slices"
	"strconv"
	"strings"
	"time"

	"satchel/tools/index/language"
)

// filters narrow down what is searched. Several values of one filter are
// alternatives; filters add up.
type filters struct {
	source, path, kind, lang, version, tag condition
	since, before                          time.Time
}

// condition is the values of one qualifier.
type condition struct{ is, not []string }

func (c condition) empty() bool { return len(c.is)+len(c.not) == 0 }

func (f filters) empty() bool {
	return f.source.empty() && f.path.empty() && f.kind.empty() && f.lang.empty() && f.version.empty() && f.tag.empty() &&
		f.since.IsZero() && f.before.IsZero()
}

const qualifierNames = "source, path, kind, lang, version, tag, since, before, sort and limit"

// otherNames are what people and models call a qualifier elsewhere. They count
// where the value is one that the qualifier can have, so that code such as
// type:button stays words.
var otherNames = map[string]string{
	"repo": "source", "dir": "path", "folder": "path", "file": "path", "filename": "path", "in": "path",
	"type": "kind", "language": "lang", "locale": "lang", "tags": "tag", "label": "tag", "topic": "tag",
	"after": "since", "until": "before", "updated": "date", "modified": "date", "created": "date", "pushed": "date",
	"order": "sort", "orderby": "sort", "order_by": "sort", "sortby": "sort", "max": "limit", "top": "limit",
}

// qualify takes a qualifier in and returns the rest of the query, of which a
// date may take words; false means that it is a word.
func (q *parsedQuery) qualify(key, value, rest string, not bool, now time.Time) (string, bool) {
	f := &q.filters
	name := key
	if other, ok := otherNames[key]; ok {
		if name = other; !plausible(name, value, now) {
			return rest, false
		}
	}
	add := func(c *condition, tidy func(string) string) {
		for _, v := range splitValues(value) {
			if v = tidy(v); v == "" {
				continue
			}
			if not {
				c.not = append(c.not, v)
			} else {
				c.is = append(c.is, v)
			}
		}
	}
	switch name {
	case "source":
		add(&f.source, tidySource)
	case "path":
		add(&f.path, tidyPath)
	case "kind":
		add(&f.kind, tidyKind)
		for _, v := range append(slices.Clone(f.kind.is), f.kind.not...) {
			if !slices.Contains(kinds, Kind(v)) {
				q.notef("kind:%s is unknown: it can be memory, resource, skill, knowledge or file.", clip(v, 40))
			}
		}
	case "lang":
		add(&f.lang, tidyLang)
	case "version":
		add(&f.version, tidyVersion)
	case "tag":
		add(&f.tag, func(v string) string { return strings.ToLower(strings.TrimPrefix(v, "#")) })
	case "since", "before", "date":
		return q.dated(name, key, value, rest, not, now), true
	case "sort", "limit":
		if not {
			q.notef("-%s:%s was left out: only what a page is can be left out by -.", key, clip(value, 40))
			break
		}
		q.arrange(name, key, value)
	default:
		q.notef("%s: is no qualifier, so %q was searched for as words. The qualifiers are %s.", key, clip(key+":"+value, 60), qualifierNames)
		return rest, false
	}
	return rest, true
}

// arrange takes in what changes nothing but how the answer looks.
func (q *parsedQuery) arrange(name, key, value string) {
	switch name {
	case "sort":
		order, ok := sortOrders[strings.ToLower(value)]
		if !ok {
			q.notef("%s:%s was left out: it can be recent, path or relevance.", key, clip(value, 40))
			break
		}
		q.sort = order
	case "limit":
		if n, ok := limitOf(value); ok {
			q.limit = smaller(q.limit, n)
		} else {
			q.notef("%s:%s was left out: it is a number from 1.", key, clip(value, 40))
		}
	}
}

// limitOf reads a number from 1; one that is too large to be held is as good as
// any that is more than an answer has.
func limitOf(value string) (n int, ok bool) {
	n, err := strconv.Atoi(value)
	return n, n > 0 && (err == nil || errors.Is(err, strconv.ErrRange))
}

// smaller returns the smaller of two limits, of which 0 is none.
func smaller(a, b int) int {
	if a <= 0 || b > 0 && b < a {
		return b
	}
	return a
}

var sortOrders = map[string]sortOrder{
	"recent": byDate, "date": byDate, "newest": byDate, "updated": byDate, "latest": byDate, "new": byDate,
	"path": byPath, "name": byPath, "alphabetical": byPath,
	"relevance": byRelevance, "best": byRelevance, "score": byRelevance, "rank": byRelevance,
}

// plausible tells whether a value is one that a qualifier can have.
func plausible(name, value string, now time.Time) bool {
	switch name {
	case "path":
		return strings.ContainsAny(value, "/.*") && !strings.ContainsAny(value, "()=<>")
	case "kind":
		return slices.Contains(kinds, Kind(tidyKind(value)))
	case "lang":
		return language.Known(tidyLang(value))
	case "since", "before", "date":
		from, to, _ := strings.Cut(strings.TrimLeft(value, "<>="), "..")
		_, ok := queryDate(from, now)
		if !ok {
			_, ok = queryDate(to, now)
		}
		return ok
	case "sort":
		_, ok := sortOrders[strings.ToLower(value)]
		return ok
	case "limit":
		_, ok := limitOf(value)
		return ok
	}
	return !strings.ContainsAny(value, "()=<>{}")
}

// splitValues separates values at commas, but not within the braces of a glob,
// which become one value for each alternative.
func splitValues(s string) (values []string) {
	depth, from := 0, 0
	for i := 0; i <= len(s); i++ {
		if i == len(s) || s[i] == ',' && depth <= 0 {
			values = append(values, expandBraces(strings.TrimSpace(s[from:i]))...)
			from = i + 1
			continue
		}
		switch s[i] {
		case '{':
			depth++
		case '}':
			depth--
		}
	}
	return values[:min(len(values), maxQualifiers)]
}

// expandBraces makes *.md and *.mdx of *.{md,mdx}; of the first pair of braces
// alone, which is what people write.
func expandBraces(s string) []string {
	i := strings.IndexByte(s, '{')
	j := i + 1 + strings.IndexByte(s[i+1:], '}')
	if i < 0 || j <= i || !strings.Contains(s[i:j], ",") {
		return []string{s}
	}
	var all []string
	for alt := range strings.SplitSeq(s[i+1:j], ",") {
		all = append(all, s[:i]+alt+s[j+1:])
	}
	return all
}

// tidySource takes a source's path for its id.
func tidySource(v string) string {
	v = strings.Trim(strings.ToLower(v), "/")
	for _, p := range []string{"library/docs/", "library/youtube/", "library/"} {
		v = strings.TrimPrefix(v, p)
	}
	return v
}

// tidyPath takes a path as search, read and bash write it: with backslashes, with
// /space before it, with the lines or the heading of an id after it.
func tidyPath(v string) string {
	v = strings.ReplaceAll(v, `\`, "/")
	if v == "/space" || v == "space:" {
		return "/"
	}
	if rest, ok := strings.CutPrefix(v, "/space/"); ok {
		v = "/" + rest
	}
	if i := strings.LastIndexByte(v, ':'); i > 0 && strings.Trim(v[i+1:], "0123456789-") == "" {
		v = v[:i]
	}
	if i := strings.LastIndexByte(v, '#'); i > 0 && strings.Contains(v[:i], ".") {
		v = v[:i]
	}
	return v
}

func tidyKind(v string) string {
	v = strings.ToLower(v)
	if v == "memories" || v == "fact" || v == "facts" {
		return string(KindMemory)
	}
	return strings.TrimSuffix(v, "s")
}

// languageNames are names that models write for codes (ISO 639-1), and codes of
// countries that they take for those of languages.
var languageNames = map[string]string{
	"english": "en", "german": "de", "deutsch": "de", "french": "fr", "spanish": "es", "italian": "it", "portuguese": "pt",
	"brazilian": "pt-br", "russian": "ru", "chinese": "zh", "simplified chinese": "zh-cn", "traditional chinese": "zh-tw",
	"japanese": "ja", "korean": "ko", "arabic": "ar", "hindi": "hi", "polish": "pl", "dutch": "nl", "swedish": "sv", "norwegian": "no",
	"danish": "da", "finnish": "fi", "czech": "cs", "turkish": "tr", "ukrainian": "uk", "greek": "el", "hebrew": "he",
	"jp": "ja", "cn": "zh", "kr": "ko", "ua": "uk", "cz": "cs", "dk": "da", "gr": "el", "br": "pt-br",
}

func tidyLang(v string) string {
	v = strings.ReplaceAll(strings.ToLower(v), "_", "-")
	if code, ok := languageNames[v]; ok {
		return code
	}
	return v
}

func tidyVersion(v string) string {
	v = strings.ToLower(v)
	if len(v) > 1 && v[0] == 'v' && isDigit(v[1]) {
		v = v[1:]
	}
	return strings.TrimSuffix(strings.TrimSuffix(v, ".x"), ".*")
}

// single takes apart what documents must be into filters of one value each,
// without sources, which are no property of a document.
func (f filters) single() []filters {
	var all []filters
	for _, v := range f.path.is {
		all = append(all, filters{path: condition{is: []string{v}}})
	}
	for _, v := range f.kind.is {
		if slices.Contains(kinds, Kind(v)) { // others are noted when they are read
			all = append(all, filters{kind: condition{is: []string{v}}})
		}
	}
	for _, v := range f.lang.is {
		all = append(all, filters{lang: condition{is: []string{v}}})
	}
	for _, v := range f.version.is {
		all = append(all, filters{version: condition{is: []string{v}}})
	}
	for _, v := range f.tag.is {
		all = append(all, filters{tag: condition{is: []string{v}}})
	}
	if !f.since.IsZero() {
		all = append(all, filters{since: f.since})
	}
	if !f.before.IsZero() {
		all = append(all, filters{before: f.before})
	}
	return all
}

// describe says what the filters narrow the search to, in the query language.
func (f filters) describe() string {
	var b []string
	for _, c := range []struct {
		name string
		condition
	}{{"source", f.source}, {"path", f.path}, {"kind", f.kind}, {"lang", f.lang}, {"version", f.version}, {"tag", f.tag}} {
		if len(c.is) > 0 {
			b = append(b, c.name+":"+quoteValues(c.is))
		}
		if len(c.not) > 0 {
			b = append(b, "-"+c.name+":"+quoteValues(c.not))
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

// maxDescribed is how many bytes of a filter an answer repeats.
const maxDescribed = 200

func quoteValues(values []string) string {
	s := clip(strings.Join(values, ","), maxDescribed)
	if strings.Contains(s, " ") {
		return `"` + s + `"`
	}
	return s
}
