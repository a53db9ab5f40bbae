package service_test

import (
	"context"
	"encoding/json"
	"slices"
	"testing"
	"time"

	"satchel/auth/store"
	"satchel/internal/fault"
	"satchel/internal/service"
	"satchel/internal/service/servicetest"
	"satchel/internal/space"
)

type storeEntry = store.Entry

// fakeFinder returns what it was called with. Its pointers may be nil.
type fakeFinder struct{ open, purged *int }

func (f fakeFinder) Search(_ context.Context, u store.User, m store.Membership, args json.RawMessage, explain bool, progress func(string)) (json.RawMessage, error) {
	progress("searching")
	return json.Marshal(map[string]any{"user": u.Name, "space": m.Name, "explain": explain, "arguments": args})
}

func (f fakeFinder) Rebuild(_ context.Context, _ space.SpaceID, progress func(string)) (service.Reindexed, error) {
	progress("indexing")
	return service.Reindexed{Documents: 7, Read: 7}, nil
}

func (f fakeFinder) Reread(_ context.Context, _ space.SpaceID, paths []space.Path, _ func(string)) (service.Reindexed, error) {
	return service.Reindexed{Documents: 7, Read: len(paths), Absent: paths}, nil
}

func (f fakeFinder) Rank(_ context.Context, _ space.SpaceID, query string, depth int) (service.Ranking, error) {
	return service.Ranking{Paths: []space.Path{space.Path(query + ".md")}, Took: time.Duration(depth)}, nil
}

func (f fakeFinder) Purged(context.Context, space.SpaceID) error { *f.purged++; return nil }

func (f fakeFinder) Close() error { *f.open--; return nil }

func TestSearchOperations(t *testing.T) {
	w := servicetest.New(t, time.Now)
	w.Write(map[string]string{"a.md": "A"})
	if _, err := w.SearchSpace(t.Context(), service.Operator(), service.SearchSpaceInput{}); fault.CodeOf(err) != fault.Unavailable {
		t.Errorf("without an index: %v", err)
	}
	open := 0
	w.Options.OpenFinder = func(context.Context) (service.Finder, error) { open++; return fakeFinder{open: &open}, nil }
	s := service.New(w.Options)
	if _, _, err := w.Accounts.CreateUser(t.Context(), store.Actor{Via: "test"}, store.NewUser{Name: "bob", Space: space.NewSpaceID()}); err != nil {
		t.Fatal(err)
	}
	steps := map[string]bool{}
	ctx := service.WithProgress(t.Context(), func(step string) { steps[step] = true })
	owner := service.SpaceRef{User: "owner"}

	answer, err := s.SearchSpace(ctx, service.Operator(), service.SearchSpaceInput{Space: owner, Arguments: service.SearchArguments{Query: "tea", Limit: 3}, Explain: true})
	if err != nil || string(answer) != `{"arguments":{"query":"tea","limit":3},"explain":true,"space":"owner","user":"owner"}` {
		t.Errorf("%s, %v", answer, err)
	}
	if done, err := s.Reindex(ctx, service.Operator(), service.ReindexInput{}); err != nil || len(done) != 2 {
		t.Errorf("all: %+v, %v", done, err)
	}
	done, err := s.Reindex(ctx, service.Operator(), service.ReindexInput{Space: owner, Changed: []string{"b.md", "a.md", "b.md"}})
	if err != nil || len(done) != 1 || done[0].Space != w.Space || done[0].Owner != "owner" || !slices.Equal(done[0].Absent, []space.Path{"a.md", "b.md"}) {
		t.Errorf("two paths: %+v, %v", done, err)
	}
	for _, in := range []service.ReindexInput{{Space: owner, Changed: []string{"a.md", "../b.md"}}, {Space: service.SpaceRef{ID: "s_nosuch"}}, {Changed: []string{}}} {
		if done, err := s.Reindex(ctx, service.Operator(), in); err == nil {
			t.Errorf("%+v: %+v", in, done)
		}
	}
	ranked, err := s.RankPages(ctx, service.Operator(), service.RankPagesInput{Space: owner, Queries: []string{"x", "y"}, Depth: 5, Paths: []space.Path{"a.md", "gone.md"}})
	if err != nil || len(ranked.Rankings) != 2 || ranked.Rankings[1].Paths[0] != "y.md" || ranked.Rankings[1].Took != 5 || !slices.Equal(ranked.Absent, []space.Path{"gone.md"}) {
		t.Errorf("%+v, %v", ranked, err)
	}
	if open != 0 {
		t.Errorf("%d finders were not closed", open)
	}
	for _, want := range []string{"searching", "1 of 2 spaces: indexing", "Asked 2 of 2 queries"} {
		if !steps[want] {
			t.Errorf("no step %q: %v", want, steps)
		}
	}
}
