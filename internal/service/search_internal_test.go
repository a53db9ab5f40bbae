package service

import (
	"reflect"
	"testing"
	"time"

	"satchel/internal/space"
	"satchel/tools/index"
	"satchel/tools/index/present"
)

func TestSearchResultsOfHits(t *testing.T) {
	got := newSearchResults(index.Results{
		Hits: []present.Hit{
			{Source: "space", Path: "knowledge/a b.md", Title: "A", Heading: "Use it", Anchor: "use-it", Lines: [2]int{12, 40}, Snippet: "short", Text: "the whole passage",
				Score: 12.34567, Description: "about a", Date: time.Date(2026, 3, 4, 23, 0, 0, 0, time.UTC), Blob: "b10b", Lang: "en", Also: 3, AlsoIn: []string{"c.md"}},
			{Source: "space", Path: "knowledge/b.md", Lines: [2]int{3, 3}, Snippet: "only this", Score: 1, Description: "about b"},
		},
		Total: 17, Truncated: true, Scope: "the space (3 documents)", IndexCommit: "c0ffee", IndexAge: 1234 * time.Millisecond,
		Notes: []string{"a note"}, Suggestions: []string{"deploy"},
	})
	want := SearchResults{
		Results: []SearchResult{
			{ID: "knowledge/a b.md#use-it", Title: "A", Path: "knowledge/a b.md", Lines: "12-40", Heading: "Use it", Snippet: "the whole passage",
				Score: 12.346, Source: "space", Lang: "en", Date: "2026-03-04", ETag: "b10b", Also: []string{"c.md"}, AlsoTotal: 3},
			{ID: "knowledge/b.md", Title: "b.md", Path: "knowledge/b.md", Lines: "3-3", Description: "about b", Snippet: "only this", Score: 1, Source: "space"},
		},
		Total: 17, Truncated: true, Scope: "the space (3 documents)", IndexCommit: space.CommitID("c0ffee"), IndexAge: 1.2,
		Notes: []string{"a note"}, Suggestions: []string{"deploy"},
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("%+v\nwant %+v", got, want)
	}
	if soon := newSearchResults(index.Results{IndexAge: time.Millisecond}); soon.IndexAge != 0.1 {
		t.Errorf("an index that is a little behind: %v", soon.IndexAge)
	}
}
