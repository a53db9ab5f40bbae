package index

import (
	"time"

	"satchel/internal/space"
	"satchel/tools/index/present"
	"satchel/tools/index/query"
)

// Collection is one database to search.
type Collection struct {
	ID space.SpaceID
	// Label names it in results and in the source: filter: "space", or a source's id.
	Label string
	// Mount is the directory under which its paths are shown, without a slash at its end:
	// "/library/docs/nuxt". Empty for a space.
	Mount string
}

// Query is one search.
type Query struct {
	// Text is in the query language: words, "phrases", -without and qualifiers.
	Text string
	// Limit is the maximum number of hits. The smaller of it and a limit: in the text
	// counts. If neither is above 0, UsualLimit counts, or else DefaultLimit. No answer has
	// more than rank.MaxResults.
	Limit      int
	UsualLimit int
	// MaxTokens is the budget of the whole answer, by present.EstimateTokens.
	// Default 5,000.
	MaxTokens int
	// Source and Since are further filters. Source is one label or several, separated by
	// commas.
	Source string
	Since  time.Time
	// Explain requests the explanation of each hit's score.
	Explain bool
	// MaxWait is how long after an index fell behind Await still waits for it. With
	// zero, the default, it never waits.
	MaxWait time.Duration
}

// DefaultLimit is the default of Query.Limit.
const DefaultLimit = 10

// Results answer a Query.
type Results struct {
	Hits []present.Hit
	// Total is the number of documents that have a word of the query and meet the filters,
	// without those that another hit represents. Truncated means that Hits has fewer.
	Total     int
	Truncated bool
	// Scope describes what was searched.
	Scope string
	// Indexes has the state of each collection. IndexCommit is the commit of the first, and
	// IndexAge the longest time for which one has been behind; zero if none is.
	Indexes     []IndexState
	IndexCommit space.CommitID
	IndexAge    time.Duration
	// Notes are sentences for the caller, such as what of the query was not understood or
	// could not be searched.
	Notes []string
	// Suggestions are words of the index near those that found nothing.
	Suggestions []string
	// Tokens is about what Hits cost as JSON objects, by present.EstimateTokens.
	Tokens int
}

// IndexState is what an answer knows of one collection.
type IndexState struct {
	Collection Collection
	Commit     space.CommitID // empty if it is not indexed yet
	// Behind is for how long the index has been behind its head, zero if it is not
	// behind. Pages is how many pages it lacks, 0 if that is not known.
	Behind time.Duration
	Pages  int
	Docs   int64
}

// limitWith returns how many hits are wanted if the text has a limit; 0 for none.
func (q *Query) limitWith(text int) int {
	if n := query.Smaller(q.Limit, text); n > 0 {
		return n
	}
	if q.UsualLimit > 0 {
		return q.UsualLimit
	}
	return DefaultLimit
}
