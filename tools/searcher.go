package tools

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"path"
	"slices"
	"time"

	"satchel/internal/space"
	"satchel/tools/index"
	"satchel/tools/index/present"
)

// Searcher finds pages in several collections at once; *index.Index is one.
// Nothing in a query is an error.
type Searcher interface {
	// Await waits until the indexes that Search reads have caught up with the
	// collections, but no longer than the query allows.
	Await(ctx context.Context, cols []index.Collection, q index.Query) error
	Search(ctx context.Context, cols []index.Collection, q index.Query) (index.Results, error)
}

// spaceLabel is what search's source calls the space.
const spaceLabel = "space"

// searchAnswer is search's structured answer; searchOutput is its schema.
type searchAnswer struct {
	Notes       []string       `json:"notes,omitempty"` // first, because a model reads in order
	Results     []searchResult `json:"results"`
	Total       int            `json:"total"`
	Truncated   bool           `json:"truncated"`
	Scope       string         `json:"scope"`
	IndexCommit space.CommitID `json:"index_commit"`
	IndexAge    float64        `json:"index_age"`
	Suggestions []string       `json:"suggestions,omitempty"`
}

type searchResult struct {
	ID    string `json:"id"`
	Title string `json:"title"`
	// URL is where a person finds the page upstream. The server's own pages are
	// for members who are signed in, and an AI that cites one would send others
	// to them.
	URL         string  `json:"url,omitempty"`
	Path        string  `json:"path"`
	Lines       string  `json:"lines,omitempty"`
	Heading     string  `json:"heading,omitempty"`
	Description string  `json:"description,omitempty"`
	Snippet     string  `json:"snippet"`
	Score       float64 `json:"score"`
	Source      string  `json:"source"`
	Version     string  `json:"version,omitempty"`
	Lang        string  `json:"lang,omitempty"`
	Date        string  `json:"date,omitempty"`
	ETag        string  `json:"etag,omitempty"`
	// Also are other documents that say the same, AlsoTotal how many there are
	// where that is more than are named; Related are the files that a page is
	// about, or the pages about a file.
	Also      []string `json:"also,omitempty"`
	AlsoTotal int      `json:"also_total,omitempty"`
	Related   []string `json:"related,omitempty"`
}

func newSearchAnswer(r index.Results) searchAnswer {
	a := searchAnswer{
		Results: []searchResult{}, // [] and not null
		Total:   r.Total, Truncated: r.Truncated, Scope: r.Scope,
		IndexCommit: r.IndexCommit, IndexAge: math.Round(r.IndexAge.Seconds()*10) / 10,
		Notes: r.Notes, Suggestions: r.Suggestions,
	}
	if r.IndexAge > 0 {
		a.IndexAge = max(a.IndexAge, 0.1) // 0 means not behind
	}
	for _, h := range r.Hits {
		a.Results = append(a.Results, newSearchResult(h))
	}
	return a
}

func newSearchResult(h present.Hit) searchResult {
	s := searchResult{
		ID: h.Path, Title: cmp.Or(h.Title, path.Base(h.Path)), Path: h.Path,
		Heading: h.Heading, Snippet: h.Snippet, Score: math.Round(h.Score*1000) / 1000,
		Source: h.Source, Version: h.Version, Lang: h.Lang, ETag: string(h.Blob), Also: h.AlsoIn, Related: h.Related,
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
		s.Snippet = h.Text // it holds what the snippet shows, and more
	} else {
		s.Description = h.Description
	}
	if !h.Date.IsZero() {
		s.Date = h.Date.UTC().Format(time.DateOnly)
	}
	return s
}

// fitAnswer makes an answer that costs more as it is sent than the budget, which
// what the index counts comes near to, cheaper: from the last hit on, texts give
// way to snippets, and only where there is none left, the last results are left
// out, which a note tells. One result stays in any case. It also returns what is
// sent.
func fitAnswer(a searchAnswer, hits []present.Hit, budget int) (searchAnswer, Result, error) {
	var sent Result
	var err error
	fits := func() bool {
		sent, err = structured(a)
		return err != nil || present.EstimateTokens(sent.Content[0].Text) <= budget
	}
	for i := len(a.Results) - 1; i >= 0 && !fits(); i-- {
		if h := hits[i]; h.Text != "" {
			h.Text, h.Lines = "", h.SnippetLines
			a.Results[i] = newSearchResult(h)
		}
	}
	for len(a.Results) > 1 && !fits() {
		n := len(a.Results)
		a.Notes = slices.DeleteFunc(slices.Clone(a.Notes), func(s string) bool { return s == present.CutNote(n) })
		a.Results, a.Notes = a.Results[:n-1], append(a.Notes, present.CutNote(n-1))
		a.Truncated = true
	}
	if len(a.Results) < 2 { // nobody has asked since it was changed
		fits()
	}
	return a, sent, err
}

// chatGPTAnswer leaves of an answer what ChatGPT's form has. It demands an
// absolute url of every result, so one without a page upstream gets this
// server's.
func chatGPTAnswer(a searchAnswer, fileURL func(path string) string) any {
	type result struct {
		ID    string `json:"id"`
		Title string `json:"title"`
		URL   string `json:"url"`
	}
	results := make([]result, len(a.Results))
	for i, r := range a.Results {
		results[i] = result{r.ID, r.Title, cmp.Or(r.URL, fileURL(r.Path))}
	}
	return struct {
		Results []result `json:"results"`
	}{results}
}
