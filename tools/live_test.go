package tools_test

import (
	"context"
	"encoding/json"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"satchel/gitstore"
	"satchel/internal/service"
	"satchel/internal/space"
	"satchel/internal/testenv"
	"satchel/tools"
	"satchel/tools/index"
)

// live is a Set over a real store whose commits a real index follows.
type live struct {
	*tools.Registry
	store *gitstore.Store
	index *index.Index
	c     tools.Caller
	id    space.SpaceID
}

// relay passes commits on to a follower that is made after the store.
type relay struct{ to space.Events }

func (r *relay) Publish(e space.Event) {
	if r.to != nil {
		r.to.Publish(e)
	}
}

// The store is what the index follows, and it knows when files were changed.
var (
	_ index.Source = (*gitstore.Store)(nil)
	_ index.Dater  = (*gitstore.Store)(nil)
)

// newLive makes a space with files. The index reads it through source, where
// that is not nil, and follows it from its first commit on.
func newLive(t testing.TB, files map[string]string, source func(*gitstore.Store) index.Source, wait time.Duration) *live {
	t.Helper()
	events := &relay{}
	store, err := gitstore.Open(gitstore.Options{Dir: t.TempDir(), Events: events})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = store.Close() })
	x := openIndex(t)
	var src index.Source = store
	if source != nil {
		src = source(store)
	}
	f := x.Follow(src)
	t.Cleanup(f.Close)
	events.to = f
	id := space.NewSpaceID()
	l := &live{store: store, index: x, c: editor(in(id)), id: id}
	var cs space.ChangeSet
	for p, c := range files {
		cs.Changes = append(cs.Changes, space.Change{Path: p, Content: []byte(c)})
	}
	if _, err := store.Create(t.Context(), l.id, cs, space.Meta{Author: l.c.Author()}); err != nil {
		t.Fatal(err)
	}
	if l.Registry, err = tools.New(tools.Options{
		Service: searching(x, service.Options{Git: store, Search: service.SearchLimits{Wait: wait}}), Workspace: store, PublicURL: func() string { return "https://satchel.example" },
	}); err != nil {
		t.Fatal(err)
	}
	return l
}

// commit writes one file at a time of the author's.
func (l *live) commit(t testing.TB, p, content string, when time.Time) space.CommitID {
	t.Helper()
	b, m, _, err := l.store.Blob(t.Context(), l.id, "", space.Path(p))
	if err != nil {
		t.Fatal(err)
	}
	cs := space.ChangeSet{Changes: []space.Change{{Path: p, Content: []byte(content), Base: b, BaseMode: m}}}
	c, err := l.store.Commit(t.Context(), l.id, cs, space.Meta{Author: l.c.Author(), Time: when})
	if err != nil {
		t.Fatal(err)
	}
	return c.ID
}

// settle waits until the index is at head.
func (l *live) settle(t testing.TB) {
	t.Helper()
	head, err := l.store.Head(t.Context(), l.id)
	if err != nil {
		t.Fatal(err)
	}
	if err := l.index.Wait(t.Context(), l.id, head); err != nil {
		t.Fatal(err)
	}
}

func (l *live) search(t testing.TB, query string) []service.SearchResult {
	t.Helper()
	args, _ := json.Marshal(map[string]string{"query": query})
	r, err := l.Call(t.Context(), l.c, "search", args, nil)
	if err != nil {
		t.Fatal(err)
	}
	return resultsOf(r)
}

func (l *live) paths(t testing.TB, query string) string {
	t.Helper()
	var ps []string
	for _, p := range l.search(t, query) {
		ps = append(ps, p.Path)
	}
	if !strings.Contains(query, "sort:") {
		slices.Sort(ps)
	}
	return strings.Join(ps, " ")
}

// What a commit says of a file's age is what since:, before: and sort:recent go
// by, whether the index followed it or was made again; front matter goes before.
func TestSearchKnowsWhenFilesWereChanged(t *testing.T) {
	l := newLive(t, map[string]string{"readme.md": "start"}, nil, 0)
	day := func(y int) time.Time { return time.Date(y, 6, 1, 0, 0, 0, 0, time.UTC) }
	l.commit(t, "old.md", "lantern one", day(2021))
	l.commit(t, "mid.md", "lantern two", day(2022))
	l.commit(t, "new.md", "lantern three", day(2023))
	l.commit(t, "said.md", "---\nupdated: 2020-01-01\n---\nlantern four", day(2024))
	check := func(when string) {
		t.Helper()
		for query, want := range map[string]string{
			"lantern sort:recent":                        "new.md mid.md old.md said.md",
			"lantern since:2022-01-01":                   "mid.md new.md",
			"lantern before:2022-01-01":                  "old.md said.md",
			"lantern since:2021-07-01 before:2022-07-01": "mid.md",
		} {
			if got := l.paths(t, query); got != want {
				t.Errorf("%s, %s: %q, want %q", when, query, got, want)
			}
		}
	}
	l.settle(t)
	check("followed")
	if err := l.index.Rebuild(t.Context(), l.id, l.store); err != nil {
		t.Fatal(err)
	}
	check("rebuilt")
	l.commit(t, "old.md", "lantern one again", day(2025))
	l.settle(t)
	if got := l.paths(t, "lantern sort:recent"); got != "old.md new.md mid.md said.md" {
		t.Errorf("after a change: %s", got)
	}
}

// An imported history brings the dates at which its authors wrote.
func TestSearchKnowsTheDatesOfAnImportedHistory(t *testing.T) {
	dir := t.TempDir()
	run := func(args ...string) {
		t.Helper()
		if out, err := testenv.Git(t, dir, args...).CombinedOutput(); err != nil {
			t.Fatalf("git %v: %v\n%s", args, err, out)
		}
	}
	run("init", "-q", "-b", "main")
	for _, year := range []string{"2018", "2023"} {
		writeFile(t, filepath.Join(dir, year+".md"), "lighthouse")
		run("add", "-A")
		run("commit", "-q", "-m", year, "--date", year+"-05-05T00:00:00Z")
	}
	l := newLive(t, map[string]string{"readme.md": "start"}, nil, 0)
	src := gitstore.FromBundle(testenv.Bundle(t, dir))
	if _, err := l.store.Import(t.Context(), l.id, src, space.Meta{Author: l.c.Author()}, nil); err != nil {
		t.Fatal(err)
	}
	l.settle(t)
	pages := l.search(t, "lighthouse sort:recent")
	if len(pages) != 2 || pages[0].Date != "2023-05-05" || pages[1].Date != "2018-05-05" {
		t.Errorf("%+v", pages)
	}
	if got := l.paths(t, "lighthouse before:2020-01-01"); got != "2018.md" {
		t.Errorf("before: %s", got)
	}
}

// The id of a hit leads read and fetch to its section, also where other
// sections have the same heading.
func TestIDsLeadToTheirSection(t *testing.T) {
	var md, html strings.Builder
	for _, w := range []string{"almond", "banana", "cherry"} {
		fmt.Fprintf(&md, "## Setup\n\nThe %s.\n\n%s", w, strings.Repeat("Filler of no interest.\n", 300))
		fmt.Fprintf(&html, "<h2>Steps</h2>\n<p>An %s-shaped one.\n%s", w, strings.Repeat("<p>Filler of no interest.\n", 300))
	}
	l := newLive(t, map[string]string{"a.md": md.String(), "b.html": html.String()}, nil, 0)
	l.settle(t)
	for query, want := range map[string]string{
		"almond path:a.md": "a.md#setup", "banana path:a.md": "a.md#setup-1", "cherry path:a.md": "a.md#setup-2",
		"almond path:b.html": "b.html#steps", "cherry path:b.html": "b.html#steps-2",
	} {
		id := l.search(t, query)[0].ID
		if id != want {
			t.Errorf("%s: %s, want %s", query, id, want)
		}
		word, _, _ := strings.Cut(query, " ")
		args, _ := json.Marshal(map[string][]string{"paths": {id}})
		r, err := l.Call(t.Context(), l.c, "read", args, nil)
		if err != nil {
			t.Fatal(err)
		}
		text := textOf(r)
		for _, w := range []string{"almond", "banana", "cherry"} {
			if strings.Contains(text, w) != (w == word) {
				t.Errorf("%s, read: %s is there: %v\n%.300s", id, w, w != word, text)
			}
		}
	}
}

// uniqueWord makes a word for a number: of letters alone, for a search looks for
// the parts of a word with digits too.
func uniqueWord(n int) string {
	return "helio" + strings.Map(func(r rune) rune { return r - '0' + 'k' }, fmt.Sprintf("%05d", n)) + "q"
}

// Whoever writes a note and searches at once finds it. The wait is longer here
// than by default, for machines that are busy.
func TestSearchFindsWhatWasCommittedRightBefore(t *testing.T) {
	l := newLive(t, map[string]string{"readme.md": "start"}, nil, time.Minute)
	for i := range 20 {
		word := uniqueWord(i)
		p := fmt.Sprintf("knowledge/note-%d.md", i)
		l.commit(t, p, "# Note\n\nThe "+word+" blooms.\n", time.Time{})
		if got := l.paths(t, word); got != p {
			t.Errorf("%s: %q", word, got)
		}
	}
}

// gate is a Source whose blobs cannot be read until it is opened: an index that
// is rebuilt for as long as the test wants.
type gate struct {
	*gitstore.Store
	reached, opened chan struct{}
}

func (g *gate) ReadBlob(ctx context.Context, id space.SpaceID, b space.BlobID) ([]byte, error) {
	select {
	case g.reached <- struct{}{}:
	default:
	}
	select {
	case <-g.opened:
		return g.Store.ReadBlob(ctx, id, b)
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// A rebuild delays a search by at most SearchLimits.Wait, and not at all if it began
// earlier than that: otherwise this test would not end.
func TestSearchDoesNotWaitForARebuild(t *testing.T) {
	g := &gate{reached: make(chan struct{}, 1), opened: make(chan struct{})}
	l := newLive(t, map[string]string{"readme.md": "heliotrope"}, func(s *gitstore.Store) index.Source {
		g.Store = s
		return g
	}, 50*time.Millisecond)
	<-g.reached
	for range 3 {
		if pages := l.paths(t, "heliotrope"); pages != "" {
			t.Errorf("an index that is still being made answers %s", pages)
		}
	}
	close(g.opened)
	l.settle(t)
	if got := l.paths(t, "heliotrope"); got != "readme.md" {
		t.Errorf("%q", got)
	}
}

// BenchmarkSearchAfterCommit measures a search right after a commit, with and
// without SearchLimits.Wait: how often it finds what was committed, and how long it
// takes.
func BenchmarkSearchAfterCommit(b *testing.B) {
	files := map[string]string{}
	for i := range 2000 {
		files[fmt.Sprintf("knowledge/d%d/page-%d.md", i%20, i)] = fmt.Sprintf("# Page %d\n\n%s\n", i, strings.Repeat("some words on a line of text\n", 100))
	}
	for name, wait := range map[string]time.Duration{"without": -1, "with": 0} {
		b.Run(name, func(b *testing.B) {
			l := newLive(b, files, nil, wait)
			l.settle(b)
			var took []time.Duration
			hits, n := 0, 0
			for b.Loop() {
				n++
				word := uniqueWord(n)
				l.commit(b, fmt.Sprintf("knowledge/d%d/page-%d.md", n%20, n%2000), "# Note\n\n"+word, time.Time{})
				start := time.Now()
				pages := l.search(b, word)
				took = append(took, time.Since(start))
				hits += len(pages)
			}
			slices.Sort(took)
			b.ReportMetric(float64(hits)/float64(n), "found")
			b.ReportMetric(float64(took[n/2].Microseconds())/1000, "p50-ms")
			b.ReportMetric(float64(took[n*99/100].Microseconds())/1000, "p99-ms")
			b.ReportMetric(0, "ns/op")
		})
	}
}
