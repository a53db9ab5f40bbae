package service_test

import (
	"slices"
	"testing"
	"time"

	"satchel/auth/store"
	"satchel/internal/fault"
	"satchel/internal/service"
	"satchel/internal/service/servicetest"
	"satchel/internal/space"
	"satchel/tools/index"
)

// If no server runs, each operation opens the index and closes it again.
func TestIndexWithoutAServer(t *testing.T) {
	w := servicetest.New(t, time.Now)
	w.Write(map[string]string{"a.md": "Green tea", "x.md": "Cocoa", "y.md": "Milk"})
	owner := service.SpaceRef{User: "owner"}
	if _, err := w.Search(t.Context(), service.Operator(), service.SearchInput{Space: owner, Query: "tea"}); fault.CodeOf(err) != fault.Unavailable {
		t.Errorf("without an index: %v", err)
	}
	dir := t.TempDir()
	w.Options.OpenIndex = func() (*index.Index, error) { return index.Open(index.Options{Dir: dir}) }
	s := service.New(w.Options)
	_, sp, err := w.Accounts.CreateUser(t.Context(), store.Actor{Via: "test"}, store.NewUser{Name: "bob", Space: space.NewSpaceID()})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := w.Git.Create(t.Context(), sp.ID, space.ChangeSet{}, space.Meta{}); err != nil {
		t.Fatal(err)
	}
	steps := map[string]bool{}
	ctx := service.WithProgress(t.Context(), func(step string) { steps[step] = true })

	found, err := s.Search(ctx, service.Operator(), service.SearchInput{Space: owner, Query: "tea", Explain: true})
	if err != nil || len(found.Results) != 1 || found.Results[0].Path != "a.md" || found.Results[0].Why == nil {
		t.Errorf("%+v, %v", found, err)
	}
	if done, err := s.Reindex(ctx, service.Operator(), service.ReindexInput{}); err != nil || len(done) != 2 || done[0].Documents+done[1].Documents != 3 {
		t.Errorf("all: %+v, %v", done, err)
	}
	done, err := s.Reindex(ctx, service.Operator(), service.ReindexInput{Space: owner, Changed: []string{"b.md", "a.md", "b.md"}})
	if err != nil || len(done) != 1 || done[0].Space != w.Space || done[0].Owner != "owner" || done[0].Read != 1 || !slices.Equal(done[0].Absent, []space.Path{"b.md"}) {
		t.Errorf("two paths: %+v, %v", done, err)
	}
	for _, in := range []service.ReindexInput{{Space: owner, Changed: []string{"a.md", "../b.md"}}, {Space: service.SpaceRef{ID: "s_nosuch"}}, {Changed: []string{}}} {
		if done, err := s.Reindex(ctx, service.Operator(), in); err == nil {
			t.Errorf("%+v: %+v", in, done)
		}
	}
	ranked, err := s.RankPages(ctx, service.Operator(), service.RankPagesInput{Space: owner, Queries: []string{"cocoa", "milk"}, Depth: 5, Paths: []space.Path{"a.md", "gone.md"}})
	if err != nil || len(ranked.Rankings) != 2 || !slices.Equal(ranked.Rankings[1].Paths, []space.Path{"y.md"}) || !slices.Equal(ranked.Absent, []space.Path{"gone.md"}) {
		t.Errorf("%+v, %v", ranked, err)
	}
	if !steps["Asked 2 of 2 queries"] {
		t.Errorf("the steps are %v", steps)
	}
}
