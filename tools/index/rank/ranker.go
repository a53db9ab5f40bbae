package rank

import (
	"cmp"
	"log/slog"
	"time"

	lru "github.com/hashicorp/golang-lru/v2"

	"satchel/internal/freelist"
	"satchel/tools/index/parse"
	"satchel/tools/index/semantic"
)

// MaxResults is the maximum number of hits of one search.
const MaxResults = 50

// Options configure a Ranker. Logger and Now are required. The zero value of any other field
// means its default. Only tests change the numbers.
type Options struct {
	Logger *slog.Logger
	Now    func() time.Time
	// Candidates is how many chunks of each database go on to the ranking of pages: those with
	// the best scores, of all that have a word of the query. Long answers need more.
	Candidates int
	// MaxRows is how many chunks of each segment of a database are read to check whether they
	// contain a phrase of several words. Those with the best scores are read first. More are read if fewer than Candidates have the phrase.
	MaxRows int
	// MinScoreShare is the share of the best score below which other hits are left out of
	// an answer ordered by relevance: such hits usually share only a frequent word with the
	// query. If MinScoreShare is negative, no hit is left out.
	MinScoreShare float64
	// Semantic holds the models of semantic search, and Engine the vectors. Both may be
	// nil.
	Semantic *Semantic
	Engine   *semantic.Engine
}

// Ranker ranks the documents of searches. Its methods may be called concurrently.
type Ranker struct {
	opts      Options
	analyzers freelist.List[parse.Analyzer] // analyzers to reuse, because they cache stems
	models    *models                       // nil if there are no models
}

// New returns a Ranker.
func New(o Options) *Ranker {
	o.Candidates = cmp.Or(o.Candidates, 1000)
	o.MaxRows = cmp.Or(o.MaxRows, 6000)
	o.MinScoreShare = cmp.Or(o.MinScoreShare, DefaultMinScoreShare)
	r := &Ranker{opts: o}
	if o.Semantic != nil {
		m := &models{Semantic: o.Semantic.withDefaults(), engine: o.Engine}
		m.rerankBreaker = semantic.NewBreaker(semantic.DefaultBreakAfter, semantic.DefaultBreakFor, o.Now)
		m.expandBreaker = semantic.NewBreaker(semantic.DefaultBreakAfter, semantic.DefaultBreakFor, o.Now)
		m.expanded, _ = lru.New[string, []string](m.ExpandCache) // it fails only for a size below 1
		r.models = m
	}
	return r
}

// DefaultMinScoreShare is the default of [Options.MinScoreShare].
const DefaultMinScoreShare = 0.2

// Analyzer returns an analyzer of the words of queries.
func (r *Ranker) Analyzer() *parse.Analyzer {
	if a := r.analyzers.Get(); a != nil {
		return a
	}
	return parse.NewAnalyzer()
}

// Release gives an analyzer back.
func (r *Ranker) Release(a *parse.Analyzer) { r.analyzers.Put(a) }
