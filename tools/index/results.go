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
	// Label is what results and the source: filter call it: "space", or a
	// source's id.
	Label string
	// Mount is put before the paths of its files, without a slash at its end:
	// "/library/docs/nuxt". Empty for a space.
	Mount string
}

// Query is one search.
type Query struct {
	// Text is in the query language: words, "phrases", -without and qualifiers.
	Text string
	// Limit is the most hits wanted. As with other filters, it holds beside a
	// limit: in the text, so that the smaller of them counts; where neither is
	// above 0, UsualLimit does, and where that is not, DefaultLimit. No answer has
	// more than Options.MaxResults.
	Limit      int
	UsualLimit int
	// MaxTokens is the budget of the whole answer, by present.EstimateTokens.
	// Default 5,000.
	MaxTokens int
	// Source and Since are filters beside those in the text; Source is one
	// label or several with commas.
	Source string
	Since  time.Time
	// Explain asks for the explanation of each hit's score.
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
	// Total is how many documents hold a word that was looked for, and meet the
	// filters, without those for which another one was found to stand. Truncated
	// reports that Hits has fewer.
	Total     int
	Truncated bool
	// Scope says in words what was searched.
	Scope string
	// Indexes tells for each collection what the answer speaks of. IndexCommit
	// is the first one's, IndexAge the age of the one that is furthest behind
	// its head; zero if none is behind.
	Indexes     []IndexState
	IndexCommit space.CommitID
	IndexAge    time.Duration
	// Notes are sentences for the caller: what of the query was not understood,
	// what could not be searched.
	Notes []string
	// Suggestions are words of the index near those that found nothing.
	Suggestions []string
	// Tokens is about what Hits cost where each is an object of JSON with the
	// names of its fields, by EstimateTokens.
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

// limitWith returns how many hits are wanted where the text has a limit: of its
// own, 0 for none.
func (q *Query) limitWith(text int) int {
	if n := query.Smaller(q.Limit, text); n > 0 {
		return n
	}
	if q.UsualLimit > 0 {
		return q.UsualLimit
	}
	return DefaultLimit
}
