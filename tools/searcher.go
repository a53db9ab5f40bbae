package tools

import (
	"context"
	"time"

	"satchel/internal/space"
)

// Searcher finds pages in a space and in the sources that its caller may see.
type Searcher interface {
	// Search never waits for the index to catch up: the answer says how far
	// behind it is. Nothing in a query is an error.
	Search(ctx context.Context, r SearchRequest) (SearchAnswer, error)
}

// SearchRequest is one search.
type SearchRequest struct {
	Space     space.SpaceID
	User      space.UserID
	Query     string // words and qualifiers (DESIGN section 6)
	Source    string // only this source; empty: all
	Since     time.Time
	Limit     int
	MaxTokens int
}

// SearchAnswer is what was found. Its JSON is the search tool's structured
// answer.
type SearchAnswer struct {
	Results []SearchResult `json:"results"`
	// Total is how many documents matched.
	Total     int  `json:"total"`
	Truncated bool `json:"truncated"`
	// Scope says in words what was searched.
	Scope       string         `json:"scope"`
	IndexCommit space.CommitID `json:"index_commit"`
	// IndexAge is for how many seconds head has been newer than the index; 0
	// where the index is at head.
	IndexAge    float64  `json:"index_age"`
	Notes       []string `json:"notes,omitempty"`
	Suggestions []string `json:"suggestions,omitempty"`
}

// SearchResult is one document.
type SearchResult struct {
	ID      string  `json:"id"` // the path, or path#heading
	Title   string  `json:"title"`
	URL     string  `json:"url"` // empty from a Searcher that knows no upstream page: the Set fills it in
	Path    string  `json:"path"`
	Lines   string  `json:"lines,omitempty"` // "12-40"
	Heading string  `json:"heading,omitempty"`
	Snippet string  `json:"snippet"`
	Score   float64 `json:"score"`
	Source  string  `json:"source"` // "space", or a source's id
	Date    string  `json:"date,omitempty"`
	ETag    string  `json:"etag,omitempty"`
}
