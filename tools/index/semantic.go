package index

import (
	"context"

	"satchel/internal/space"
	"satchel/tools/index/postings"
	"satchel/tools/index/semantic"
)

// ForgetVectors removes a collection's vectors after a purge. The remaining text is
// embedded again.
func (x *Index) ForgetVectors(ctx context.Context, id space.SpaceID) error {
	err := x.engine.Drop(ctx, string(id))
	x.engine.Changed(string(id))
	return err
}

// VectorStatus returns the progress of the vectors of a collection. ok is false if there is
// no model.
func (x *Index) VectorStatus(id space.SpaceID) (_ semantic.Status, ok bool) {
	if x.engine == nil {
		return semantic.Status{}, false
	}
	return x.engine.Status(string(id)), true
}

// WaitVectors returns when a collection has vectors for everything in its index, or when
// ctx ends. Without a model it returns at once. If embedding fails meanwhile, it returns the
// error.
func (x *Index) WaitVectors(ctx context.Context, id space.SpaceID) error {
	if x.engine == nil {
		return nil
	}
	st, err := x.Status(ctx, id)
	if err != nil || st.Commit == "" {
		return err
	}
	return x.engine.Wait(ctx, string(id), string(st.Commit))
}

// chunkSource provides the chunks of the index for embedding. It is a semantic.Source.
type chunkSource struct{ x *Index }

// with calls f with the collection's database. ok is false if there is none.
func (s chunkSource) with(ctx context.Context, collection string, f func(*postings.Database) error) (ok bool, err error) {
	e, err := s.x.entry(space.SpaceID(collection))
	if err != nil {
		return false, err
	}
	d, err := s.x.open(ctx, e)
	if err != nil || d == nil {
		return false, err
	}
	defer d.Release()
	return true, f(d)
}

// Docs implements semantic.Source.
func (s chunkSource) Docs(ctx context.Context, collection string) (docs []semantic.Doc, st semantic.State, ok bool, err error) {
	ok, err = s.with(ctx, collection, func(d *postings.Database) (err error) {
		docs, st, err = d.EmbeddingDocs(ctx)
		return err
	})
	return docs, st, ok, err
}

// Chunks implements semantic.Source.
func (s chunkSource) Chunks(ctx context.Context, collection string, doc semantic.Doc) (chunks []semantic.Chunk, err error) {
	_, err = s.with(ctx, collection, func(d *postings.Database) (err error) {
		chunks, err = d.EmbeddingChunks(ctx, doc)
		return err
	})
	return chunks, err
}
