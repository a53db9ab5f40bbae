package service

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"math"
	"path"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"satchel/internal/fault"
	"satchel/internal/space"
	"satchel/tools/index"
	"satchel/tools/index/present"
	"satchel/tools/index/rank"
)

// SearchLimits limit searches. A zero field means its default.
type SearchLimits struct {
	Wait       time.Duration // the wait for an index that is behind; default 2 s, negative: none
	QueryChars int           // maximum length of a query; default 4,000
	Results    int           // number of results if SearchInput.Limit is 0; default 10
	MaxResults int           // maximum of SearchInput.Limit; default 50
	Tokens     int           // budget if SearchInput.MaxTokens is 0; default 5,000
	MaxTokens  int           // maximum of SearchInput.MaxTokens; default 20,000
	// OutlineResults and OutlineTokens replace Results and Tokens for an outline.
	OutlineResults int // default 8
	OutlineTokens  int // default 1,600
	AtOnce         int // running searches of a user; default 4
	Waiting        int // waiting searches of a user; default 64, negative: none
}

func (l SearchLimits) withDefaults() SearchLimits {
	l.Wait = max(0, cmp.Or(l.Wait, 2*time.Second))
	l.QueryChars = cmp.Or(l.QueryChars, 4000)
	l.MaxResults = cmp.Or(l.MaxResults, 50)
	l.Results = min(cmp.Or(l.Results, 10), l.MaxResults)
	l.MaxTokens = cmp.Or(l.MaxTokens, 20_000)
	l.Tokens = min(cmp.Or(l.Tokens, 5000), l.MaxTokens)
	l.OutlineResults = min(cmp.Or(l.OutlineResults, 8), l.MaxResults)
	l.OutlineTokens = min(cmp.Or(l.OutlineTokens, 1600), l.MaxTokens)
	l.AtOnce = cmp.Or(l.AtOnce, 4)
	l.Waiting = max(0, cmp.Or(l.Waiting, 64))
	return l
}

// SearchInput is a search of a space and of the library.
type SearchInput struct {
	Space     SpaceRef `json:"space"` // empty: only the library; for the operator, the first administrator's first space
	Query     string   `json:"query"` // in the query language (docs/search.md)
	Limit     int      `json:"limit,omitempty"`
	Source    string   `json:"source,omitempty"`     // the only source to search
	Since     string   `json:"since,omitempty"`      // a date or time of the query language
	MaxTokens int      `json:"max_tokens,omitempty"` // maximum size of the results, in tokens
	// Outline prepares the results for Markdown that a model reads: only the first results have
	// their text, and the last results have only their place. MaxTokens then limits the Markdown.
	// Without Outline, MaxTokens limits the JSON of the results.
	Outline bool `json:"outline,omitempty"`
	Explain bool `json:"explain,omitempty"` // explains the rank of each result
	// Library is the part of the library to search; nil means all that the actor may read.
	Library *Library `json:"-"`
}

// SearchResults are the results of a search.
type SearchResults struct {
	Notes       []string       `json:"notes,omitempty"` // first, because a model reads in order
	Results     []SearchResult `json:"results"`         // best first
	Total       int            `json:"total"`           // documents that matched
	Truncated   bool           `json:"truncated"`
	Scope       string         `json:"scope"` // what was searched, for people
	IndexCommit space.CommitID `json:"index_commit"`
	IndexAge    float64        `json:"index_age"` // seconds since the index fell behind
	Suggestions []string       `json:"suggestions,omitempty"`
	// ScoreNotes are the notes in Notes that are about scores. Only people who ask why a result
	// has its rank need them.
	ScoreNotes []string `json:"-"`
	// Weak reports that no result matches much of the query. It is only set for an outline.
	Weak bool `json:"weak,omitempty"`
}

// SearchResult is one document that a search found.
type SearchResult struct {
	ID    string `json:"id"` // the path, with the anchor of the heading
	Title string `json:"title"`
	// URL is the upstream page of a page of a source, from its front matter. It is never a page
	// of this server, because an AI would cite the page to people who cannot sign in there.
	URL         string  `json:"url,omitempty"`
	Path        string  `json:"path"`
	Lines       string  `json:"lines,omitempty"`
	Heading     string  `json:"heading,omitempty"`
	Description string  `json:"description,omitempty"`
	Snippet     string  `json:"snippet"`
	Score       float64 `json:"score"`
	Source      string  `json:"source"` // SpaceLabel, or a source's ID
	Version     string  `json:"version,omitempty"`
	Lang        string  `json:"lang,omitempty"`
	Date        string  `json:"date,omitempty"`
	ETag        string  `json:"etag,omitempty"`
	// Also lists documents with the same content. AlsoTotal counts them if Also does not
	// list all. Related lists the files that a page is about, or the pages about a file.
	Also      []string          `json:"also,omitempty"`
	AlsoTotal int               `json:"also_total,omitempty"`
	Related   []string          `json:"related,omitempty"`
	Why       *rank.Explanation `json:"why,omitempty"`
}

// SpaceLabel is the source of results that are files of the space.
const SpaceLabel = "space"

// Library is the part of the library that a person may read.
type Library struct{ sources []space.Source }

// Sources returns the sources, sorted by ID.
func (l *Library) Sources() []space.Source { return l.sources }

// OpenLibrary returns the part of the library that the actor may read now. Several searches can
// share the result.
func (s *Service) OpenLibrary(ctx context.Context, a Actor) (*Library, error) {
	if err := s.authorize(a, "OpenLibrary"); err != nil {
		return nil, err
	}
	all, err := s.ListSources(ctx, a, ListSourcesInput{})
	return &Library{all}, err
}

// library returns the sources that a person may read, sorted by ID.
func (s *Service) library(ctx context.Context, user space.UserID) (*Library, error) {
	if s.sources == nil {
		return &Library{}, nil
	}
	all, err := s.sources.Visible(ctx, user)
	if err != nil {
		return nil, err
	}
	slices.SortFunc(all, func(a, b space.Source) int { return strings.Compare(a.ID, b.ID) })
	return &Library{all}, nil
}

// Search searches a space and the part of the library that the actor may read. The operator
// searches as a member of the space. For the operator, Search waits until the index is up to
// date, and repairs a damaged index. It does not wait while an up-to-date index is rebuilt.
func (s *Service) Search(ctx context.Context, a Actor, in SearchInput) (r SearchResults, err error) {
	cols, reader, err := s.collections(ctx, a, in)
	if err != nil {
		return r, err
	}
	q, notes, err := s.query(in)
	if err != nil {
		return r, err
	}
	if len(cols) == 0 {
		return SearchResults{Scope: "the library, which is empty: nobody has shared anything with this user"}.fit(nil, q.MaxTokens)
	}
	if a.kind != operator {
		if s.running.Index == nil {
			return r, errNoIndex
		}
		return s.search(ctx, s.running.Index, cols, reader, q, notes)
	}
	id, src := cols[0].ID, &countingStore{Store: s.git, progress: Progress(ctx)}
	err = s.withIndex(func(x *index.Index) error {
		if err := catchUp(ctx, x, id, src); err != nil {
			return err
		}
		if x != s.running.Index {
			if err := s.catchUpLibrary(ctx, x, cols); err != nil {
				return err
			}
		}
		return x.Sound(ctx, id, src, func() (err error) {
			r, err = s.search(ctx, x, cols, reader, q, notes)
			return err
		})
	})
	return r, err
}

func (s *Service) search(ctx context.Context, x *index.Index, cols []index.Collection, reader space.UserID, q index.Query, notes []string) (SearchResults, error) {
	// Wait for the index first, so that this search does not block others.
	if err := x.Await(ctx, cols, q); err != nil {
		return SearchResults{}, err
	}
	end, err := s.searches.take(ctx, reader)
	if err != nil {
		return SearchResults{}, err
	}
	defer end()
	found, err := x.Search(ctx, cols, q)
	if err != nil {
		return SearchResults{}, err
	}
	r := newSearchResults(found)
	r.Notes = append(r.Notes, notes...) // a note that the index is behind stays first
	if q.Outline {
		return r, nil // an outline already fits the budget
	}
	return r.fit(found.Hits, q.MaxTokens)
}

// collections returns the collections of a search: the space, then the library. Only collections
// and OpenLibrary decide what an actor may search.
func (s *Service) collections(ctx context.Context, a Actor, in SearchInput) (cols []index.Collection, reader space.UserID, err error) {
	if in.Space == (SpaceRef{}) && a.kind != operator {
		err = s.authorize(a, "Search")
	} else {
		m, merr := s.authorizeSpace(ctx, a, "Search", in.Space)
		cols, err = []index.Collection{{ID: m.ID, Label: SpaceLabel}}, merr
	}
	if err != nil {
		return nil, "", err
	}
	who, err := s.onBehalf(ctx, a, in.Space)
	if err != nil {
		return nil, "", err
	}
	if in.Library == nil {
		if in.Library, err = s.library(ctx, who.user); err != nil {
			return nil, "", err
		}
	}
	for _, src := range in.Library.sources {
		if src.Commit != "" {
			names, version := src.Names(), ""
			if s.syncs != nil {
				p := s.syncs.Package(src)
				names, version = append(names, p.Names...), p.Version
			}
			cols = append(cols, index.Collection{ID: src.Collection, Label: src.ID, Mount: src.Mount(), Names: names, Version: version, Web: src.Kind.FromWeb()})
		}
	}
	return cols, who.user, nil
}

// query creates the query for the index, with notes about values that were reduced.
func (s *Service) query(in SearchInput) (q index.Query, notes []string, err error) {
	l := s.o.Search
	switch {
	case strings.TrimSpace(in.Query) == "":
		return q, nil, fault.New(fault.Invalid, "The query is empty.")
	case in.Limit < 0 || in.MaxTokens < 0:
		return q, nil, fault.New(fault.Invalid, "A limit must be at least 1.")
	}
	lower := func(name string, n, usual, most int) int {
		if n > most {
			notes = append(notes, fmt.Sprintf("%s was lowered to %d, the most that is allowed.", name, most))
			return most
		}
		return cmp.Or(n, usual)
	}
	q = index.Query{
		Text: in.Query, UsualLimit: l.Results, MaxWait: l.Wait, Explain: in.Explain, Source: strings.TrimSpace(in.Source), Outline: in.Outline,
	}
	tokens := l.Tokens
	if in.Outline {
		q.UsualLimit, tokens = l.OutlineResults, l.OutlineTokens
	}
	if n := utf8.RuneCountInString(in.Query); n > l.QueryChars {
		q.Text = string([]rune(in.Query)[:l.QueryChars])
		notes = append(notes, fmt.Sprintf("The query has %d characters; only its beginning was used. Search for the few words that matter.", n))
	}
	q.Limit = lower("limit", in.Limit, 0, l.MaxResults) // 0: the query's text can set the limit
	q.MaxTokens = lower("max_tokens", in.MaxTokens, tokens, l.MaxTokens)
	switch since := strings.TrimSpace(in.Since); {
	case since == "":
	case IsDay(since):
		day, ok := ParseDay(since)
		if !ok {
			return q, nil, fault.New(fault.Invalid, "The argument %q must be a date such as 2026-01-31, not %q.", "since", since)
		}
		q.Since = day
	default:
		// The query language also accepts phrases like "last week", and reports errors.
		q.Text += ` since:"` + strings.ReplaceAll(since, `"`, "") + `"`
	}
	return q, notes, nil
}

// IsDay reports whether a text looks like a date or a time that ParseDay reads.
func IsDay(s string) bool {
	return strings.Trim(s, "0123456789-:TZ.+") == "" && len(s) >= len("2006")
}

// ParseDay parses a date (2026-01-31, 2026-01 or 2026) or a time (RFC 3339).
func ParseDay(s string) (time.Time, bool) {
	for _, layout := range []string{time.DateOnly, time.RFC3339, "2006-01", "2006"} {
		if t, err := time.Parse(layout, s); err == nil {
			return t.UTC(), true
		}
	}
	return time.Time{}, false
}

func newSearchResults(r index.Results) SearchResults {
	out := SearchResults{
		Results: make([]SearchResult, len(r.Hits)), Total: r.Total, Truncated: r.Truncated, Scope: r.Scope,
		IndexCommit: r.IndexCommit, IndexAge: math.Round(r.IndexAge.Seconds()*10) / 10,
		Notes: r.Notes, ScoreNotes: r.ScoreNotes, Suggestions: r.Suggestions, Weak: r.Weak,
	}
	if r.IndexAge > 0 {
		out.IndexAge = max(out.IndexAge, 0.1) // 0 means not behind
	}
	for i, h := range r.Hits {
		out.Results[i] = newSearchResult(h)
	}
	return out
}

func newSearchResult(h present.Hit) SearchResult {
	s := SearchResult{
		ID: h.Path, Title: cmp.Or(h.Title, path.Base(h.Path)), Path: h.Path,
		Heading: h.Heading, Snippet: h.Snippet, Score: math.Round(h.Score*1000) / 1000,
		Source: h.Source, Version: h.Version, Lang: h.Lang, URL: h.URL, ETag: string(h.Blob), Also: h.AlsoIn, Related: h.Related, Why: h.Why,
	}
	if h.Also > len(h.AlsoIn) {
		s.AlsoTotal = h.Also
	}
	if h.Anchor != "" {
		s.ID += "#" + h.Anchor
	}
	if h.Lines[0] > 0 {
		s.Lines = fmt.Sprintf("%d-%d", h.Lines[0], max(h.Lines[0], h.Lines[1]))
	}
	if h.Text != "" {
		s.Snippet = h.Text // the text includes the snippet
	} else {
		s.Description = h.Description
	}
	if !h.Date.IsZero() {
		s.Date = h.Date.UTC().Format(time.DateOnly)
	}
	return s
}

// fit shortens the results until they fit a budget of tokens. It first replaces texts by
// snippets, starting with the last result. If that is not enough, it removes the last
// results and adds a note. One result always stays. Explanations do not count in the budget.
func (r SearchResults) fit(hits []present.Hit, budget int) (SearchResults, error) {
	if r.Results == nil {
		r.Results = []SearchResult{} // [] and not null
	}
	why := make([]*rank.Explanation, len(r.Results))
	for i := range r.Results {
		why[i], r.Results[i].Why = r.Results[i].Why, nil
	}
	var err error
	fits := func() bool {
		var encoded []byte
		encoded, err = encode(r)
		return err != nil || present.EstimateTokens(string(encoded)) <= budget
	}
	fit := fits()
	for i := len(r.Results) - 1; i >= 0 && !fit; i-- {
		if h := hits[i]; h.Text != "" {
			h.Text, h.Lines, h.Why = "", h.SnippetLines, nil
			r.Results[i] = newSearchResult(h)
			fit = fits()
		}
	}
	for len(r.Results) > 1 && !fit {
		n := len(r.Results)
		r.Notes = slices.DeleteFunc(slices.Clone(r.Notes), func(s string) bool { return s == present.CutNote(n) })
		r.Results, r.Notes = r.Results[:n-1], append(r.Notes, present.CutNote(n-1))
		r.Truncated = true
		fit = fits()
	}
	for i := range r.Results {
		r.Results[i].Why = why[i]
	}
	return r, err
}

// encode encodes JSON without HTML escapes, which would turn each < into six characters.
func encode(v any) ([]byte, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	err := e.Encode(v)
	return bytes.TrimSuffix(b.Bytes(), []byte("\n")), err
}
