package semantic

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	lru "github.com/hashicorp/golang-lru/v2"
)

// Options configure an Engine. The zero value of a field means its default.
type Options struct {
	// Dir holds the vectors and the cache. The Engine creates it if it does not exist. It must
	// not contain anything else.
	Dir string
	// Embedder creates the vectors.
	Embedder Embedder
	// Logger receives failures, and a line when the vectors of another model begin to answer. It
	// never receives a text or a key. Default: nothing is logged.
	Logger *slog.Logger
	// QueryWait is how long a search waits for the vector of its query. Default 300 ms.
	QueryWait time.Duration
	// QueryTimeout is how long the model may work on a query's vector, even if the search has
	// continued without it. So a model that is still loading can answer the next search.
	// Default 20 s.
	QueryTimeout time.Duration
	// BreakAfter is how many failures or late answers in a row stop the calls for queries, and
	// BreakFor is how long. Further failures double this time, up to 64 times BreakFor.
	// Default 3 and 5 s.
	BreakAfter int
	BreakFor   time.Duration
	// QueryCache is how many queries' vectors are kept in memory. Default 256.
	QueryCache int
	// MaxAsking is how many queries the model works on at once. Further queries continue
	// without the model. Default 16.
	MaxAsking int
	// Batch and BatchTokens limit the texts that are embedded at once, by their count and by an
	// estimate of their tokens. Default 64 and 16,000.
	Batch       int
	BatchTokens int
	// Parallel is how many batches of one collection are under way at once.
	// Default 2.
	Parallel int
	// Workers is how many collections are embedded at once. Default 2.
	Workers int
	// Slice is how long a collection is embedded before waiting collections get their turn.
	// Default 30 s.
	Slice time.Duration
	// RetryAfter is the delay before a failed collection is tried again. Further failures
	// double the delay, up to 64 times RetryAfter. Default 5 s.
	RetryAfter time.Duration
	// CacheBytes limits the cache of vectors. Default 1 GiB.
	CacheBytes int64
	// Now is the clock. Default time.Now.
	Now func() time.Time
}

// The defaults of Options.
const (
	DefaultQueryWait    = 300 * time.Millisecond
	DefaultQueryTimeout = 20 * time.Second
	DefaultBreakAfter   = 3
	DefaultBreakFor     = 5 * time.Second
	DefaultQueryCache   = 256
	DefaultMaxAsking    = 16
	DefaultBatch        = 64
	DefaultBatchTokens  = 16_000
	DefaultParallel     = 2
	DefaultWorkers      = 2
	DefaultSlice        = 30 * time.Second
	DefaultRetryAfter   = 5 * time.Second
	DefaultCacheBytes   = 1 << 30

	maxDelayFactor = 64
)

func orDefault[T int | int64 | time.Duration](p *T, def T) {
	if *p <= 0 {
		*p = def
	}
}

func (o Options) withDefaults() Options {
	orDefault(&o.QueryWait, DefaultQueryWait)
	orDefault(&o.QueryTimeout, DefaultQueryTimeout)
	orDefault(&o.BreakAfter, DefaultBreakAfter)
	orDefault(&o.BreakFor, DefaultBreakFor)
	orDefault(&o.QueryCache, DefaultQueryCache)
	orDefault(&o.MaxAsking, DefaultMaxAsking)
	orDefault(&o.Batch, DefaultBatch)
	orDefault(&o.BatchTokens, DefaultBatchTokens)
	orDefault(&o.Parallel, DefaultParallel)
	orDefault(&o.Workers, DefaultWorkers)
	orDefault(&o.Slice, DefaultSlice)
	orDefault(&o.RetryAfter, DefaultRetryAfter)
	orDefault(&o.CacheBytes, DefaultCacheBytes)
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	return o
}

// State is the state of a collection in its Source.
type State struct {
	// Fingerprint identifies how documents are cut into chunks. After a change of the
	// fingerprint, vectors are looked up by their texts.
	Fingerprint string
	Commit      string
}

// Doc is a document of a collection.
type Doc struct {
	ID int64
	// Key is a hash of the document's name and content. Documents with the same key have the
	// same chunks.
	Key uint64
}

// Chunk is a passage of a document.
type Chunk struct {
	ID   int64
	Text string // the text to embed, with its title and headings
}

// Source is the index, from which the Engine reads collections.
type Source interface {
	// Docs lists a collection's documents, ascending by id. ok is false if the collection has
	// no index.
	Docs(ctx context.Context, collection string) (docs []Doc, s State, ok bool, err error)
	// Chunks returns the chunks of a document, ascending by id, or none if the document was
	// removed.
	Chunks(ctx context.Context, collection string, d Doc) ([]Chunk, error)
}

// Engine keeps the vectors of all collections. Its methods may be called concurrently. A nil
// Engine is switched off: Wait must not be called, and the other methods do nothing.
type Engine struct {
	o      Options
	cache  *cache
	ctx    context.Context
	cancel context.CancelFunc
	wg     sync.WaitGroup
	asked  asked

	mu      sync.Mutex
	src     Source
	cols    map[string]*collection
	pending []string
	wake    *sync.Cond
	closed  bool
	// probe reports that the length of the model's vectors has changed. The next run then asks
	// the model for the length first.
	probe   bool
	refused *lru.Cache[textHash, struct{}]
	news    chan struct{} // closed and replaced whenever a run ends
}

// collection is one collection's vectors. Its fields are guarded by Engine.mu.
type collection struct {
	name    string
	cur     *matrix // the vectors that answer; nil: none
	tried   bool    // the files on disk were looked for
	busy    bool    // pending or running
	again   bool    // the collection changed during the run
	dropped bool
	delay   time.Duration
	timer   *time.Timer
	status  Status
}

// Status describes the progress of a collection's vectors.
type Status struct {
	// Model is the configured model, and Answering is the model whose vectors searches use now.
	// Each is empty if there is no such model.
	Model     string
	Answering string
	// Dimensions and Commit belong to the vectors in use.
	Dimensions int
	Commit     string
	// Running reports that chunks are being embedded. Done of Total are embedded.
	Running     bool
	Done, Total int
	// Refused is the number of chunks whose text the model refused.
	Refused int
	// Err is the error of the last run; nil if it succeeded.
	Err error
}

// Open opens the cache and starts the background work for collections that are reported with
// Changed. Close must be called.
func Open(ctx context.Context, src Source, o Options) (*Engine, error) {
	o = o.withDefaults()
	if err := os.MkdirAll(o.Dir, 0o700); err != nil {
		return nil, fmt.Errorf("make the directory of vectors: %w", err)
	}
	if left, err := filepath.Glob(filepath.Join(o.Dir, "new-*.tmp")); err == nil {
		for _, f := range left { // left by a process that did not end normally
			os.Remove(f)
		}
	}
	c, err := openCache(ctx, filepath.Join(o.Dir, "cache.db"), o.CacheBytes)
	if err != nil {
		return nil, err
	}
	refused, _ := lru.New[textHash, struct{}](maxRefused)
	e := &Engine{o: o, cache: c, src: src, cols: map[string]*collection{}, refused: refused, news: make(chan struct{})}
	e.ctx, e.cancel = context.WithCancel(context.WithoutCancel(ctx))
	e.wake = sync.NewCond(&e.mu)
	e.asked.init(o)
	for range o.Workers {
		e.wg.Go(e.work)
	}
	return e, nil
}

// Close stops the work and waits until it has stopped. All Views must have been released. The
// next start continues with the missing vectors.
func (e *Engine) Close() error {
	if e == nil {
		return nil
	}
	e.mu.Lock()
	e.closed = true
	for _, c := range e.cols {
		if c.timer != nil {
			c.timer.Stop()
		}
	}
	e.wake.Broadcast()
	e.mu.Unlock()
	e.asked.mu.Lock() // no query starts after this
	e.cancel()
	e.asked.mu.Unlock()
	e.wg.Wait()
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, c := range e.cols {
		if c.cur != nil {
			c.cur.retire(false)
			c.cur = nil
		}
	}
	return e.cache.close()
}

// collection returns a collection, with its vectors if they are on disk. The caller holds e.mu.
func (e *Engine) collection(name string) *collection {
	c := e.cols[name]
	if c == nil {
		c = &collection{name: name}
		c.status.Model = e.o.Embedder.Identity().Model
		e.cols[name] = c
	}
	if !c.tried && !c.dropped {
		c.tried = true
		for _, f := range e.files(name) {
			m, err := openMatrix(f)
			if err != nil {
				if !errors.Is(err, os.ErrNotExist) {
					e.o.Logger.Warn("vectors cannot be used and will be made again", "collection", name, "error", err)
					os.Remove(f)
				}
				continue
			}
			c.answer(m)
			break
		}
	}
	return c
}

// answer replaces the vectors that answer queries. The caller holds Engine.mu.
func (c *collection) answer(m *matrix) {
	c.cur = m
	c.status.Answering, c.status.Dimensions, c.status.Commit = m.Identity.Model, m.Dims, m.Commit
}

// files returns a collection's files, the file of the configured model first.
func (e *Engine) files(name string) []string {
	all, err := filepath.Glob(filepath.Join(e.o.Dir, name+".*.vec"))
	if err != nil {
		return nil
	}
	want := e.file(name, e.o.Embedder.Identity())
	slices.SortFunc(all, func(a, b string) int {
		if (a == want) != (b == want) {
			return map[bool]int{true: -1, false: 1}[a == want]
		}
		return strings.Compare(a, b)
	})
	return all
}

func (e *Engine) file(name string, id Identity) string {
	return filepath.Join(e.o.Dir, name+"."+id.slug()+".vec")
}

// Changed requests an update of a collection's vectors. It never blocks.
func (e *Engine) Changed(name string) {
	if e == nil {
		return
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.closed {
		return
	}
	c := e.cols[name]
	if c == nil || c.dropped {
		c = &collection{name: name}
		c.status.Model = e.o.Embedder.Identity().Model
		e.cols[name] = c
	}
	e.enqueue(c)
}

// enqueue schedules a run. The caller holds e.mu.
func (e *Engine) enqueue(c *collection) {
	if c.busy {
		c.again = true
		return
	}
	c.busy = true
	e.pending = append(e.pending, c.name)
	e.wake.Signal()
}

// Drop removes a collection's vectors, and also removes them from the cache.
func (e *Engine) Drop(ctx context.Context, name string) error {
	if e == nil {
		return nil
	}
	e.mu.Lock()
	c := e.collection(name)
	m := c.cur
	c.cur, c.dropped = nil, true
	if c.timer != nil {
		c.timer.Stop()
	}
	files := e.files(name)
	e.mu.Unlock()
	var err error
	if m != nil {
		if err = e.cache.remove(ctx, m.hashes); err != nil {
			err = fmt.Errorf("forget the vectors of %s: %w", name, err)
		}
		m.retire(true)
	}
	for _, f := range files {
		os.Remove(f)
	}
	return err
}

// Status returns the progress of a collection's vectors.
func (e *Engine) Status(name string) Status {
	if e == nil {
		return Status{}
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.collection(name).status
}

// Wait returns when a collection's vectors are complete for the commit, or when ctx ends. If a
// run fails before that, Wait returns its error.
func (e *Engine) Wait(ctx context.Context, name, commit string) error {
	for first := true; ; first = false {
		e.mu.Lock()
		s, news := e.collection(name).status, e.news
		e.mu.Unlock()
		switch {
		case s.Commit == commit && s.Answering == s.Model:
			return nil
		case s.Err != nil && !first:
			return s.Err
		}
		select {
		case <-news:
		case <-ctx.Done():
			return ctx.Err()
		case <-e.ctx.Done():
			return e.ctx.Err()
		}
	}
}

// View holds the vectors of one collection while a search uses them.
type View struct{ m *matrix }

// View returns the vectors that answer for a collection, or nil if there are none yet. The
// caller must release it.
func (e *Engine) View(name string) *View {
	if e == nil {
		return nil
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.closed {
		return nil
	}
	if c := e.collection(name); c.cur != nil && c.cur.acquire() {
		return &View{c.cur}
	}
	return nil
}

// Release ends the use of the view.
func (v *View) Release() {
	if v != nil {
		v.m.release()
	}
}

// Identity identifies the model with which a query must be embedded.
func (v *View) Identity() Identity { return v.m.Identity }

// Nearest returns the k documents in docs that are nearest to a query, best first. docs is
// ascending; nil means all documents.
func (v *View) Nearest(q *Vector, docs []int64, k int) ([]Near, error) {
	if q.q.dims != v.m.Dims {
		return nil, ErrDimensions
	}
	return v.m.nearest(q.q, docs, k), nil
}

// Cosine returns the similarity of a document's best chunk to a query. ok is false if the
// document has no vector.
func (v *View) Cosine(q *Vector, doc int64) (n Near, ok bool) {
	first, last := v.m.rows(doc)
	if first == last || q.q.dims != v.m.Dims {
		return n, false
	}
	return v.m.best(q.q, first, last), true
}
