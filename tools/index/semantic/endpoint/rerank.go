package endpoint

import (
	"context"
	"fmt"
	"math"
)

// Reranker uses POST {base}/rerank to score passages for a query.
type Reranker struct {
	model string
	c     *client
}

// NewReranker returns a Reranker for a model. Its error contains no secret.
func NewReranker(model string, o Options) (*Reranker, error) {
	c, err := newClient(o)
	if err != nil {
		return nil, err
	}
	return &Reranker{model, c}, nil
}

// Close ends idle connections.
func (r *Reranker) Close() { r.c.close() }

type rerankRequest struct {
	Model     string   `json:"model,omitempty"`
	Query     string   `json:"query"`
	Documents []string `json:"documents"`
	TopN      int      `json:"top_n"`
}

type rerankAnswer struct {
	Results []struct {
		Index          *int     `json:"index"`
		RelevanceScore *float64 `json:"relevance_score"`
	} `json:"results"`
}

// The sizes of an answer's parts, in bytes: maxJudgment is for one score without its passage,
// and maxEscaped is for each byte of a passage, which may be escaped.
const (
	maxJudgment = 256
	maxEscaped  = 6
)

// Rerank returns the relevance of each document, in the order of the documents. It does not
// retry.
func (r *Reranker) Rerank(ctx context.Context, query string, documents []string) ([]float64, error) {
	need := int64(0)
	for _, d := range documents {
		need += maxJudgment + maxEscaped*int64(len(d)) // some endpoints repeat each passage
	}
	scores := make([]float64, len(documents))
	err := post(ctx, r.c, "/rerank", rerankRequest{r.model, query, documents, len(documents)}, need, true, func(out *rerankAnswer) error {
		seen := make([]bool, len(documents))
		if len(out.Results) != len(documents) {
			return fmt.Errorf("model endpoint: %d judgments for %d passages", len(out.Results), len(documents))
		}
		for _, x := range out.Results {
			if x.Index == nil || x.RelevanceScore == nil || *x.Index < 0 || *x.Index >= len(documents) || seen[*x.Index] ||
				math.IsNaN(*x.RelevanceScore) || math.IsInf(*x.RelevanceScore, 0) {
				return fmt.Errorf("model endpoint: its judgments are not those of the passages")
			}
			seen[*x.Index] = true
			scores[*x.Index] = *x.RelevanceScore
		}
		return nil
	})
	return scores, err
}
