package main

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/knights-analytics/hugot"
	"github.com/knights-analytics/hugot/pipelines"
)

// model computes the vectors of texts in small batches, one after another. Larger or concurrent
// batches would only be slower.
type model struct {
	session *hugot.Session
	batch   int

	mu       sync.Mutex
	pipeline *pipelines.FeatureExtractionPipeline
}

func load(dir, onnx string, batch int) (_ *model, err error) {
	m := &model{batch: batch}
	if m.session, err = hugot.NewGoSession(); err != nil {
		return nil, err
	}
	m.pipeline, err = hugot.NewPipeline(m.session, hugot.FeatureExtractionConfig{
		ModelPath: dir, OnnxFilename: onnx, Name: "embeddings",
		Options: []hugot.FeatureExtractionOption{pipelines.WithNormalization()},
	})
	if err != nil {
		return nil, errors.Join(err, m.session.Destroy())
	}
	return m, nil
}

func (m *model) close() { _ = m.session.Destroy() }

// embed returns a vector for each text. Other calls get their turn between batches, so that a
// query does not wait for a thousand passages.
func (m *model) embed(ctx context.Context, texts []string) ([][]float32, error) {
	var all [][]float32
	for len(texts) > 0 {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		n := min(m.batch, len(texts))
		vectors, err := m.some(texts[:n])
		if err != nil {
			return nil, err
		}
		all, texts = append(all, vectors...), texts[n:]
	}
	return all, nil
}

func (m *model) some(texts []string) (_ [][]float32, err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	defer func() {
		if r := recover(); r != nil { // gomlx panics at what it cannot compute
			err = fmt.Errorf("the model cannot read it: %v", r)
		}
	}()
	out, err := m.pipeline.RunPipeline(texts)
	if err != nil {
		return nil, err
	}
	if len(out.Embeddings) != len(texts) {
		return nil, fmt.Errorf("the model made %d vectors of %d texts", len(out.Embeddings), len(texts))
	}
	return out.Embeddings, nil
}
