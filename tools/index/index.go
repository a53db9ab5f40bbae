package index

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"satchel/internal/fault"
	"satchel/internal/space"
	"satchel/tools/index/parse"
	"satchel/tools/index/postings"
	"satchel/tools/index/rank"
	"satchel/tools/index/semantic"
)

// Index holds the databases of all collections. Its methods may be called
// concurrently.
type Index struct {
	opts   Options
	cache  *postings.Cache
	ranker *rank.Ranker
	engine *semantic.Engine // nil: no vectors

	mu      sync.Mutex
	entries map[space.SpaceID]*entry
	closed  bool
}

// entry holds one collection.
type entry struct {
	id    space.SpaceID
	turn  chan struct{} // full while an update or a rebuild runs
	mu    sync.Mutex
	cur   *postings.Database // nil: none is open
	tried bool               // open has looked for a file
	news  chan struct{}      // closed and replaced after each update

	// follower keeps the collection up to date, and its source returns the current head.
	// Without a follower, the newest known head is that of the last update.
	follower *Follower
	// head is the newest known commit, and noted is when it became known. since is when the
	// index fell behind, or zero if the index is not known to be behind.
	head  space.CommitID
	noted time.Time
	since time.Time
	gap   gap   // the last result of pagesBetween
	err   error // the error of the last update; nil if it succeeded
	// damaged is set when a reader finds damage. The next update rebuilds the database.
	damaged  bool
	repaired int // how often a damaged database was replaced
}

// collectionName matches a collection's id, which becomes a file name.
var collectionName = parse.Lazily(`^[a-z0-9][a-z0-9_-]{0,99}$`)

// Open opens an index. Each database opens when it is first used. The caller must call
// Close.
func Open(o Options) (*Index, error) {
	o = o.withDefaults()
	if err := os.MkdirAll(o.Dir, 0o700); err != nil {
		return nil, fmt.Errorf("make index directory: %w", err)
	}
	x := &Index{opts: o, cache: postings.NewCache(o.storage.CacheBytes), entries: map[space.SpaceID]*entry{}}
	if o.Semantic != nil && o.Semantic.Vectors != nil && o.Semantic.Vectors.Embedder != nil {
		v := *o.Semantic.Vectors
		v.Logger, v.Now = o.Logger, o.Now
		var err error
		if x.engine, err = semantic.Open(context.Background(), chunkSource{x}, v); err != nil {
			return nil, err
		}
	}
	o.ranking.Logger, o.ranking.Now, o.ranking.Semantic, o.ranking.Engine = o.Logger, o.Now, o.Semantic, x.engine
	x.ranker = rank.New(o.ranking)
	return x, nil
}

// Close closes every database when its queries have ended. Updates and followers must
// already have ended.
func (x *Index) Close() error {
	err := x.engine.Close() // first, because the engine reads the databases
	if s := x.opts.Semantic; s != nil && s.Close != nil {
		s.Close()
	}
	x.mu.Lock()
	x.closed = true
	entries := x.entries
	x.entries = map[space.SpaceID]*entry{}
	x.mu.Unlock()
	for _, e := range entries {
		if d := e.take(); d != nil {
			d.Retire(false)
			<-d.Closed()
		}
	}
	return err
}

// take removes the open database from the entry and returns the database, or nil if none is open.
func (e *entry) take() *postings.Database {
	e.mu.Lock()
	defer e.mu.Unlock()
	d := e.cur
	e.cur = nil
	return d
}

var errClosed = errors.New("index is closed")

func (x *Index) entry(id space.SpaceID) (*entry, error) {
	if !collectionName().MatchString(string(id)) {
		return nil, fault.New(fault.Invalid, "%.60q cannot be the name of an index.", string(id))
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.closed {
		return nil, errClosed
	}
	e := x.entries[id]
	if e == nil {
		e = &entry{id: id, turn: make(chan struct{}, 1), news: make(chan struct{})}
		x.entries[id] = e
	}
	return e, nil
}

// Drop removes the database of a deleted space or of a source that is no longer published.
// Queries that use the database end normally.
func (x *Index) Drop(ctx context.Context, id space.SpaceID) error {
	e, err := x.lock(ctx, id)
	if err != nil {
		return err
	}
	defer e.unlock()
	x.mu.Lock()
	delete(x.entries, id)
	x.mu.Unlock()
	if d := e.take(); d != nil {
		d.Retire(true)
	}
	return errors.Join(x.removeFiles(id, func(string) bool { return true }), x.engine.Drop(ctx, string(id)))
}

// lock waits until nothing else updates the collection. The caller calls unlock.
func (x *Index) lock(ctx context.Context, id space.SpaceID) (*entry, error) {
	e, err := x.entry(id)
	if err != nil {
		return nil, err
	}
	select {
	case e.turn <- struct{}{}:
		return e, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

func (e *entry) unlock() { <-e.turn }

// fileName returns the name of a database's file: <collection>.<generation>.db. With the
// generation, a rebuild shares neither a name nor a write-ahead log with the old database.
// An unfinished build also has the suffix ".new".
func (x *Index) fileName(id space.SpaceID, generation int) string {
	return filepath.Join(x.opts.Dir, fmt.Sprintf("%s.%d.db", id, generation))
}

func generationOf(file string) int {
	parts := strings.Split(filepath.Base(file), ".")
	if len(parts) < 3 {
		return 0
	}
	n, _ := strconv.Atoi(parts[1])
	return n
}

// files returns the finished databases of a collection, newest first.
func (x *Index) files(id space.SpaceID) ([]string, error) {
	all, err := os.ReadDir(x.opts.Dir)
	if err != nil {
		return nil, fmt.Errorf("read index directory: %w", err)
	}
	var files []string
	for _, f := range all {
		if strings.HasPrefix(f.Name(), string(id)+".") && strings.HasSuffix(f.Name(), ".db") && generationOf(f.Name()) > 0 {
			files = append(files, filepath.Join(x.opts.Dir, f.Name()))
		}
	}
	slices.SortFunc(files, func(a, b string) int { return generationOf(b) - generationOf(a) })
	return files, nil
}

// open returns the entry's database for a query or an update, or nil if there is none yet.
// The caller releases the database.
func (x *Index) open(ctx context.Context, e *entry) (*postings.Database, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.cur == nil && !e.tried {
		files, err := x.files(e.id)
		if err != nil {
			return nil, err
		}
		for _, f := range files {
			d, err := postings.Open(ctx, f, x.opts.storage, x.cache)
			if err != nil {
				if ctx.Err() != nil {
					return nil, ctx.Err()
				}
				x.opts.Logger.WarnContext(ctx, "index cannot be used and will be rebuilt", "collection", e.id, "error", err)
				continue
			}
			e.cur = d
			break
		}
		e.tried = true
		x.sweep(e)
	}
	if e.cur == nil || !e.cur.Acquire() {
		return nil, nil
	}
	return e.cur, nil
}

// sweep removes the files that a killed process left next to the opened database: older
// generations and unfinished builds. They may contain text that was purged later. The
// caller holds e.mu, and no build has begun.
func (x *Index) sweep(e *entry) {
	// The next start tries again to remove what is left.
	_ = x.removeFiles(e.id, func(name string) bool {
		unfinished := strings.Contains(name, ".db.new")
		return unfinished || e.cur != nil && !strings.HasPrefix(name, filepath.Base(e.cur.File()))
	})
}

// removeFiles removes files of a collection's databases. It calls which with the name of each
// file, and removes the file if which returns true.
func (x *Index) removeFiles(id space.SpaceID, which func(name string) bool) error {
	all, err := os.ReadDir(x.opts.Dir)
	if err != nil {
		return fmt.Errorf("read index directory: %w", err)
	}
	var errs []error
	for _, f := range all {
		name := f.Name()
		if !strings.HasPrefix(name, string(id)+".") || generationOf(name) == 0 || !which(name) {
			continue
		}
		if err := os.Remove(filepath.Join(x.opts.Dir, name)); err != nil && !errors.Is(err, fs.ErrNotExist) {
			errs = append(errs, fmt.Errorf("remove index: %w", err))
		}
	}
	return errors.Join(errs...)
}

// swap replaces the database and returns the file of the old database, which stays open until
// its last reader releases it.
func (e *entry) swap(d *postings.Database) (replaced string) {
	e.mu.Lock()
	old := e.cur
	if e.damaged {
		e.repaired++
	}
	e.cur, e.tried, e.damaged = d, true, false
	e.mu.Unlock()
	if old == nil {
		return ""
	}
	old.Retire(true)
	return old.File()
}

// noteHead records a new head of the collection.
func (e *entry) noteHead(head space.CommitID, now time.Time) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.head == head {
		return
	}
	e.head, e.noted = head, now
	if e.since.IsZero() {
		e.since = now
	}
}

// follow records that a follower will update the index. An index without a known head, such
// as at start, counts as behind until that update ends.
func (e *entry) follow(f *Follower, now time.Time) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.follower = f
	if e.head == "" && e.since.IsZero() {
		e.noted, e.since = now, now
	}
}

// refresh requests an update from the collection's follower, if there is one.
func (e *entry) refresh() {
	e.mu.Lock()
	f := e.follower
	e.mu.Unlock()
	if f != nil {
		f.Refresh(e.id)
	}
}

// settled records the result of an update and wakes the waiting searches.
func (e *entry) settled(at space.CommitID, err error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.err = err
	switch {
	case err != nil:
	case e.head == at || e.head == "":
		e.head, e.since = at, time.Time{}
	default:
		e.since = e.noted // only commits that arrived during the update are missing
	}
	close(e.news)
	e.news = make(chan struct{})
}

// Status describes how current the index of a collection is.
type Status struct {
	Commit space.CommitID // the commit of the database; empty if there is none yet
	Head   space.CommitID // the newest known commit; empty if there is none yet
	// Behind is how long Head has been newer than Commit, or may have been newer if Head is
	// not known yet. It is zero if Head is not newer.
	Behind time.Duration
	Docs   int64
	Err    error // the error of the last update; nil if it succeeded
}

// Status returns how current the index of a collection is.
func (x *Index) Status(ctx context.Context, id space.SpaceID) (Status, error) {
	e, err := x.entry(id)
	if err != nil {
		return Status{}, err
	}
	d, err := x.open(ctx, e)
	if err != nil {
		return Status{}, err
	}
	var st postings.State
	if d != nil {
		st = d.State()
		d.Release()
	}
	s := e.status(st, x.opts.Now())
	return s, nil
}

func (e *entry) status(st postings.State, now time.Time) Status {
	e.mu.Lock()
	defer e.mu.Unlock()
	s := Status{Commit: st.Commit, Head: e.head, Docs: st.Docs, Err: e.err}
	if s.Head != s.Commit && !e.since.IsZero() {
		s.Behind = now.Sub(e.since)
	}
	return s
}

// AtHead reports whether the index of a collection is at the head of src, its last update
// succeeded, and it is not known to be damaged. If so, readers do not need to wait for a
// running update.
func (x *Index) AtHead(ctx context.Context, id space.SpaceID, src Source) (bool, error) {
	head, err := src.Head(ctx, id)
	if err != nil {
		return false, err
	}
	s, err := x.Status(ctx, id)
	if err != nil {
		return false, err
	}
	e, err := x.entry(id)
	if err != nil {
		return false, err
	}
	damaged, _ := e.health()
	return s.Commit != "" && s.Commit == head && s.Err == nil && !damaged, nil
}

// health reports whether the database is known to be damaged, and returns how often a
// damaged database was replaced.
func (e *entry) health() (damaged bool, repaired int) {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.damaged, e.repaired
}

// Wait returns when the index of the collection is at the commit, or when ctx ends. If an
// update fails meanwhile, Wait returns its error. A commit that was skipped because updates
// are combined, or an empty commit, counts as reached when the index is at the newest known
// head.
func (x *Index) Wait(ctx context.Context, id space.SpaceID, commit space.CommitID) error {
	e, err := x.entry(id)
	if err != nil {
		return err
	}
	for first := true; ; first = false {
		e.mu.Lock()
		news := e.news
		e.mu.Unlock()
		s, err := x.Status(ctx, id)
		if err != nil {
			return err
		}
		if commit != "" && s.Commit == commit || !first && s.Commit != "" && s.Commit == s.Head && s.Err == nil {
			return nil
		}
		if !first && s.Err != nil {
			return s.Err
		}
		select {
		case <-news:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}
