package files

import (
	"html"
	"html/template"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"satchel/internal/facts"
	"satchel/internal/fault"
	"satchel/internal/frontmatter"
	"satchel/internal/service"
	"satchel/internal/space"
	"satchel/tools/index/language"
	"satchel/web"
)

// Limits of the search page.
const (
	searchRows    = 20
	searchMost    = 50
	searchSnippet = 300 // in characters
	searchBefore  = 40  // of them before the first word that was found
	maxQuery      = 1000
)

type searchPage struct {
	Space              string // the address of the space
	Action, Query      string
	Asked              bool
	Results            []foundRow
	Total              int
	More               string // the address of the longer list
	Why                string // the address that explains the order, or that no longer does
	Explained          bool   // the page explains the order
	Unfiltered         string // address of the search without filters; "" if the query has none
	Notes, Suggestions []searchLink
	Help               []searchHelp
	Chips              []chipGroup
}

type searchLink struct{ Text, URL string }

// searchHelp is an example of what a query can contain besides words.
type searchHelp struct{ Text, Means, URL string }

type foundRow struct {
	Title, Path, URL string
	Heading, Lines   string
	Snippet          template.HTML
	Source           string
	Date             string // such as 2026-11-03
	External         bool
	Also             []searchLink
	Why              *reasons // nil unless the visitor asked for them
}

// showSearch handles GET /spaces/{id}/search?q=. The results are those that the search
// tool returns to AIs, in the same order.
func (s *pages) showSearch(v *web.Visit) error {
	m, err := s.Space(v)
	if err != nil {
		return err
	}
	q := v.R.URL.Query()
	body := searchPage{Space: "/spaces/" + string(m.ID), Action: "/spaces/" + string(m.ID) + "/search", Query: strings.TrimSpace(q.Get("q"))}
	if !web.Textual(body.Query) {
		body.Query = strings.ReplaceAll(strings.ToValidUTF8(body.Query, ""), "\x00", "")
	}
	if utf8.RuneCountInString(body.Query) > maxQuery {
		body.Query = string([]rune(body.Query)[:maxQuery])
	}
	if under := q.Get("under"); under != "" && body.Query != "" && !strings.Contains(body.Query, "path:") {
		if p, err := space.ParsePath(under); err == nil {
			body.Query += ` path:"` + strings.ReplaceAll(string(p), `"`, "") + `/**"`
		}
	}
	for _, x := range [...]searchHelp{
		{Text: `"exact words"`, Means: "pages with these words in this order"},
		{Text: `-without`, Means: "pages without this word"},
		{Text: `path:knowledge/**`, Means: "pages in a directory"},
		{Text: `kind:memory`, Means: "facts; also skill, resource, knowledge"},
		{Text: `tag:howto`, Means: "pages with this tag in their front matter"},
		{Text: `since:2w`, Means: "pages that changed in the last two weeks"},
		{Text: `sort:recent`, Means: "the newest pages first"},
	} {
		x.URL = body.Action + "?q=" + url.QueryEscape(strings.TrimSpace(body.Query+" "+x.Text))
		body.Help = append(body.Help, x)
	}
	if body.Chips, err = s.chips(v, body.Action, body.Query); err != nil {
		return err
	}
	if body.Query != "" {
		body.Asked = true
		if err := s.search(v, m, &body, q.Has("more"), q.Has("why")); err != nil {
			return err
		}
	}
	return s.Page(v, http.StatusOK, "search", web.Page{Title: "Search", Current: "search", Space: &m, Styles: []string{"files.css"}, Beside: []string{"search.js"}, Asks: body.Action, Body: body})
}

func (s *pages) search(v *web.Visit, m service.View, body *searchPage, more, why bool) error {
	limit := searchRows
	if more {
		limit = searchMost
	}
	a, err := s.Service.Search(v.R.Context(), v.Actor(), service.SearchInput{
		Space: service.SpaceRef{ID: m.ID}, Query: body.Query, Limit: limit, Explain: why,
	})
	switch fault.CodeOf(err) {
	case "":
	case fault.Invalid, fault.Limited, fault.Unavailable, fault.Damaged:
		body.Notes = append(body.Notes, searchLink{Text: web.Shorten(fault.PublicOf(err), 500)})
		return nil
	default:
		return err
	}
	body.Total = max(a.Total, len(a.Results))
	if bare := withoutFilters(body.Query); bare != "" && bare != body.Query {
		body.Unfiltered = body.Action + "?q=" + url.QueryEscape(bare)
	}
	for _, n := range a.Notes {
		// The heading already says that no page has the only word of the query.
		if len(a.Results) == 0 && n == `No page has "`+body.Query+`".` {
			continue
		}
		// Notes about scores are for people who ask why.
		if !why && len(a.Results) > 0 && slices.Contains(a.ScoreNotes, n) {
			continue
		}
		body.Notes = append(body.Notes, searchLink{Text: web.Shorten(n, 500)})
	}
	for _, t := range a.Suggestions {
		body.Suggestions = append(body.Suggestions, searchLink{Text: web.Shorten(t, 120), URL: body.Action + "?q=" + url.QueryEscape(t)})
	}
	// Offer a longer list only if the limit cut this one. An answer below its limit omits
	// results for other reasons, and a longer answer would omit them too.
	if !more && len(a.Results) >= limit && a.Total > len(a.Results) {
		body.More = body.Action + "?more&q=" + url.QueryEscape(body.Query)
	}
	if len(a.Results) > 0 {
		body.Why, body.Explained = body.Action+"?why&q="+url.QueryEscape(body.Query), why
		if why {
			body.Why = body.Action + "?q=" + url.QueryEscape(body.Query)
		}
	}
	words := queryWords(body.Query)
	for _, r := range a.Results {
		row := foundRow{Title: web.Shorten(r.Title, 150), Path: web.ShownPath(r.Path, 200), Heading: web.Shorten(r.Heading, 150), Lines: r.Lines, Date: r.Date, Why: reasonsOf(r.Why)}
		if r.Source != service.SpaceLabel {
			row.Source = web.Shorten(r.Source, 60)
		}
		row.URL, row.External = s.foundURL(m, r.Source, r.Path, r.ID, r.Lines, r.URL)
		text := r.Snippet
		if text == "" {
			text = r.Description
		}
		row.Snippet = markWords(excerpt(strings.TrimSpace(factOf(r.Path, text)+" "+strings.TrimPrefix(wordsOf(text, words), row.Title+" · ")), words, searchSnippet), words)
		for i, p := range r.Also {
			if i == 5 {
				break
			}
			to, _ := s.foundURL(m, r.Source, p, p, "", "")
			row.Also = append(row.Also, searchLink{Text: web.Shorten(p, 120), URL: to})
		}
		body.Results = append(body.Results, row)
	}
	return nil
}

// foundURL returns the address of a result. A file of the space opens at the result's
// heading or, if it is not Markdown, at the result's first line. A result from elsewhere
// opens on its own site, or else in the library.
func (s *pages) foundURL(m service.View, source, path, id, lines, upstream string) (to string, external bool) {
	if source != "" && source != "space" {
		if u, err := url.Parse(upstream); err == nil && (u.Scheme == "https" || u.Scheme == "http") && u.Host != "" {
			return u.String(), true
		}
		if strings.HasPrefix(path, "/library/") {
			return (&url.URL{Path: path}).EscapedPath(), false
		}
		return "", false
	}
	if path == "" { // a short answer has only the id
		path, _, _ = strings.Cut(id, "#")
	}
	p, err := space.ParsePath(path)
	if err != nil {
		return "", false
	}
	to = web.PageURL(m.ID, "files", p, "")
	if anchor, ok := strings.CutPrefix(id, path+"#"); ok && web.IsMarkdown(path) {
		return to + "#" + (&url.URL{Fragment: anchor}).EscapedFragment(), false
	}
	if from, _, ok := strings.Cut(lines, "-"); ok && !web.IsMarkdown(path) {
		to += "#L" + from
	}
	return to, false
}

// queryWords returns at most 24 words of a query to mark in results, without filters and
// excluded words. It omits words of one or two letters, except of scripts such as Chinese. It
// omits stop words such as "the", unless the query has no other words.
func queryWords(q string) []string {
	var out []string
	for f := range strings.FieldsSeq(q) {
		if strings.HasPrefix(f, "-") {
			continue
		}
		if isFilter(f) {
			continue
		}
		for _, w := range strings.FieldsFunc(strings.ToLower(f), func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsDigit(r) }) {
			if len(out) < 24 && (utf8.RuneCountInString(w) > 2 || utf8.RuneLen([]rune(w)[0]) > 2) {
				out = append(out, w)
			}
		}
	}
	langs := language.OfQuery(out).Langs
	if topical := slices.DeleteFunc(slices.Clone(out), func(w string) bool {
		return language.IsStop(w) || len(langs) > 0 && language.IsStop(w, langs[0])
	}); len(topical) > 0 {
		return topical
	}
	return out
}

// isFilter reports whether a word of a query narrows the search, as "kind:memory" does.
func isFilter(word string) bool {
	i := strings.IndexByte(word, ':')
	return i > 0 && i < 12 && i < len(word)-1
}

// withoutFilters returns a query without its filters and excluded words.
func withoutFilters(q string) string {
	words := slices.DeleteFunc(strings.Fields(q), func(w string) bool { return isFilter(w) || strings.HasPrefix(w, "-") })
	return strings.Join(words, " ")
}

// meant reports whether word is one of the words of the query or another form of such a word.
func meant(word string, words []string) bool {
	w := strings.ToLower(word)
	for _, q := range words {
		if w == q {
			return true
		}
		n := max(4, len(q)-2)
		if len(q) >= n && len(w) >= n && w[:n] == q[:n] && len(w) <= len(q)+min(4, len(q)/2) && !(len(q) == 4 && len(w) > 6) {
			return true
		}
	}
	return false
}

// factOf returns the value of a memory fact, which is in its front matter. It returns ""
// for any other file.
func factOf(path, text string) string {
	if !strings.HasPrefix(path, facts.Dir+"/") {
		return ""
	}
	d, err := frontmatter.Parse([]byte(text))
	if err != nil {
		return ""
	}
	return d.String("value")
}

// tags matches the HTML tags that people write into Markdown, also one that the end of a line cuts.
var tags = regexp.MustCompile(`(?i)</?(a|b|br|code|details|div|em|h[1-6]|i|img|kbd|li|p|span|strong|sub|summary|sup|table|td|th|tr|ul)(\s[^<>]*)?(/?>|\s[a-z-]+=[^<>]*$)`)

// listMark matches the marks before a heading, a quotation, a row or an item of a list.
var listMark = regexp.MustCompile(`^(?:(?:#{1,6}|[-*+>])\s+|[>|\s]+)+`)

// emphasis matches *emphasized* and **strong** words.
var emphasis = regexp.MustCompile(`(^|[\s(])\*{1,2}([^\s*](?:[^*]*[^\s*])?)\*{1,2}([\s).,;:!?]|$)`)

// wordsOf returns the readable text of Markdown, without front matter and without most marks.
// A line of code or of a table is in it only if the line has one of the words.
func wordsOf(text string, words []string) string {
	if rest, ok := strings.CutPrefix(text, "---\n"); ok {
		if _, body, ok := strings.Cut(rest, "\n---\n"); ok {
			text = body
		}
	}
	var parts []string
	code := false
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		if strings.HasPrefix(line, "```") {
			code = !code
			continue
		}
		if strings.Trim(line, "|:- ") == "" || (code || strings.HasPrefix(line, "|")) && !hasWord(line, words) {
			continue
		}
		if !code {
			line = proseOf(line)
		}
		if line != "" {
			parts = append(parts, line)
		}
	}
	return strings.Join(parts, " · ")
}

// proseOf returns a line of Markdown without its marks, links and tags.
func proseOf(line string) string {
	line = emphasis.ReplaceAllString(line, "$1$2$3")
	line = listMark.ReplaceAllString(line, "")
	line = strings.TrimPrefix(strings.TrimPrefix(line, "[ ] "), "[x] ")
	var b strings.Builder
	for {
		before, rest, ok := strings.Cut(line, "](")
		if !ok {
			break
		}
		_, after, ok := strings.Cut(rest, ")")
		if !ok {
			break
		}
		b.WriteString(strings.NewReplacer("![", "", "[", "").Replace(before))
		line = after
	}
	line = tags.ReplaceAllString(b.String()+line, "")
	return strings.TrimSpace(strings.NewReplacer("**", "", "`", "", " | ", ", ", "|", "").Replace(line))
}

// hasWord reports whether a line has a word of the query.
func hasWord(line string, words []string) bool {
	found := false
	eachWord(line, func(from, to int) bool {
		found = meant(line[from:to], words)
		return !found
	})
	return found
}

// eachWord calls f with the start and end of each word of a text until f returns false.
func eachWord(text string, f func(from, to int) bool) {
	from := -1
	for i, r := range text {
		if unicode.IsLetter(r) || unicode.IsDigit(r) {
			if from < 0 {
				from = i
			}
			continue
		}
		if from >= 0 && !f(from, i) {
			return
		}
		from = -1
	}
	if from >= 0 {
		f(from, len(text))
	}
}

// excerpt returns a part of a text, on one line, that contains words of the query.
func excerpt(text string, words []string, most int) string {
	text = web.Shorten(strings.Join(strings.Fields(text), " "), 8000)
	if utf8.RuneCountInString(text) <= most {
		return text
	}
	// Find the place where the most words of the query are close together.
	type hit struct {
		at   int
		word string
	}
	var hits []hit
	eachWord(text, func(from, to int) bool {
		if meant(text[from:to], words) {
			hits = append(hits, hit{from, strings.ToLower(text[from:to])})
		}
		return len(hits) < 200
	})
	at, best := 0, 0
	for i, h := range hits {
		near := map[string]bool{}
		for _, o := range hits[i:] {
			if o.at-h.at < most/2 {
				near[o.word] = true
			}
		}
		if len(near) > best {
			at, best = h.at, len(near)
		}
	}
	before := ""
	if at > searchBefore {
		cut := at - searchBefore
		if i := strings.IndexByte(text[cut:], ' '); i >= 0 && cut+i < at {
			cut += i + 1
		} else {
			cut = at
		}
		before, text = "… ", text[cut:]
	}
	return before + web.Shorten(text, most)
}

// markWords returns a text as HTML, with the words of the query marked.
func markWords(text string, words []string) template.HTML {
	var b strings.Builder
	done := 0
	eachWord(text, func(from, to int) bool {
		if meant(text[from:to], words) {
			b.WriteString(html.EscapeString(text[done:from]) + "<mark>" + html.EscapeString(text[from:to]) + "</mark>")
			done = to
		}
		return true
	})
	b.WriteString(html.EscapeString(text[done:]))
	return template.HTML(b.String()) //nolint:gosec // all of it is escaped
}
