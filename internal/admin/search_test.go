package admin_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"satchel/auth/store"
	"satchel/internal/admin"
	"satchel/internal/fault"
	"satchel/internal/space"
)

// fakeFinder reports what it was asked.
type fakeFinder struct{ open *int }

func (f fakeFinder) Search(_ context.Context, u store.User, m store.Membership, args json.RawMessage, _ bool, progress func(string)) (json.RawMessage, error) {
	progress("searching")
	if bytes.Contains(args, []byte("broken")) {
		return nil, fault.New(fault.Invalid, "The argument is wrong.")
	}
	return json.Marshal(map[string]any{"user": u.Name, "space": m.Name, "arguments": args})
}

func (f fakeFinder) Rebuild(_ context.Context, _ space.SpaceID, progress func(string)) (admin.Reindexed, error) {
	progress("indexing")
	return admin.Reindexed{Documents: 7, Read: 7}, nil
}

func (f fakeFinder) Reread(_ context.Context, _ space.SpaceID, paths []space.Path, _ func(string)) (admin.Reindexed, error) {
	return admin.Reindexed{Documents: 7, Read: len(paths), Absent: paths}, nil
}

func (f fakeFinder) Rank(_ context.Context, _ space.SpaceID, query string, depth int) (admin.Ranking, error) {
	return admin.Ranking{Paths: []space.Path{space.Path(query + ".md")}, Took: time.Duration(depth)}, nil
}

func (f fakeFinder) Close() error { *f.open--; return nil }

// TestSearchBothWays searches, reindexes and ranks directly and over the socket:
// answers and errors are the same.
func TestSearchBothWays(t *testing.T) {
	var transcripts []string
	for _, remote := range []bool{false, true} {
		l := newLocal(t)
		open := 0
		l.OpenFinder = func(context.Context) (admin.Finder, error) { open++; return fakeFinder{&open}, nil }
		var s admin.Service = l
		if remote {
			s = over(t, l, quiet())
		}
		ctx := t.Context()
		var b strings.Builder
		told := map[string]bool{}
		progress := func(text string) { told[text] = true }
		say := func(v any, err error) {
			if err != nil {
				v = fmt.Sprintf("%s: %s", fault.CodeOf(err), fault.PublicOf(err))
			}
			line, jerr := json.Marshal(v)
			if jerr != nil {
				t.Fatal(jerr)
			}
			for i := 0; ; { // how long it took
				at := bytes.Index(line[i:], []byte(`"seconds":`))
				if at < 0 {
					break
				}
				i += at + len(`"seconds":`)
				end := bytes.IndexAny(line[i:], ",}")
				line = append(line[:i:i], append([]byte("0"), line[i+end:]...)...)
			}
			b.WriteString(ids.ReplaceAllString(string(line), "#") + "\n")
		}
		search := func(user, query string) {
			say(s.Search(ctx, admin.SearchRequest{User: user, Arguments: admin.SearchArguments{Query: query, Limit: 3}}, progress))
		}
		reindex := func(r admin.ReindexRequest) { say(s.Reindex(ctx, r, progress)) }

		search("", "before anyone is here")
		for _, name := range []string{"ann", "bob"} {
			addUser(t, s, name, false)
			if name == "ann" {
				search("", "the only person's")
			}
		}
		search("", "nobody is an admin")
		search("bob", "by name")
		search("eve", "nobody")
		search("bob", "broken")
		reindex(admin.ReindexRequest{})
		reindex(admin.ReindexRequest{User: "ann"})
		reindex(admin.ReindexRequest{Space: "s_nosuch"})
		reindex(admin.ReindexRequest{User: "ann", Changed: []string{}})
		reindex(admin.ReindexRequest{User: "ann", Changed: []string{"b.md", "a.md", "b.md"}})
		reindex(admin.ReindexRequest{User: "ann", Changed: []string{"a.md", "../b.md"}})
		if _, err := s.Import(ctx, admin.ImportRequest{User: "ann", Kind: admin.KindTar}, bytes.NewReader(tarball(t, "a.md", "A")), progress); err != nil {
			t.Fatal(err)
		}
		say(s.Rank(ctx, admin.RankRequest{User: "ann", Queries: []string{"x", "y"}, Depth: 5, Paths: []space.Path{"a.md", "gone.md"}}, progress))
		if open != 0 {
			t.Errorf("%d finders were not closed", open)
		}
		for _, want := range []string{"searching", "indexing", "1 of 2 spaces: indexing", "Asked 2 of 2 queries"} {
			if !told[want] {
				t.Errorf("%q was not told: %v", want, told)
			}
		}
		transcripts = append(transcripts, b.String())
	}
	if transcripts[0] != transcripts[1] {
		t.Errorf("directly:\n%s\nover the socket:\n%s", transcripts[0], transcripts[1])
	}
	for _, want := range []string{
		"not_found: There is no user yet", `"space":"ann","user":"ann"`, "invalid: There are 2 users, and none of them is an admin.",
		`{"arguments":{"query":"by name","limit":3},`, "invalid: The argument is wrong.", "There is no space ",
		`"read":2,"absent":["a.md","b.md"]`, "has the segment", `{"rankings":[{"paths":["x.md"],"took":5},{"paths":["y.md"],"took":5}],"absent":["gone.md"]}`,
	} {
		if !strings.Contains(transcripts[0], want) {
			t.Errorf("no %s in\n%s", want, transcripts[0])
		}
	}
}

// Without an index there is a word for it, and no crash.
func TestNoFinder(t *testing.T) {
	l := newLocal(t)
	addUser(t, l, "ann", true)
	if _, err := l.Search(t.Context(), admin.SearchRequest{}, func(string) {}); fault.CodeOf(err) != fault.Unavailable {
		t.Error(err)
	}
}
