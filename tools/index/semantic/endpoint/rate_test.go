package endpoint_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"satchel/tools/index/semantic"
	"satchel/tools/index/semantic/endpoint"
)

// answers is a model that answers at once.
type answers struct{}

func (answers) RoundTrip(r *http.Request) (*http.Response, error) {
	r.Body.Close()
	body := io.NopCloser(strings.NewReader(`{"data":[{"index":0,"embedding":[1,2,3]}]}`))
	return &http.Response{StatusCode: http.StatusOK, Header: http.Header{"Content-Type": {"application/json"}}, Body: body, Request: r}, nil
}

// TestLimitsHold makes more requests than a minute allows: the last are made when
// their share of the minute has come.
func TestLimitsHold(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := endpoint.Options{URL: "http://model.example/v1", Transport: answers{}, RequestsPerMinute: 600} // ten a second, sixty at once
		e := embeddings(t, endpoint.EmbeddingOptions{Options: o})
		embed := func(ctx context.Context, kind semantic.Kind) error {
			_, err := e.Embed(ctx, semantic.Identity{Model: "m"}, kind, []string{"a"})
			return err
		}
		start := time.Now()
		for range 63 {
			if err := embed(t.Context(), semantic.Document); err != nil {
				t.Fatal(err)
			}
		}
		if took := time.Since(start); took != 300*time.Millisecond {
			t.Errorf("63 requests took %v", took)
		}
		// A query does not wait, nor does one that was given up.
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if err := embed(ctx, semantic.Document); !errors.Is(err, context.Canceled) {
			t.Errorf("got %v", err)
		}
		if err := embed(t.Context(), semantic.Search); err != nil {
			t.Error(err)
		}
		if took := time.Since(start); took != 300*time.Millisecond {
			t.Errorf("with a query: %v", took)
		}
	})
}
