package tools_test

import (
	"context"
	"encoding/json"
	"slices"
	"sync"
	"testing"
	"testing/synctest"

	"satchel/auth"
	"satchel/internal/fault"
	"satchel/internal/space"
	"satchel/tools"
	"satchel/tools/index"
)

// heldSearch holds every search until it is let go, and keeps their texts in the
// order in which they began.
type heldSearch struct {
	mu    sync.Mutex
	began []string
	held  map[string]chan struct{}
}

func (h *heldSearch) Await(context.Context, []index.Collection, index.Query) error { return nil }

func (h *heldSearch) Search(ctx context.Context, _ []index.Collection, q index.Query) (index.Results, error) {
	h.mu.Lock()
	h.began = append(h.began, q.Text)
	let := make(chan struct{})
	h.held[q.Text] = let
	h.mu.Unlock()
	select {
	case <-let:
		return index.Results{}, nil
	case <-ctx.Done():
		return index.Results{}, ctx.Err()
	}
}

func (h *heldSearch) end(texts ...string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, text := range texts {
		close(h.held[text])
	}
}

func (h *heldSearch) texts() []string {
	h.mu.Lock()
	defer h.mu.Unlock()
	return slices.Clone(h.began)
}

// One user's searches wait for one another, in their order, and for nobody
// else's; those that are too many are told so, and those whose caller goes leave
// their place to others.
func TestSearchesOfAUserWaitForOneAnother(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := &heldSearch{held: map[string]chan struct{}{}}
		b := newBench(t, nil, func(o *tools.Options) {
			o.Service, o.Searcher = withoutCommands(), h
			o.Limits = tools.Limits{Searches: 2, SearchesWaiting: 3}
		})
		as := func(ctx context.Context, user space.UserID, query string) <-chan tools.Result {
			c := editor(func(p *auth.Principal) { p.User = user })
			done := make(chan tools.Result, 1)
			go func() {
				r, err := b.Call(ctx, c, "search", json.RawMessage(`{"query":"`+query+`"}`), nil)
				if (err == nil) == (query == "three") || err != nil && fault.CodeOf(err) != fault.Canceled {
					t.Errorf("%s: %v", query, err)
				}
				done <- r
			}()
			synctest.Wait()
			return done
		}
		began := func(want ...string) {
			t.Helper()
			synctest.Wait()
			if got := h.texts(); !slices.Equal(got, want) {
				t.Errorf("began %q, want %q", got, want)
			}
		}
		as(t.Context(), "u_ann", "one")
		as(t.Context(), "u_ann", "two")
		gone, leave := context.WithCancel(t.Context())
		third := as(gone, "u_ann", "three")
		as(t.Context(), "u_ann", "four")
		as(t.Context(), "u_ann", "five")
		began("one", "two")
		check(t, <-as(t.Context(), "u_ann", "six"), true, "You have 2 searches running and 3 waiting", "Try again in 1s")
		as(t.Context(), "u_ben", "ben's")
		began("one", "two", "ben's")
		leave()
		<-third
		as(t.Context(), "u_ann", "seven") // in the place that was left
		h.end("two")
		began("one", "two", "ben's", "four")
		h.end("four")
		began("one", "two", "ben's", "four", "five")
		h.end("one", "ben's", "five")
		began("one", "two", "ben's", "four", "five", "seven")
		h.end("seven")
		// Nothing of them is left.
		as(t.Context(), "u_ann", "eight")
		as(t.Context(), "u_ann", "nine")
		began("one", "two", "ben's", "four", "five", "seven", "eight", "nine")
		h.end("eight", "nine")
	})
}
