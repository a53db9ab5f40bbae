package semantic

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"os"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"
)

// errSlice ends a run that has used up its time while others wait. It is not a failure.
var errSlice = errors.New("others wait for their turn")

func (e *Engine) work() {
	for {
		e.mu.Lock()
		for len(e.pending) == 0 && !e.closed {
			e.wake.Wait()
		}
		if e.closed {
			e.mu.Unlock()
			return
		}
		c := e.cols[e.pending[0]]
		e.pending = e.pending[1:]
		c.again = false
		c.status.Running = true
		e.mu.Unlock()

		err := e.run(e.ctx, c)
		if err != nil && !errors.Is(err, errSlice) && e.ctx.Err() == nil {
			e.o.Logger.WarnContext(e.ctx, "pages were not embedded", "collection", c.name, "error", err)
		}

		e.mu.Lock()
		e.settle(c, err)
		e.mu.Unlock()
	}
}

// settle ends a run. The caller holds e.mu.
func (e *Engine) settle(c *collection, err error) {
	defer func() {
		close(e.news)
		e.news = make(chan struct{})
	}()
	c.busy = false
	ended := e.closed || c.dropped
	if errors.Is(err, errSlice) && !ended {
		e.enqueue(c)
		return
	}
	c.status.Running = false
	if ended {
		return
	}
	c.status.Err = err
	if c.timer != nil {
		c.timer.Stop()
	}
	if err == nil {
		c.delay = 0
		if c.again {
			e.enqueue(c)
		}
		return
	}
	if errors.Is(err, ErrDimensions) {
		e.probe = true
	}
	c.delay = min(max(2*c.delay, e.o.RetryAfter), maxDelayFactor*e.o.RetryAfter)
	c.timer = time.AfterFunc(c.delay, func() { e.Changed(c.name) })
}

// run embeds the chunks of a collection that have no vector, and replaces its vectors.
func (e *Engine) run(ctx context.Context, c *collection) error {
	docs, state, ok, err := e.src.Docs(ctx, c.name)
	if err != nil || !ok {
		return err
	}
	e.mu.Lock()
	cur := e.collection(c.name).cur
	if cur != nil && !cur.acquire() {
		cur = nil
	}
	probe := e.probe
	e.mu.Unlock()
	if cur != nil {
		defer cur.release()
	}
	r := &run{e: e, c: c, id: e.o.Embedder.Identity(), deadline: e.o.Now().Add(e.o.Slice)}
	if cur != nil && cur.Identity == r.id {
		r.old, r.dims = cur, cur.Dims
	} else if r.dims, err = e.cache.dims(ctx, r.id); err != nil {
		return err
	}
	if probe {
		if err := r.probe(ctx); err != nil {
			return err
		}
	}
	if r.old != nil && r.old.Commit == state.Commit && r.old.Fingerprint == state.Fingerprint {
		return nil
	}
	if err := r.plan(ctx, docs, state); err != nil {
		return err
	}
	return r.install(ctx, state)
}

// run is one update of a collection's vectors.
type run struct {
	e        *Engine
	c        *collection
	id       Identity
	old      *matrix // the vectors of the same model so far; nil: none
	deadline time.Time

	mu      sync.Mutex
	dims    int   // 0: not known yet
	model   int64 // the id in the cache; valid once dims is known
	entries []entry
	from    []int32 // the row of old that holds the entry's vector; -1: the cache holds it
	done    atomic.Int64
	refused batch        // texts that the model refused even in a batch of their own
	streak  atomic.Int64 // refusals since the model last returned vectors
}

// maxStreak is how many texts the model may refuse in a row. After more refusals, it counts as
// broken.
const maxStreak = 8

// probe determines the length of the model's vectors. The old vectors are useless if the length
// has changed.
func (r *run) probe(ctx context.Context) error {
	v, err := r.e.o.Embedder.Embed(ctx, r.id, Document, []string{"dimensions"})
	if err != nil {
		return err
	}
	if len(v) != 1 || len(v[0]) == 0 || len(v[0]) > MaxDimensions {
		return ErrVector
	}
	if r.dims != len(v[0]) {
		r.dims, r.old = len(v[0]), nil
	}
	r.e.mu.Lock()
	r.e.probe = false
	r.e.mu.Unlock()
	return nil
}

// use sets the length of the vectors, and looks up their id in the cache.
func (r *run) use(ctx context.Context, dims int) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.dims != 0 && r.dims != dims {
		return fmt.Errorf("%w: %d, not %d", ErrDimensions, dims, r.dims)
	}
	r.dims = dims
	if r.model != 0 {
		return nil
	}
	var err error
	r.model, err = r.e.cache.model(ctx, r.id, dims)
	return err
}

// plan lists the rows to write, and embeds those without a cached vector.
func (r *run) plan(ctx context.Context, docs []Doc, state State) error {
	e := r.e
	if r.dims != 0 {
		if err := r.use(ctx, r.dims); err != nil {
			return err
		}
	}
	kept := map[uint64][2]int{}
	if r.old != nil && r.old.Fingerprint == state.Fingerprint {
		for i := 0; i < len(r.old.ids); {
			first := i
			for i < len(r.old.ids) && docOf(r.old.ids[i]) == docOf(r.old.ids[first]) {
				i++
			}
			kept[r.old.keys[first]] = [2]int{first, i}
		}
	}
	total := 0
	g, gctx := errgroup.WithContext(ctx)
	g.SetLimit(e.o.Parallel)
	var b batch
	flush := func() {
		full := b
		b = batch{}
		g.Go(func() error { return r.embed(gctx, full) })
	}
	waiting := map[textHash]bool{} // already in a batch of this run
	for _, d := range docs {
		if gctx.Err() != nil {
			break
		}
		if rows, ok := kept[d.Key]; ok {
			for i := rows[0]; i < rows[1]; i++ {
				r.add(entry{d.ID<<ChunkBits | r.old.ids[i]&(1<<ChunkBits-1), d.Key, r.old.hashes[i]}, int32(i))
			}
			total += rows[1] - rows[0]
			r.done.Add(int64(rows[1] - rows[0]))
			continue
		}
		chunks, err := e.src.Chunks(gctx, r.c.name, d)
		if err != nil {
			return errors.Join(g.Wait(), err)
		}
		for _, c := range chunks {
			text := r.id.cut(c.Text)
			h := hashOf(text)
			r.add(entry{c.ID, d.Key, h}, -1)
			total++
			if waiting[h] || e.refused.Contains(h) {
				r.done.Add(1)
				continue
			}
			if r.model != 0 {
				have, err := e.cache.has(gctx, r.model, h)
				if err != nil {
					return errors.Join(g.Wait(), err)
				}
				if have {
					r.done.Add(1)
					continue
				}
			}
			waiting[h] = true
			if len(b.texts) > 0 && (len(b.texts) >= e.o.Batch || b.tokens+estimate(text) > e.o.BatchTokens) {
				flush()
				r.report(total + len(docs)) // count at least one chunk for each remaining document
				if r.over() {
					return errors.Join(g.Wait(), errSlice)
				}
			}
			b.add(text, h)
			if r.model == 0 { // the first vector determines the length
				full := b
				b = batch{}
				if err := r.embed(gctx, full); err != nil {
					return errors.Join(err, g.Wait())
				}
			}
		}
	}
	if len(b.texts) > 0 {
		flush()
	}
	err := g.Wait()
	r.report(total)
	if err == nil {
		err = ctx.Err() // Close may have ended the loop early, and then entries lacks documents
	}
	if err != nil {
		return err
	}
	return r.again(ctx)
}

// again retries the refused texts, because the model may have been broken. Texts that the model
// refuses again get no vector.
func (r *run) again(ctx context.Context) error {
	first := r.refused
	r.refused = batch{}
	r.streak.Store(0)
	for i := range first.texts {
		if err := r.embed(ctx, batch{texts: first.texts[i : i+1], hashes: first.hashes[i : i+1]}); err != nil {
			return err
		}
	}
	for _, h := range r.refused.hashes {
		r.e.refused.Add(h, struct{}{})
	}
	return nil
}

func (r *run) add(e entry, from int32) {
	r.entries = append(r.entries, e)
	r.from = append(r.from, from)
}

// over reports whether the run has used up its time while others wait.
func (r *run) over() bool {
	r.e.mu.Lock()
	defer r.e.mu.Unlock()
	return len(r.e.pending) > 0 && r.e.o.Now().After(r.deadline)
}

func (r *run) report(total int) {
	r.e.mu.Lock()
	defer r.e.mu.Unlock()
	done := int(r.done.Load())
	r.c.status.Done, r.c.status.Total = done, max(total, done)
}

// batch holds the texts of one request.
type batch struct {
	texts  []string
	hashes []textHash
	tokens int
}

func (b *batch) add(text string, h textHash) {
	b.texts = append(b.texts, text)
	b.hashes = append(b.hashes, h)
	b.tokens += estimate(text)
}

// estimate returns about how many tokens a text has, usually more than it really has.
func estimate(text string) int { return len(text)/3 + 8 }

// embed embeds a batch and stores the vectors. If the model refuses the batch, embed halves it
// until it finds the refused texts. The method again retries these texts once at the end.
func (r *run) embed(ctx context.Context, b batch) error {
	vectors, err := r.e.o.Embedder.Embed(ctx, r.id, Document, b.texts)
	var rows []row
	if err == nil {
		rows, err = r.rows(ctx, vectors, len(b.texts))
	}
	if err != nil {
		if ctx.Err() != nil || !errors.Is(err, ErrInput) && !errors.Is(err, ErrVector) {
			return err
		}
		if len(b.texts) == 1 {
			// Refusals of many texts in a row are not caused by the texts.
			if r.streak.Add(1) > maxStreak {
				return err
			}
			r.mu.Lock()
			r.refused.add(b.texts[0], b.hashes[0])
			r.mu.Unlock()
			return nil
		}
		n := len(b.texts) / 2
		if err := r.embed(ctx, batch{texts: b.texts[:n], hashes: b.hashes[:n]}); err != nil {
			return err
		}
		return r.embed(ctx, batch{texts: b.texts[n:], hashes: b.hashes[n:]})
	}
	if err := r.e.cache.put(ctx, r.model, b.hashes, rows, r.e.o.Now().Unix()/86400); err != nil {
		return fmt.Errorf("keep vectors: %w", err)
	}
	r.streak.Store(0)
	n := r.done.Add(int64(len(b.texts)))
	r.e.mu.Lock()
	r.c.status.Done, r.c.status.Total = int(n), max(r.c.status.Total, int(n))
	r.e.mu.Unlock()
	return nil
}

// rows checks an answer and packs its vectors.
func (r *run) rows(ctx context.Context, vectors [][]float32, want int) ([]row, error) {
	if len(vectors) != want {
		return nil, fmt.Errorf("%w: %d vectors for %d texts", ErrVector, len(vectors), want)
	}
	rows := make([]row, want)
	for i, v := range vectors {
		if len(v) == 0 || len(v) > MaxDimensions {
			return nil, fmt.Errorf("%w: it has %d numbers", ErrVector, len(v))
		}
		if err := normalise(v); err != nil {
			return nil, err
		}
		if err := r.use(ctx, len(v)); err != nil {
			return nil, err
		}
		rows[i] = quantise(v)
	}
	return rows, nil
}

// maxRefused limits how many refused texts are remembered. Above the limit, the oldest are
// forgotten and retried.
const maxRefused = 10_000

// install writes the file and makes it the current one.
func (r *run) install(ctx context.Context, state State) error {
	e := r.e
	h := header{Identity: r.id, Dims: r.dims, Fingerprint: state.Fingerprint, Commit: state.Commit}
	if r.dims == 0 { // there is nothing to embed
		h.Dims = 1
	}
	var entries []entry
	var from []int32
	for i, en := range r.entries {
		if r.from[i] < 0 {
			if have, err := e.cache.has(ctx, r.model, en.hash); err != nil {
				return err
			} else if !have {
				h.Missing++
				continue
			}
		}
		entries = append(entries, en)
		from = append(from, r.from[i])
	}
	file := e.file(r.c.name, r.id)
	err := writeMatrix(file, h, entries, func(i int) (row, error) {
		if f := from[i]; f >= 0 {
			return r.old.row(int(f)), nil
		}
		v, ok, err := e.cache.get(ctx, r.model, entries[i].hash, r.dims)
		if err == nil && !ok {
			err = fmt.Errorf("a vector has gone from the cache")
		}
		return v, err
	})
	if err != nil {
		return err
	}
	m, err := openMatrix(file)
	if err != nil {
		return err
	}
	e.mu.Lock()
	if r.c.dropped || e.closed {
		e.mu.Unlock()
		m.retire(r.c.dropped)
		return nil
	}
	before := r.c.cur
	r.c.answer(m)
	r.c.status.Refused = h.Missing
	others := e.files(r.c.name)
	e.mu.Unlock()
	if before == nil || before.Identity != m.Identity {
		e.o.Logger.InfoContext(ctx, "vectors are whole and answer", "collection", r.c.name, "model", r.id.Model, "dimensions", h.Dims, "chunks", len(entries), "refused", h.Missing)
	}
	if before != nil {
		// Remove the vectors that the collection no longer uses from the cache.
		err = e.cache.remove(ctx, gone(before, m))
		before.retire(before.file != file)
	}
	for _, f := range others {
		if f != file && (before == nil || f != before.file) {
			os.Remove(f)
		}
	}
	return errors.Join(err, e.cache.trim(ctx))
}

// gone returns the hashes of the texts that are in before but not in now.
func gone(before, now *matrix) []textHash {
	have := make(map[textHash]bool, len(now.hashes))
	for _, h := range now.hashes {
		have[h] = true
	}
	return slices.DeleteFunc(slices.Clone(before.hashes), func(h textHash) bool { return have[h] })
}

func hashOf(text string) textHash {
	h := sha256.Sum256([]byte(text))
	return textHash(h[:hashSize])
}

// cut returns the part of a text that is embedded.
func (id Identity) cut(text string) string {
	if id.MaxChars <= 0 || len(text) <= id.MaxChars {
		return text
	}
	n := 0
	for i := range text {
		if n == id.MaxChars {
			return text[:i]
		}
		n++
	}
	return text
}
