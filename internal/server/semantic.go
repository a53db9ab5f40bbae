package server

import (
	"context"
	"log/slog"
	"os"
	"path/filepath"
	"time"

	"satchel/internal/config"
	"satchel/internal/fault"
	"satchel/internal/space"
	"satchel/tools/index"
	"satchel/tools/index/rank"
	"satchel/tools/index/semantic"
	"satchel/tools/index/semantic/endpoint"
	"satchel/tools/index/semantic/helper"
)

// Semantic returns the configured models, for an index whose vectors are in dir, or nil if
// there are none. The index closes the models.
func Semantic(cfg *config.Config, dir string, log *slog.Logger) (_ *rank.Semantic, err error) {
	c := &cfg.Search
	if c.Embeddings.URL == "" && c.Embeddings.Name == "" && c.Rerank.URL == "" && c.Expand.URL == "" {
		return nil, nil
	}
	var closers []func()
	m := &rank.Semantic{
		RerankWait: c.ModelsWait,
		ExpandWait: c.ModelsWait,
		Wait:       c.ModelsWait,
		Close: func() {
			for _, f := range closers {
				f()
			}
		},
	}
	defer func() {
		if err != nil {
			m.Close()
		}
	}()
	if c.Embeddings.URL != "" || c.Embeddings.Name != "" {
		o, stop, err := embeddings(cfg, log)
		if err != nil {
			return nil, err
		}
		if stop != nil {
			closers = append(closers, stop)
		}
		e, err := endpoint.NewEmbeddings(o)
		if err != nil {
			return nil, err
		}
		closers = append(closers, e.Close)
		// If the query's vector is late, the search continues without it, so that the models
		// that judge the results get most of the time.
		m.Vectors = &semantic.Options{Dir: dir, Embedder: e, QueryWait: c.ModelsWait / 5}
	}
	if c.Rerank.URL != "" {
		key, err := c.Rerank.Key.Read("search.rerank.key")
		if err != nil {
			return nil, err
		}
		r, err := endpoint.NewReranker(c.Rerank.Name, endpoint.Options{URL: c.Rerank.URL, Key: key, Timeout: c.ModelsWait})
		if err != nil {
			return nil, err
		}
		closers = append(closers, r.Close)
		m.Reranker = r
	}
	if c.Expand.URL != "" {
		key, err := c.Expand.Key.Read("search.expand.key")
		if err != nil {
			return nil, err
		}
		x, err := endpoint.NewChat(c.Expand.Name, endpoint.Options{URL: c.Expand.URL, Key: key, Timeout: c.ModelsWait})
		if err != nil {
			return nil, err
		}
		closers = append(closers, x.Close)
		m.Expander = x
	}
	return m, nil
}

// embeddings returns how to reach the embedding model. For a model in a local directory, it
// starts the program that serves the model. stop ends that program.
func embeddings(cfg *config.Config, log *slog.Logger) (o endpoint.EmbeddingOptions, stop func(), err error) {
	c := &cfg.Search.Embeddings
	key, err := c.Key.Read("search.embeddings.key")
	if err != nil {
		return o, nil, err
	}
	o = endpoint.EmbeddingOptions{
		Identity: semantic.Identity{
			Model: c.Name, Dimensions: c.Dimensions, QueryPrefix: c.QueryPrefix, DocumentPrefix: c.DocumentPrefix, MaxChars: c.MaxChars,
		},
		Options: endpoint.Options{URL: c.URL, Key: key},
	}
	if c.URL != "" {
		return o, nil, nil
	}
	if st, err := os.Stat(c.Name); err != nil || !st.IsDir() {
		return o, nil, fault.New(fault.Invalid, "search.embeddings.model: %s is not the directory of a model.", c.Name)
	}
	program, err := helper.Find()
	if err != nil {
		return o, nil, fault.New(fault.Unavailable, "search.embeddings.model is a directory, and another program is needed to run its model: %s. Install it, or name an endpoint with search.embeddings.url.", err)
	}
	// Each process needs a socket of its own, even if two use one data directory in turn.
	dir, err := os.MkdirTemp("", "satchel-embed-")
	if err != nil {
		return o, nil, err
	}
	socket := filepath.Join(dir, "embed.sock")
	h := helper.Start(helper.Options{Path: program, Model: c.Name, Socket: socket, Logger: log.With("part", "embed")})
	o.URL = "unix:" + socket
	return o, func() {
		h.Close()
		os.RemoveAll(dir)
	}, nil
}

func vectorsDir(cfg *config.Config) string { return filepath.Join(cfg.DataDir, "vectors") }

// forgetVectors removes the vectors of purged content or of a deleted space, even if the
// model is off now.
func forgetVectors(ctx context.Context, cfg *config.Config, x *index.Index, id space.SpaceID) error {
	if _, ok := x.VectorStatus(id); ok {
		return x.ForgetVectors(ctx, id)
	}
	return semantic.Forget(ctx, vectorsDir(cfg), string(id))
}

// EmbeddingCheck is the result of a trial of the embedding model.
type EmbeddingCheck struct {
	Model      string
	Dimensions int
	Took       time.Duration
}

// CheckEmbeddings embeds one word with the configured model. ok is false if no model is
// configured. The error contains no secrets.
func CheckEmbeddings(ctx context.Context, cfg *config.Config) (c EmbeddingCheck, ok bool, err error) {
	if cfg.Search.Embeddings.URL == "" && cfg.Search.Embeddings.Name == "" {
		return c, false, nil
	}
	c.Model = cfg.Search.Embeddings.Name
	o, stop, err := embeddings(cfg, slog.New(slog.DiscardHandler))
	if err != nil {
		return c, true, err
	}
	if stop != nil {
		defer stop()
	}
	o.Tries = 1
	if stop != nil {
		o.Tries = 5 // the program loads the model first
	}
	e, err := endpoint.NewEmbeddings(o)
	if err != nil {
		return c, true, err
	}
	defer e.Close()
	start := time.Now()
	v, err := e.Embed(ctx, o.Identity, semantic.Document, []string{"satchel"})
	if err == nil && len(v) == 1 {
		c.Dimensions = len(v[0])
	}
	c.Took = time.Since(start)
	return c, true, err
}
