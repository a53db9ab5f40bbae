package evaluate

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path"
	"sync"
	"time"

	"satchel/internal/space"
	"satchel/tools/index"
)

// Ranker answers the queries of a collection.
type Ranker interface {
	// Rank returns the ids of the documents that a query finds, best first, at most depth
	// of them, and how long a user's search takes.
	Rank(ctx context.Context, query string, depth int) (ids []string, took time.Duration, err error)
}

// Run runs all queries, one after another, and returns the means of the measures over rankings
// of depth documents. A depth of TopDepth takes much less time than Depth, but then only nDCG,
// the reciprocal rank and FirstHits are right. Run calls progress after each query, unless
// progress is nil.
func Run(ctx context.Context, r Ranker, queries []Query, depth int, progress func(done int)) (Figures, error) {
	var t tally
	for i, q := range queries {
		ids, took, err := r.Rank(ctx, q.Text, depth)
		if err != nil {
			return Figures{}, err
		}
		t.add(ids, q.Grades, took)
		if progress != nil {
			progress(i + 1)
		}
	}
	return t.figures(), nil
}

// collectionID is the id of the collection that Build makes.
const collectionID = space.SpaceID("evaluation")

// Library is the documents of one published source.
type Library struct {
	Name      string // also the id of the source
	Documents []Document
}

// Built is an index of documents in a directory of its own.
type Built struct {
	index *index.Index
	dir   string
	cols  []index.Collection
	ids   map[space.Path]string // the ids of the documents, by the paths that hits show
}

// Build indexes documents in a new temporary directory, which replaces the directory of the
// options. It calls progress with the number of documents read so far, unless progress is nil.
// Close removes the directory. If Build fails, it removes the directory itself.
func Build(ctx context.Context, o index.Options, docs []Document, progress func(done int)) (*Built, error) {
	return build(ctx, o, []index.Collection{{ID: collectionID, Label: "space"}}, [][]Document{docs}, progress)
}

// BuildLibraries is like [Build] for several libraries. Each is a collection of its own, as a
// published source is.
func BuildLibraries(ctx context.Context, o index.Options, libraries []Library, progress func(done int)) (*Built, error) {
	var cols []index.Collection
	var docs [][]Document
	for _, l := range libraries {
		cols = append(cols, index.Collection{ID: space.SpaceID(l.Name), Label: l.Name, Mount: space.SourcesMount + l.Name})
		docs = append(docs, l.Documents)
	}
	return build(ctx, o, cols, docs, progress)
}

func build(ctx context.Context, o index.Options, cols []index.Collection, docs [][]Document, progress func(done int)) (_ *Built, err error) {
	b := &Built{cols: cols, ids: map[space.Path]string{}}
	for i, c := range cols {
		for _, d := range docs[i] {
			b.ids[space.Path(path.Join(c.Mount, string(d.Path)))] = d.ID
		}
	}
	if b.dir, err = os.MkdirTemp("", "satchel-eval-"); err != nil {
		return nil, fmt.Errorf("make a temporary directory: %w", err)
	}
	defer func() {
		if err != nil {
			b.Close()
		}
	}()
	o.Dir = b.dir
	if b.index, err = index.Open(o); err != nil {
		if o.Semantic != nil {
			o.Semantic.Close()
		}
		return nil, err
	}
	var mu sync.Mutex // several goroutines read documents
	done := 0
	read := func() {
		mu.Lock()
		defer mu.Unlock()
		done++
		if progress != nil {
			progress(done)
		}
	}
	for i, c := range cols {
		if err := b.index.Update(ctx, c.ID, newSource(docs[i], read)); err != nil {
			return nil, cmp.Or(ctx.Err(), err) // errors that follow from the end of ctx say less
		}
	}
	return b, nil
}

// Search answers a query as a user's search does.
func (b *Built) Search(ctx context.Context, query string) (index.Results, error) {
	return b.index.Search(ctx, b.cols, index.Query{Text: query})
}

// Close closes the index and removes it.
func (b *Built) Close() error {
	var err error
	if b.index != nil {
		err = b.index.Close()
	}
	if rerr := os.RemoveAll(b.dir); err == nil {
		err = rerr
	}
	return err
}

// patience is the time between two calls of Wait's progress.
const patience = time.Second / 2

// Wait returns when all passages of the documents of [Build] have their vectors. If the options
// contain no model, Wait returns at once. It calls progress with the number of passages that
// have a vector, and the number of all passages. It does not wait for [BuildLibraries].
func (b *Built) Wait(ctx context.Context, progress func(done, total int)) error {
	for {
		some, cancel := context.WithTimeout(ctx, patience)
		err := b.index.WaitVectors(some, collectionID)
		cancel()
		if ctx.Err() != nil || !errors.Is(err, context.DeadlineExceeded) {
			return err
		}
		if st, ok := b.index.VectorStatus(collectionID); ok {
			progress(int(st.Done), int(st.Total))
		}
	}
}

var _ Ranker = (*Built)(nil)

// Rank implements Ranker.
func (b *Built) Rank(ctx context.Context, query string, depth int) ([]string, time.Duration, error) {
	paths, took, err := RankPaths(ctx, b.index, b.cols, query, depth)
	ids := make([]string, len(paths))
	for i, p := range paths {
		ids[i] = b.ids[p]
	}
	return ids, took, err
}

// RankPaths returns the paths that a query finds in an index, as hits show them, best first,
// and how long a user's search takes. Up to a depth of TopDepth, the paths are the hits of
// the user's search. For a greater depth, they are from the whole ranking.
func RankPaths(ctx context.Context, x *index.Index, cols []index.Collection, query string, depth int) ([]space.Path, time.Duration, error) {
	began := time.Now()
	found, err := x.Search(ctx, cols, index.Query{Text: query})
	took := time.Since(began)
	if err != nil {
		return nil, 0, err
	}
	var paths []space.Path
	if depth <= TopDepth {
		for _, h := range found.Hits {
			paths = append(paths, space.Path(h.Path))
		}
		return paths, took, nil
	}
	ranked, err := x.Rank(ctx, cols, index.Query{Text: query}, depth)
	for _, r := range ranked {
		paths = append(paths, space.Path(r.Path))
	}
	return paths, took, err
}
