package tools_test

import (
	"encoding/json"
	"errors"
	"testing"
	"time"

	"satchel/internal/fault"
	"satchel/tools/index"
	"satchel/tools/index/present"
)

func TestSearch(t *testing.T) {
	b := newBench(t, nil, nil)
	b.search.found = index.Results{
		Hits: []present.Hit{
			{Source: "space", Path: "knowledge/a b.md", Title: "A", Heading: "Use it", Anchor: "use-it", Lines: [2]int{12, 40}, Snippet: "short", Text: "the whole passage",
				Score: 12.34567, Description: "about a", Date: time.Date(2026, 3, 4, 23, 0, 0, 0, time.UTC), Blob: blobOf("a"), Lang: "en"},
			{Source: "space", Path: "knowledge/b.md", Lines: [2]int{3, 3}, Snippet: "only this", Score: 1, Description: "about b"},
		},
		Total: 17, Truncated: true, Scope: "the space (3 documents)", IndexCommit: "c0ffee", IndexAge: 1234 * time.Millisecond,
		Notes: []string{"a note"}, Suggestions: []string{"deploy"},
	}
	r := b.call(t, "search", `{"query":"use it","limit":99,"source":"space","since":"2026-01-31","max_tokens":700}`)
	if len(r.Content) != 1 || r.Content[0].Text != string(r.Structured) {
		t.Error("the text is not the same JSON")
	}
	var v any
	if err := json.Unmarshal(r.Structured, &v); err != nil {
		t.Fatal(err)
	}
	pretty, _ := json.MarshalIndent(v, "", "  ")
	golden(t, "search.json", string(pretty)+"\n")

	q := b.search.query
	if q.Text != "use it" || q.Limit != 50 || q.Source != "space" || q.MaxTokens != 700 || !q.Since.Equal(time.Date(2026, 1, 31, 0, 0, 0, 0, time.UTC)) {
		t.Errorf("searched %+v", q)
	}
	if len(b.search.cols) != 1 || b.search.cols[0].ID != ann {
		t.Errorf("searched in %+v", b.search.cols)
	}
}

func TestSearchFindsNothing(t *testing.T) {
	b := newBench(t, nil, nil)
	b.search.found = index.Results{Scope: "the space", Suggestions: []string{"deploy"}}
	r := b.call(t, "search", `{"query":"dploy"}`)
	check(t, r, false, `"results":[]`, `"total":0`, `"scope":"the space"`, `"suggestions":["deploy"]`)
	if q := b.search.query; q.Limit != 0 || q.UsualLimit != 10 || q.MaxTokens != 5000 || q.MaxWait != 2*time.Second {
		t.Errorf("defaults %+v", q)
	}
	b.search.err = errors.New("disk I/O error")
	if _, err := b.Call(t.Context(), editor(), "search", json.RawMessage(`{"query":"x"}`), nil); fault.CodeOf(err) != fault.Internal {
		t.Errorf("%v", err)
	}
}
