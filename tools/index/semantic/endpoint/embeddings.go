package endpoint

import (
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"math"

	"satchel/tools/index/semantic"
)

// EmbeddingOptions say which model makes vectors, and how it wants its texts.
type EmbeddingOptions struct {
	Options
	// Identity is the model's. Its Dimensions are asked for where they are not 0.
	Identity semantic.Identity
	// Base64 asks for vectors in base64 of little-endian float32, which is a
	// quarter of the bytes. An endpoint that answers with numbers all the same is
	// understood.
	Base64 bool
}

// Embeddings is a semantic.Embedder over POST {base}/embeddings.
type Embeddings struct {
	o EmbeddingOptions
	c *client
}

// NewEmbeddings returns the embedder. The error names no secret.
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
		Index     *int   `json:"index"`
		Embedding vector `json:"embedding"`
	} `json:"data"`
}

// vector is a list of numbers, or base64.
type vector []float32

func (v *vector) UnmarshalJSON(b []byte) error {
	if len(b) > 0 && b[0] == '"' {
		var packed []byte // encoding/json reads base64
		if err := json.Unmarshal(b, &packed); err != nil {
			return err
		}
		if len(packed)%4 != 0 || len(packed)/4 > semantic.MaxDimensions {
			return errors.New("not base64 of numbers")
		}
		*v = make(vector, len(packed)/4)
		for i := range *v {
			(*v)[i] = math.Float32frombits(binary.LittleEndian.Uint32(packed[4*i:]))
		}
		return nil
	}
	return json.Unmarshal(b, (*[]float32)(v))
}

// maxVector is how many bytes of JSON a vector takes, with a blank or two
// between any two numbers.
const maxVector = 32 * semantic.MaxDimensions

// Embed implements semantic.Embedder.
func (e *Embeddings) Embed(ctx context.Context, id semantic.Identity, kind semantic.Kind, texts []string) ([][]float32, error) {
	in := embeddingRequest{Model: id.Model, Input: make([]string, len(texts)), Dimensions: id.Dimensions, EncodingFormat: "float"}
	if e.o.Base64 {
		in.EncodingFormat = "base64"
	}
	prefix := id.DocumentPrefix
	if kind == semantic.Search {
		prefix = id.QueryPrefix
	}
	tokens := 0
	for i, t := range texts {
		in.Input[i] = prefix + t
		tokens += len(t)/3 + 8
	}
	var vectors [][]float32
	err := post(ctx, e.c, "/embeddings", in, tokens, int64(len(texts))*maxVector, kind == semantic.Search, func(out *embeddingAnswer) (err error) {
		vectors, err = out.vectors(len(texts))
		return err
	})
	var refused *Error
	if kind == semantic.Document && errors.As(err, &refused) && (refused.refused() || refused.broken) {
		return nil, fmt.Errorf("%w: %w", semantic.ErrInput, err)
	}
	return vectors, err
}

// vectors puts an answer in the order of its indexes, and judges it. All of them
// may be absent, as some endpoints have it: then the order is the texts'.
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
