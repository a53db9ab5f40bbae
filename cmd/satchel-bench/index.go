//go:build linux

package main

import (
	"context"
	"errors"
	"path/filepath"

	"satchel/gitstore"
	"satchel/internal/space"
	"satchel/tools/index"
)

// benchIndex indexes a space of 50 MB, and then changes and indexes single pages.
func benchIndex(ctx context.Context, b *bench) (err error) {
	pages := b.size(searchPages)
	store, err := gitstore.Open(gitstore.Options{Dir: filepath.Join(b.dir, "index-store")})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, store.Close()) }()
	id := space.NewSpaceID()
	if _, err := store.Create(ctx, id, corpusChanges(pages, searchPage), space.Meta{Author: author}); err != nil {
		return err
	}
	x, err := index.Open(index.Options{Dir: filepath.Join(b.dir, "index")})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, x.Close()) }()
	var full times
	for range 3 {
		if err := full.add(func() error { return x.Rebuild(ctx, id, store) }); err != nil {
			return err
		}
	}
	b.alone("index_full", full.median(), "ms")

	one, err := b.indexOne(ctx, store, x, id)
	if err != nil {
		return err
	}
	b.versus("index_one_p50", one.median(), "ms", "indexing the whole space", full.median())
	return nil
}

// indexOne measures the update of the index after a commit of one page.
func (b *bench) indexOne(ctx context.Context, store *gitstore.Store, x *index.Index, id space.SpaceID) (times, error) {
	var took times
	w := newWords(2)
	for i := range b.runs(100) {
		path := pagePath(i)
		head, err := store.Head(ctx, id)
		if err != nil {
			return nil, err
		}
		base, mode, _, err := store.Blob(ctx, id, head, space.Path(path))
		if err != nil {
			return nil, err
		}
		cs := space.ChangeSet{Changes: []space.Change{{Path: path, Content: []byte(w.page(i, searchPage)), Base: base, BaseMode: mode}}}
		if _, err := store.Commit(ctx, id, cs, space.Meta{Author: author, Message: "x"}); err != nil {
			return nil, err
		}
		if err := took.add(func() error { return x.Update(ctx, id, store) }); err != nil {
			return nil, err
		}
	}
	return took, nil
}
