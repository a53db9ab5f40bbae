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
	// Dir holds the vectors and the cache. It is made if it does not exist; nothing else
	// may be kept in it.
	Dir string
	// Embedder makes the vectors.
	Embedder Embedder
	// Logger hears of switches and failures, never of a text or a key. Default:
	// nothing is logged.
	Logger *slog.Logger
	// QueryWait is how long a search waits for its query's vector. Default 300
	// ms.
	QueryWait time.Duration
	// QueryTimeout is how long the model may work on a query's vector after the
	// search has gone on without it: a model that is being loaded answers the
	// next one. Default 20 s.
	QueryTimeout time.Duration
	// BreakAfter is after how many failures or late answers in a row queries
	// stop asking, and BreakFor for how long; it doubles up to 64 times. Default
	// 3 and 5 s.
	BreakAfter int
	BreakFor   time.Duration
	// QueryCache is how many queries' vectors are remembered. Default 256.
	QueryCache int
	// MaxAsking is how many queries the model works on at once; further ones go
	// on without it. Default 16.
	MaxAsking int
	// Batch and BatchTokens bound the texts that are embedded at once, by number
	// and by an estimate of their tokens. Default 64 and 16,000.
	Batch       int
	BatchTokens int
	// Parallel is how many batches of one collection are under way at once.
	// Default 2.
	Parallel int
	// Workers is how many collections are embedded at once. Default 2.
	Workers int
	// Slice is how long a collection is embedded before others that wait get
	// their turn. Default 30 s.
	Slice time.Duration
	// RetryAfter is when a collection is tried again after it failed; it doubles
	// up to 64 times. Default 5 s.
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
	// Fingerprint names how documents are cut into chunks. Vectors of another
	// one are looked up by their text again.
	Fingerprint string
	Commit      string
}

// Doc is a document of a collection.
type Doc struct {
	ID int64
	// Key is a hash of the document's name and content: documents with the same
	// one have the same chunks.
	Key uint64
}

// Chunk is a passage of a document.
type Chunk struct {
	ID   int64
	Text string // as it is embedded, with its title and headings
}

// Source is the index, from which the Engine reads collections.
type Source interface {
	// Docs lists a collection's documents, ascending by id. ok is false if
	// the collection has no index.
	Docs(ctx context.Context, collection string) (docs []Doc, s State, ok bool, err error)
	// Chunks returns the chunks of a document, ascending by id; none if it
	// has gone since.
	Chunks(ctx context.Context, collection string, d Doc) ([]Chunk, error)
}

// Engine keeps the vectors of all collections. Its methods may be called concurrently. A nil
// Engine is switched off: its methods do nothing.
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
	// probe reports that the model's vectors changed their length, so that the
	// next run asks for it first.
	probe   bool
	refused *lru.Cache[textHash, struct{}]
	news    chan struct{} // closed and replaced whenever a run ends
}

// collection is one collection's vectors. Its fields are guarded by Engine.mu.
type collection struct {
	name    string
	cur     *matrix // that answers; nil: none
	tried   bool    // the disk was looked at
	busy    bool    // pending or running
	again   bool    // changed meanwhile
	dropped bool
	delay   time.Duration
	timer   *time.Timer
	status  Status
}

// Status is how far the vectors of a collection are.
type Status struct {
	// Model is the configured model, and Answering the one whose vectors searches use now;
	// empty for none yet.
	Model     string
	Answering string
	// Dimensions and Commit are those of the vectors in use.
	Dimensions int
	Commit     string
	// Running reports that chunks are being embedded; Done of Total are.
	Running     bool
	Done, Total int
	// Refused is how many chunks the model took no text of.
	Refused int
	// Err is why the last run failed; nil if it did not.
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
		for _, f := range left { // of a process that did not end well
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

// Close stops the work and returns when it has stopped. Views must have been released. The
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
	e.asked.mu.Lock() // no query begins after this
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

// collection returns a collection with its vectors on disk. The caller holds e.mu.
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

// answer makes m what queries are answered from. The caller holds Engine.mu.
func (c *collection) answer(m *matrix) {
	c.cur = m
	c.status.Answering, c.status.Dimensions, c.status.Commit = m.Identity.Model, m.Dims, m.Commit
}

// files returns a collection's files, with the configured model's first.
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

// enqueue plans a run. The caller holds e.mu.
func (e *Engine) enqueue(c *collection) {
	if c.busy {
		c.again = true
		return
	}
	c.busy = true
	e.pending = append(e.pending, c.name)
	e.wake.Signal()
}

// Drop removes a collection's vectors, also from the cache.
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

// Status reports how far a collection's vectors are.
func (e *Engine) Status(name string) Status {
	if e == nil {
		return Status{}
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.collection(name).status
}

// Wait returns when a collection's vectors are complete for the commit, or when ctx ends.
// It also returns the error of a run that fails meanwhile.
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

// View is the vectors of one collection while a search uses them.
type View struct{ m *matrix }

// View returns the vectors that answer for a collection; nil if there are
// none yet. The caller releases it.
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

// Nearest returns the k documents that are nearest to a query, best first, out
// of those in docs (ascending ids; nil: all).
func (v *View) Nearest(q *Vector, docs []int64, k int) ([]Near, error) {
	if q.q.dims != v.m.Dims {
		return nil, ErrDimensions
	}
	return v.m.nearest(q.q, docs, k), nil
}

// Cosine returns how near a document is to a query, at its best chunk; ok is
// false if it has no vector.
func (v *View) Cosine(q *Vector, doc int64) (n Near, ok bool) {
	first, last := v.m.rows(doc)
	if first == last || q.q.dims != v.m.Dims {
		return n, false
	}
	return v.m.best(q.q, first, last), true
}
