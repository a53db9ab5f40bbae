package api

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"satchel/internal/fault"
	"satchel/internal/service"
	"satchel/internal/space"
)

func (s *Server) searchRoutes() []route {
	return []route{
		on(http.MethodPost, "/api/sandbox/search", space.ScopeRead, about{id: "search", summary: "Find pages", answer: "The best first.", example: `{"query": "deploy checklist"}`}, s.search),
		on(http.MethodPost, "/api/sandbox/search-and-read", space.ScopeRead, about{
			id: "searchAndRead", summary: "Find pages and read the best", answer: "The results, and the files of the best.", example: `{"query": "deploy checklist"}`,
		}, s.searchAndRead),
	}
}

type searchRequest struct {
	session
	Query     string   `json:"query" doc:"Words, names or a question, with the qualifiers of docs/search.md." api:"required,minLength=1"`
	Limit     int      `json:"limit" doc:"Maximum number of results; 0 or omitted means the server's default." api:"minimum=0,maximum=$results"`
	Source    string   `json:"source" doc:"ID of a source; searches only this source."`
	Since     string   `json:"since" doc:"Only pages that changed on or after this date, such as 2026-01-31."`
	Paths     []string `json:"paths" doc:"Searches only files at or under these paths of the library; * and ** are patterns." api:"maxItems=$searchPaths"`
	MaxTokens int      `json:"maxTokens" doc:"Budget of the results, in tokens." api:"minimum=0"`
}

// foundView is what the answers of search and of search-and-read have in common.
type foundView struct {
	session
	Matches     []matchView  `json:"matches" doc:"For each result, the first lines with the largest number of the query's words, in the order of the results."`
	Results     []resultView `json:"results"`
	Total       int          `json:"total" doc:"The number of documents that match." api:"minimum=0"`
	Truncated   bool         `json:"truncated" doc:"Whether there are more matches than results."`
	Notes       []string     `json:"notes,omitempty"`
	Suggestions []string     `json:"suggestions,omitempty"`
}

type resultsView struct {
	foundView
	Files []string `json:"files" doc:"The paths of the results, the best first."`
}

type resultView struct {
	ID          string   `json:"id" doc:"Pass it to read unchanged."`
	Title       string   `json:"title"`
	URL         string   `json:"url,omitempty" doc:"The original page on the web."`
	Path        string   `json:"path"`
	Lines       string   `json:"lines,omitempty" doc:"The lines of the snippet, such as 12-40."`
	Heading     string   `json:"heading,omitempty"`
	Description string   `json:"description,omitempty"`
	Snippet     string   `json:"snippet"`
	Score       float64  `json:"score"`
	Source      string   `json:"source"`
	Version     string   `json:"version,omitempty"`
	Lang        string   `json:"lang,omitempty"`
	Date        string   `json:"date,omitempty"`
	ETag        string   `json:"etag,omitempty"`
	Also        []string `json:"also,omitempty"`
	AlsoTotal   int      `json:"also_total,omitempty" api:"minimum=0"`
	Related     []string `json:"related,omitempty"`
}

// maxSearchPaths limits the paths of a request. A query can have 16 path filters, and a path can
// need two of them.
const maxSearchPaths = 8

// search is POST /api/sandbox/search.
func (s *Server) search(c *call, a searchRequest) (resultsView, error) {
	found, err := c.find(c.r.Context(), a)
	return resultsView{found, found.paths(len(found.Results))}, err
}

// paths returns the paths of the best results, at most n, each once.
func (f foundView) paths(n int) []string {
	paths := []string{} // [] and not null
	for _, r := range f.Results {
		if len(paths) < n && !slices.Contains(paths, r.Path) {
			paths = append(paths, r.Path)
		}
	}
	return paths
}

func (c *call) find(ctx context.Context, a searchRequest) (foundView, error) {
	found := foundView{session: a.session.named()}
	l := c.s.o.Limits
	switch {
	case strings.TrimSpace(a.Query) == "":
		return found, fault.New(fault.Invalid, `Give a query, such as {"query": "deploy checklist"}.`)
	case a.Limit < 0 || a.Limit > l.Results:
		return found, fault.New(fault.Invalid, "limit must be from 1 to %d, or left out.", l.Results)
	case a.MaxTokens < 0:
		return found, fault.New(fault.Invalid, "maxTokens must be a number above 0, or left out.")
	case len(a.Paths) > min(l.Paths, maxSearchPaths):
		return found, tooMany("paths", len(a.Paths), min(l.Paths, maxSearchPaths))
	}
	for i, p := range a.Paths {
		p, err := inLibrary(p)
		if err != nil {
			return found, err
		}
		a.Paths[i] = p
	}
	if err := c.openLibrary(); err != nil {
		return found, err
	}
	r, err := c.s.o.Service.Search(ctx, c.actor(), service.SearchInput{
		Query: a.Query + pathQualifiers(a.Paths), Limit: a.Limit, Source: a.Source, Since: a.Since, MaxTokens: a.MaxTokens, Library: c.library,
	})
	if err != nil {
		return found, err
	}
	found.Results, found.Matches = []resultView{}, []matchView{} // [] and not null
	words := wordsOf(a.Query)
	for _, x := range r.Results {
		v := resultView{
			ID: x.ID, Title: x.Title, URL: x.URL, Path: x.Path, Lines: x.Lines, Heading: x.Heading, Description: x.Description, Snippet: x.Snippet,
			Score: x.Score, Source: x.Source, Version: x.Version, Lang: x.Lang, Date: x.Date, ETag: x.ETag, Also: x.Also, AlsoTotal: x.AlsoTotal, Related: x.Related,
		}
		if v.relative() {
			found.Results = append(found.Results, v)
			found.Matches = append(found.Matches, words.matches(v)...)
		}
	}
	found.Total, found.Truncated, found.Notes, found.Suggestions = r.Total, r.Truncated, r.Notes, r.Suggestions
	return found, nil
}

// relative makes the paths of a result relative to the library. It returns false if the
// result is not in the library.
func (r *resultView) relative() bool {
	var ok bool
	if r.Path, ok = fromLibrary(r.Path); !ok {
		return false
	}
	if r.ID, ok = fromLibrary(r.ID); !ok {
		return false
	}
	for _, list := range []*[]string{&r.Also, &r.Related} {
		var kept []string
		for _, p := range *list {
			if p, ok := fromLibrary(p); ok {
				kept = append(kept, p)
			}
		}
		*list = kept
	}
	return true
}

// pathQualifiers returns qualifiers that restrict a query to files at or under the paths.
func pathQualifiers(paths []string) string {
	var b strings.Builder
	for _, p := range paths {
		switch {
		case strings.HasSuffix(p, "/"):
			p += "**"
		case !strings.ContainsAny(p, "*?["):
			// A directory is often written without its slash.
			fmt.Fprintf(&b, ` path:"%s"`, strings.ReplaceAll(p, `"`, ""))
			p += "/**"
		}
		fmt.Fprintf(&b, ` path:"%s"`, strings.ReplaceAll(p, `"`, ""))
	}
	return b.String()
}

func tooMany(what string, n, most int) error {
	return fault.New(fault.TooLarge, "There are %d %s, but one request can have at most %d.", n, what, most)
}

type searchAndReadRequest struct {
	searchRequest
	Read int `json:"read" doc:"How many of the best results are read; 0 or omitted means 3." api:"minimum=0,maximum=$paths"`
}

type resultsAndFilesView struct {
	Query string `json:"query"`
	foundView
	Files []fileView `json:"files"`
}

// defaultRead is how many results are read by default.
const defaultRead = 3

// searchAndRead is POST /api/sandbox/search-and-read.
func (s *Server) searchAndRead(c *call, a searchAndReadRequest) (resultsAndFilesView, error) {
	if a.Read < 0 || a.Read > s.o.Limits.Paths {
		return resultsAndFilesView{}, fault.New(fault.Invalid, "read must be from 1 to %d, or left out.", s.o.Limits.Paths)
	}
	if a.Read == 0 {
		a.Read = defaultRead
	}
	found, err := c.find(c.r.Context(), a.searchRequest)
	if err != nil {
		return resultsAndFilesView{}, err
	}
	files, err := c.files(c.r.Context(), found.paths(a.Read))
	if err != nil {
		return resultsAndFilesView{}, err
	}
	words := wordsOf(a.Query)
	for i := range files {
		files[i].Matches = max(1, len(words.lines(files[i].Content)))
	}
	return resultsAndFilesView{a.Query, found, files}, nil
}
