package endpoint

import (
	"context"
	"errors"
	"fmt"
	"math"

	"satchel/tools/index/semantic"
)

// EmbeddingOptions describe an embedding model.
type EmbeddingOptions struct {
	Options
	// Identity identifies the model. Its Dimensions are requested if they are not 0.
	Identity semantic.Identity
}

// Embeddings is a semantic.Embedder that uses POST {base}/embeddings.
type Embeddings struct {
	o EmbeddingOptions
	c *client
}

// NewEmbeddings returns the embedder. Its error contains no secret.
func NewEmbeddings(o EmbeddingOptions) (*Embeddings, error) {
	c, err := newClient(o.Options)
	if err != nil {
		return nil, err
	}
	return &Embeddings{o, c}, nil
}

// Close ends idle connections.
func (e *Embeddings) Close() { e.c.close() }

// Identity implements semantic.Embedder.
func (e *Embeddings) Identity() semantic.Identity { return e.o.Identity }

type embeddingRequest struct {
	Model          string   `json:"model"`
	Input          []string `json:"input"`
	Dimensions     int      `json:"dimensions,omitempty"`
	EncodingFormat string   `json:"encoding_format"`
}

type embeddingAnswer struct {
	Data []struct {
		Index     *int      `json:"index"`
		Embedding []float32 `json:"embedding"`
	} `json:"data"`
}

// maxVector limits the JSON of one vector, in bytes. It leaves room for one or two spaces
// between the numbers.
const maxVector = 32 * semantic.MaxDimensions

// Embed implements semantic.Embedder.
func (e *Embeddings) Embed(ctx context.Context, id semantic.Identity, kind semantic.Kind, texts []string) ([][]float32, error) {
	in := embeddingRequest{Model: id.Model, Input: make([]string, len(texts)), Dimensions: id.Dimensions, EncodingFormat: "float"}
	prefix := id.DocumentPrefix
	if kind == semantic.Search {
		prefix = id.QueryPrefix
	}
	for i, t := range texts {
		in.Input[i] = prefix + t
	}
	var vectors [][]float32
	err := post(ctx, e.c, "/embeddings", in, int64(len(texts))*maxVector, kind == semantic.Search, func(out *embeddingAnswer) (err error) {
		vectors, err = out.vectors(len(texts))
		return err
	})
	var refused *Error
	if kind == semantic.Document && errors.As(err, &refused) && (refused.refused() || refused.broken) {
		return nil, fmt.Errorf("%w: %w", semantic.ErrInput, err)
	}
	return vectors, err
}

// vectors sorts an answer by its indexes, and validates it. If all indexes are missing, as with
// some endpoints, the vectors are in the order of the texts.
func (a *embeddingAnswer) vectors(want int) ([][]float32, error) {
	if len(a.Data) != want {
		return nil, fmt.Errorf("%w: %d vectors for %d texts", semantic.ErrVector, len(a.Data), want)
	}
	vectors := make([][]float32, want)
	for i, d := range a.Data {
		at := i
		if d.Index != nil {
			at = *d.Index
		}
		if at < 0 || at >= want || vectors[at] != nil {
			return nil, fmt.Errorf("%w: its indexes are not those of the texts", semantic.ErrVector)
		}
		if len(d.Embedding) == 0 || len(d.Embedding) != len(a.Data[0].Embedding) {
			return nil, fmt.Errorf("%w: %d numbers beside %d", semantic.ErrVector, len(d.Embedding), len(a.Data[0].Embedding))
		}
		for _, x := range d.Embedding {
			if f := float64(x); math.IsNaN(f) || math.IsInf(f, 0) {
				return nil, fmt.Errorf("%w: a number of it is not finite", semantic.ErrVector)
			}
		}
		vectors[at] = d.Embedding
	}
	return vectors, nil
}
