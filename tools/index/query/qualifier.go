package query

import (
	"errors"
	"slices"
	"strconv"
	"strings"
	"time"

	"satchel/tools/index/language"
	"satchel/tools/index/parse"
)

// Filters restrict a search. Several values of one filter are alternatives. A document must
// meet all filters.
type Filters struct {
	Source, Path, Kind, Lang, Version, Tag Condition
	Since, Before                          time.Time
}

// Condition holds the values of one qualifier.
type Condition struct{ Is, Not []string }

// Empty reports whether every document meets the condition.
func (c Condition) Empty() bool { return len(c.Is)+len(c.Not) == 0 }

// Empty reports whether every document meets the filters.
func (f Filters) Empty() bool {
	return f.Source.Empty() && f.Path.Empty() && f.Kind.Empty() && f.Lang.Empty() && f.Version.Empty() && f.Tag.Empty() &&
		f.Since.IsZero() && f.Before.IsZero()
}

const qualifierNames = "source, path, kind, lang, version, tag, since, before, sort and limit"

// otherNames maps the names of qualifiers in other search engines to ours. Such a name only
// counts if the qualifier can have the value, so that code such as type:button remains a word.
var otherNames = map[string]string{
	"repo": "source", "dir": "path", "folder": "path", "file": "path", "filename": "path", "in": "path",
	"type": "kind", "language": "lang", "locale": "lang", "tags": "tag", "label": "tag", "topic": "tag",
	"after": "since", "until": "before", "updated": "date", "modified": "date", "created": "date", "pushed": "date",
	"order": "sort", "orderby": "sort", "order_by": "sort", "sortby": "sort", "max": "limit", "top": "limit",
}

// qualify applies a qualifier and returns the rest of the query, because a date may include the
// following words. It returns false if the qualifier is only a word.
func (q *Parsed) qualify(key, value, rest string, not bool, now time.Time) (string, bool) {
	f := &q.Filters
	name := key
	if other, ok := otherNames[key]; ok {
		if name = other; !plausible(name, value, now) {
			return rest, false
		}
	}
	add := func(c *Condition, tidy func(string) string) {
		for _, v := range splitValues(value) {
			if v = tidy(v); v == "" {
				continue
			}
			if not {
				c.Not = append(c.Not, v)
			} else {
				c.Is = append(c.Is, v)
			}
		}
	}
	switch name {
	case "source":
		add(&f.Source, tidySource)
	case "path":
		add(&f.Path, tidyPath)
	case "kind":
		add(&f.Kind, tidyKind)
		for _, v := range append(slices.Clone(f.Kind.Is), f.Kind.Not...) {
			if !slices.Contains(parse.Kinds, parse.Kind(v)) {
				q.Notef("kind:%s is unknown: it can be memory, resource, skill, knowledge or file.", parse.Clip(v, 40))
			}
		}
	case "lang":
		add(&f.Lang, tidyLang)
	case "version":
		add(&f.Version, tidyVersion)
	case "tag":
		add(&f.Tag, func(v string) string { return strings.ToLower(strings.TrimPrefix(v, "#")) })
	case "since", "before", "date":
		return q.dated(name, key, value, rest, not, now), true
	case "sort", "limit":
		if not {
			q.Notef("-%s:%s was left out: a minus sign can only exclude pages.", key, parse.Clip(value, 40))
			break
		}
		q.arrange(name, key, value)
	default:
		q.Notef("There is no qualifier %s:, so %q was searched for as words. The qualifiers are %s.", key, parse.Clip(key+":"+value, 60), qualifierNames)
		return rest, false
	}
	return rest, true
}

// arrange applies a qualifier that only changes the presentation of the answer.
func (q *Parsed) arrange(name, key, value string) {
	switch name {
	case "sort":
		order, ok := sortOrders[strings.ToLower(value)]
		if !ok {
			q.Notef("%s:%s was left out: it can be recent, path or relevance.", key, parse.Clip(value, 40))
			break
		}
		q.Sort = order
	case "limit":
		if n, ok := limitOf(value); ok {
			q.Limit = Smaller(q.Limit, n)
		} else {
			q.Notef("%s:%s was left out: it must be a number of at least 1.", key, parse.Clip(value, 40))
		}
	}
}

// limitOf reads a number of at least 1. A number that is too large to read counts as more than
// the maximum.
func limitOf(value string) (n int, ok bool) {
	n, err := strconv.Atoi(value)
	return n, n > 0 && (err == nil || errors.Is(err, strconv.ErrRange))
}

// Smaller returns the smaller of two limits. A limit of 0 means no limit.
func Smaller(a, b int) int {
	if a <= 0 || b > 0 && b < a {
		return b
	}
	return a
}

var sortOrders = map[string]SortOrder{
	"recent": ByDate, "date": ByDate, "newest": ByDate, "updated": ByDate, "latest": ByDate, "new": ByDate,
	"path": ByPath, "name": ByPath, "alphabetical": ByPath,
	"relevance": ByRelevance, "best": ByRelevance, "score": ByRelevance, "rank": ByRelevance,
}

// plausible reports whether the qualifier called name can have the value.
func plausible(name, value string, now time.Time) bool {
	switch name {
	case "path":
		return strings.ContainsAny(value, "/.*") && !strings.ContainsAny(value, "()=<>")
	case "kind":
		return slices.Contains(parse.Kinds, parse.Kind(tidyKind(value)))
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

// splitValues splits values at commas, but not within the braces of a glob. A glob with braces
// becomes one value for each alternative.
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

// expandBraces turns *.{md,mdx} into *.md and *.mdx. It only expands the first pair of
// braces.
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

// tidySource turns the path of a source into its id.
func tidySource(v string) string {
	v = strings.Trim(strings.ToLower(v), "/")
	for _, p := range []string{"library/docs/", "library/youtube/", "library/"} {
		v = strings.TrimPrefix(v, p)
	}
	return v
}

// tidyPath accepts paths as search, read and bash write them: with backslashes, with /space at
// the start, or with the lines or the heading of an id at the end.
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
		return string(parse.KindMemory)
	}
	return strings.TrimSuffix(v, "s")
}

// languageNames maps names that models write instead of codes (ISO 639-1), and country codes
// that models confuse with languages.
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
	if len(v) > 1 && v[0] == 'v' && parse.IsDigit(v[1]) {
		v = v[1:]
	}
	return strings.TrimSuffix(strings.TrimSuffix(v, ".x"), ".*")
}

// Single splits the filters into filters of one value each. It leaves out excluded values, and
// sources, which are not a property of documents.
func (f Filters) Single() []Filters {
	var all []Filters
	for _, v := range f.Path.Is {
		all = append(all, Filters{Path: Condition{Is: []string{v}}})
	}
	for _, v := range f.Kind.Is {
		if slices.Contains(parse.Kinds, parse.Kind(v)) { // unknown kinds already have a note
			all = append(all, Filters{Kind: Condition{Is: []string{v}}})
		}
	}
	for _, v := range f.Lang.Is {
		all = append(all, Filters{Lang: Condition{Is: []string{v}}})
	}
	for _, v := range f.Version.Is {
		all = append(all, Filters{Version: Condition{Is: []string{v}}})
	}
	for _, v := range f.Tag.Is {
		all = append(all, Filters{Tag: Condition{Is: []string{v}}})
	}
	if !f.Since.IsZero() {
		all = append(all, Filters{Since: f.Since})
	}
	if !f.Before.IsZero() {
		all = append(all, Filters{Before: f.Before})
	}
	return all
}

// Describe returns the filters in the query language.
func (f Filters) Describe() string {
	var b []string
	for _, c := range []struct {
		name string
		Condition
	}{{"source", f.Source}, {"path", f.Path}, {"kind", f.Kind}, {"lang", f.Lang}, {"version", f.Version}, {"tag", f.Tag}} {
		if len(c.Is) > 0 {
			b = append(b, c.name+":"+quoteValues(c.Is))
		}
		if len(c.Not) > 0 {
			b = append(b, "-"+c.name+":"+quoteValues(c.Not))
		}
	}
	if !f.Since.IsZero() {
		b = append(b, "since:"+f.Since.Format(time.DateOnly))
	}
	if !f.Before.IsZero() {
		b = append(b, "before:"+f.Before.Format(time.DateOnly))
	}
	return strings.Join(b, " ")
}

// MaxDescribed limits the length of a filter that an answer repeats, in bytes.
const MaxDescribed = 200

func quoteValues(values []string) string {
	s := parse.Clip(strings.Join(values, ","), MaxDescribed)
	if strings.Contains(s, " ") {
		return `"` + s + `"`
	}
	return s
}
