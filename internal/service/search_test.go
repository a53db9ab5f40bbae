package service_test

import (
	"strings"
	"testing"
	"time"

	"satchel/auth"
	"satchel/auth/store"
	"satchel/internal/fault"
	"satchel/internal/service"
	"satchel/internal/service/servicetest"
	"satchel/internal/space"
	"satchel/tools/index"
)

func openIndex(t *testing.T, w *servicetest.World) *index.Index {
	t.Helper()
	x, err := index.Open(index.Options{Dir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = x.Close() })
	if err := x.Rebuild(t.Context(), w.Space, w.Git); err != nil {
		t.Fatal(err)
	}
	w.Attach(service.Running{Index: x})
	return x
}

func TestSearch(t *testing.T) {
	w := servicetest.New(t, time.Now)
	w.Write(map[string]string{"knowledge/kite.md": "# Kites\n\nFly a kite at noon.\n", "private.md": "# Secret\n\nThe kite is paper.\n"})
	src := w.Publish("kites", "Kites", "knowledge")
	x := openIndex(t, w)
	if err := x.Update(t.Context(), src.Collection, w.Sources); err != nil {
		t.Fatal(err)
	}
	reader, _, err := w.Accounts.CreateUser(t.Context(), store.Actor{Via: "test"}, store.NewUser{Name: "reader", Space: space.NewSpaceID()})
	if err != nil {
		t.Fatal(err)
	}
	grant := func(u space.UserID) service.Actor {
		return service.Client(auth.Principal{User: u, Space: w.Space, Role: space.Owner, Scopes: []space.Scope{space.ScopeRead}}, "mcp")
	}
	own := service.SpaceRef{ID: w.Space}
	for _, c := range []struct {
		name string
		a    service.Actor
		in   service.SearchInput
		want string // paths
		note string
		code fault.Code
	}{
		{name: "the space by a client", a: grant(w.Owner.ID), in: service.SearchInput{Space: own, Query: "kite -source:kites"}, want: "knowledge/kite.md private.md"},
		{name: "the space by a person", a: service.Person(w.Owner), in: service.SearchInput{Space: own, Query: "paper"}, want: "private.md"},
		{name: "the space by the operator", a: service.Operator(), in: service.SearchInput{Space: service.SpaceRef{User: "owner"}, Query: "paper"}, want: "private.md"},
		{name: "the library alone", a: service.Person(reader), in: service.SearchInput{Query: "kite"}, want: "/library/docs/kites/kite.md"},
		{name: "attack: another's space", a: service.Person(reader), in: service.SearchInput{Space: own, Query: "kite"}, code: fault.NotFound},
		{name: "attack: another space than the grant's", a: grant(w.Owner.ID), in: service.SearchInput{Space: service.SpaceRef{ID: "s_other"}, Query: "kite"}, code: fault.NotFound},
		{name: "too much", a: grant(w.Owner.ID), in: service.SearchInput{Space: own, Query: "paper", Limit: 99, MaxTokens: 99_999}, want: "private.md", note: "limit was lowered to 50"},
		{name: "only the new", a: grant(w.Owner.ID), in: service.SearchInput{Space: own, Query: "paper", Since: "2999-01-31"}},
		{name: "no date", a: grant(w.Owner.ID), in: service.SearchInput{Space: own, Query: "paper", Since: "2026-02-30"}, code: fault.Invalid},
		{name: "no query", a: grant(w.Owner.ID), in: service.SearchInput{Space: own, Query: " "}, code: fault.Invalid},
	} {
		r, err := w.Search(t.Context(), c.a, c.in)
		var got []string
		for _, x := range r.Results {
			got = append(got, x.Path)
		}
		if fault.CodeOf(err) != c.code || strings.Join(got, " ") != c.want || !strings.Contains(strings.Join(r.Notes, " "), c.note) {
			t.Errorf("%s: %q, %q, %v", c.name, got, r.Notes, err)
		}
	}
	r, err := w.Search(t.Context(), service.Person(w.Owner), service.SearchInput{Space: own, Query: "paper", Explain: true})
	if err != nil || len(r.Results) != 1 || r.Results[0].Why == nil {
		t.Errorf("explained: %+v, %v", r, err)
	}
}

// A search with an alias of a source finds the pages of this source first.
func TestSearchWithAnAlias(t *testing.T) {
	w := servicetest.New(t, time.Now)
	w.Write(map[string]string{"one/kite.md": "# Kites\n\nFly a kite at noon.\n", "two/kite.md": "# Kites\n\nFly a kite at noon by the lake.\n"})
	for _, id := range []string{"one", "two"} {
		w.Publish(id, "", id)
	}
	in := service.PublishSourceInput{Space: service.SpaceRef{ID: w.Space}, Source: space.Source{ID: "two", SourceText: space.SourceText{Aliases: "breeze, gust"}, Dir: "two", Everybody: true}}
	if _, err := w.PublishSource(t.Context(), service.Person(w.Owner), in); err != nil {
		t.Fatal(err)
	}
	x := openIndex(t, w)
	all, err := w.ListSources(t.Context(), service.Operator(), service.ListSourcesInput{})
	if err != nil {
		t.Fatal(err)
	}
	for _, src := range all {
		if err := x.Update(t.Context(), src.Collection, w.Sources); err != nil {
			t.Fatal(err)
		}
	}
	for query, first := range map[string]string{"fly a kite at noon": "/library/docs/one/kite.md", "fly a kite at noon with gust": "/library/docs/two/kite.md"} {
		r, err := w.Search(t.Context(), service.Person(w.Owner), service.SearchInput{Query: query, Source: "one,two"})
		if err != nil || len(r.Results) == 0 || r.Results[0].Path != first {
			t.Errorf("%q: %+v, %v", query, r.Results, err)
		}
	}
}
