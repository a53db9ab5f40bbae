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
	// Label identifies the collection in results and in the source: filter. It is "space"
	// or a source's id.
	Label string
	// Mount is the prefix of the collection's paths in results, without a trailing slash:
	// "/library/docs/nuxt". It is empty for a space.
	Mount string
	// Names are other names of the collection, such as its title. If a query over several
	// collections contains the label or one of these names, the collection's pages rank
	// higher.
	Names []string
	// Version is the version that the whole collection is about, if it is known. If several
	// collections have copies of a page, only the copy of the newest version is a hit.
	Version string
	// Web reports that the front matter of a page names the page's address on the web. Otherwise
	// an author may have written any address there.
	Web bool
}

// Query is one search.
type Query struct {
	// Text is in the query language: words, "phrases", -without and qualifiers.
	Text string
	// Limit is the maximum number of hits. If the text has a limit: qualifier too, the smaller
	// limit applies. If neither is above 0, UsualLimit applies, or else DefaultLimit. No answer has
	// more hits than rank.MaxResults.
	Limit      int
	UsualLimit int
	// MaxTokens is the budget of the whole answer, as present.EstimateTokens counts.
	// Default 5,000.
	MaxTokens int
	// Outline presents the hits for a model that reads them as Markdown (present.Outline), and
	// not as JSON objects (present.Hits).
	Outline bool
	// Source and Since are further filters. Source is one or more labels, separated by
	// commas.
	Source string
	Since  time.Time
	// Explain requests the explanation of each hit's score.
	Explain bool
	// MaxWait is how long Await waits for an index, from the time when the index fell
	// behind. With zero, the default, it never waits.
	MaxWait time.Duration
}

// DefaultLimit is the default of Query.Limit.
const DefaultLimit = 10

// Results is the answer to a Query.
type Results struct {
	Hits []present.Hit
	// Total counts the documents that match the query and the filters, without those that
	// another hit represents. Truncated reports that Hits lists fewer.
	Total     int
	Truncated bool
	// Weak reports that no hit contains much of the query. It is only set for an outline.
	Weak bool
	// Scope describes what was searched.
	Scope string
	// Indexes holds the state of each collection. IndexCommit is the commit of the first index.
	// IndexAge is the longest time that an index has been behind, or zero if none is.
	Indexes     []IndexState
	IndexCommit space.CommitID
	IndexAge    time.Duration
	// Notes are sentences for the caller. For example, they say which part of the query was
	// not understood or could not be searched.
	Notes []string
	// ScoreNotes are the notes in Notes that are about scores, for people who ask for them.
	ScoreNotes []string
	// Suggestions are words of the index that are similar to the words that found nothing.
	Suggestions []string
	// Tokens is the approximate cost of Hits, as present.EstimateTokens counts.
	Tokens int
}

// IndexState describes one collection in an answer.
type IndexState struct {
	Collection Collection
	Commit     space.CommitID // empty if the collection is not indexed yet
	// Behind is how long the index has been behind its head, or zero if it is not behind.
	// Pages is how many pages it lacks, or 0 if that is unknown.
	Behind time.Duration
	Pages  int
	Docs   int64
}

// limitWith returns the maximum number of hits. text is the limit in the query's text, or 0 if
// the text has none.
func (q *Query) limitWith(text int) int {
	if n := query.Smaller(q.Limit, text); n > 0 {
		return n
	}
	if q.UsualLimit > 0 {
		return q.UsualLimit
	}
	return DefaultLimit
}
