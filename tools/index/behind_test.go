package index

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"satchel/internal/space"
)

// gated is a Source whose blobs cannot be read until it is opened.
type gated struct {
	Source
	reached, opened chan struct{}
}

func newGated(src Source) *gated {
	return &gated{src, make(chan struct{}, 1), make(chan struct{})}
}

func (g *gated) ReadBlob(ctx context.Context, id space.SpaceID, b space.BlobID) ([]byte, error) {
	select {
	case g.reached <- struct{}{}:
	default:
	}
	select {
	case <-g.opened:
		return g.Source.ReadBlob(ctx, id, b)
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// saysItIsBehind fails unless the only note of an answer says how many pages the index
// lacks, and the answer suggests no words.
func saysItIsBehind(t *testing.T, r Results, pages string) {
	t.Helper()
	if r.IndexAge <= 0 || len(r.Notes) != 1 || !strings.Contains(r.Notes[0], pages) || len(r.Suggestions) > 0 {
		t.Errorf("want one note that has %q: %q, suggestions %q, age %s", pages, r.Notes, r.Suggestions, r.IndexAge)
	}
}

func isUpToDate(t *testing.T, r Results) {
	t.Helper()
	if r.IndexAge != 0 || len(r.Hits) != 1 || len(r.Notes) != 0 {
		t.Errorf("%d hits, %q, age %s", len(r.Hits), r.Notes, r.IndexAge)
	}
}

// An index that is behind says how many pages it lacks. It does not claim that no page
// has a word, and it suggests no other word.
func TestAnIndexThatIsBehindSaysHowFarAndClaimsNothing(t *testing.T) {
	files := map[string]string{"a.md": "configuration of alpha", "b.md": "beta", "c.md": "gamma"}
	for _, c := range []struct {
		name   string
		before func(t *testing.T, h *history, dir string) // prepares the state in which the follower starts
		pages  string
		cold   bool // no search is possible until the index is built
	}{
		{"of four changed pages", func(t *testing.T, h *history, dir string) {
			indexInto(t, h, dir)
			h.commit(toBytes(map[string]string{"a.md": "alpha", "b.md": "", "d.md": "zanzibar confguration", "e.md": "epsilon"}))
		}, "4 pages", false},
		{"of one page", func(t *testing.T, h *history, dir string) {
			indexInto(t, h, dir)
			h.commit(toBytes(map[string]string{"d.md": "zanzibar confguration"}))
		}, "1 page ", false},
		{"not made yet", func(_ *testing.T, h *history, _ string) {
			h.commit(toBytes(map[string]string{"d.md": "zanzibar confguration"}))
		}, "4 pages", true},
		{"of another format", func(t *testing.T, h *history, dir string) {
			h.commit(toBytes(map[string]string{"d.md": "zanzibar confguration"}))
			indexInto(t, h, dir)
			execSQL(t, dbFiles(t, dir)[0], `UPDATE meta SET value = 'old' WHERE key = 'schema'`)
		}, "4 pages", true},
	} {
		t.Run(c.name, func(t *testing.T) {
			h, dir := newHistory(), t.TempDir()
			h.commit(toBytes(files))
			c.before(t, h, dir)
			g := newGated(h)
			x := openIndex(t, Options{Dir: dir})
			f := x.Follow(g)
			defer f.Close()
			f.Refresh(testSpace)
			<-g.reached
			for _, query := range []string{"zanzibar", "confguration", "zanzibar kind:memory", `"zanzibar confguration"`, "path:nowhere/**"} {
				r := search(t, x, query)
				saysItIsBehind(t, r, c.pages)
				if (r.Indexes[0].Commit == "") != c.cold {
					t.Errorf("it answers from %q", r.Indexes[0].Commit)
				}
			}
			close(g.opened)
			q := Query{Text: "zanzibar", MaxWait: time.Hour}
			if err := x.Await(t.Context(), testCollections, q); err != nil {
				t.Fatal(err)
			}
			isUpToDate(t, search(t, x, "zanzibar"))
		})
	}
}

func indexInto(t *testing.T, h *history, dir string) {
	t.Helper()
	x, err := Open(Options{Dir: dir})
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(x.Update(t.Context(), testSpace, h), x.Close()); err != nil {
		t.Fatal(err)
	}
}

// A search compares with the store's current head, even if the index does not know it
// yet.
func TestTheHeadIsTheStores(t *testing.T) {
	h := newHistory()
	h.commit(toBytes(map[string]string{"a.md": "alpha"}))
	x := openIndex(t, Options{})
	f := x.Follow(h)
	defer f.Close()
	f.Refresh(testSpace)
	if err := x.Wait(t.Context(), testSpace, h.head); err != nil {
		t.Fatal(err)
	}
	h.commit(toBytes(map[string]string{"b.md": "zanzibar"}))
	saysItIsBehind(t, search(t, x, "zanzibar"), "1 page ")
	f.Refresh(testSpace)
	if err := x.Await(t.Context(), testCollections, Query{MaxWait: time.Hour}); err != nil {
		t.Fatal(err)
	}
	isUpToDate(t, search(t, x, "zanzibar"))
	// A commit that changes no page does not put the index behind.
	h.commit(toBytes(map[string]string{"b.md": "zanzibar"}))
	isUpToDate(t, search(t, x, "zanzibar"))
}

// A search waits only for the collections that it reads, and its notes mention no others.
func TestOnlyACollectionThatIsSearchedCounts(t *testing.T) {
	h, library := newHistory(), newHistory()
	h.commit(toBytes(map[string]string{"a.md": "alpha"}))
	library.commit(toBytes(map[string]string{"b.md": "zanzibar", "c.md": "zeta"}))
	cols := append(slices.Clone(testCollections), Collection{ID: "c_docs", Label: "docs", Mount: "/library/docs/docs"})
	x := openIndex(t, Options{})
	f := x.Follow(h)
	defer f.Close()
	f.Refresh(testSpace)
	g := newGated(library)
	shared := x.Follow(g)
	defer shared.Close()
	shared.Refresh("c_docs")
	<-g.reached
	all := Query{Text: "zanzibar", MaxWait: time.Hour}
	one := Query{Text: "zanzibar source:space", MaxWait: time.Hour}
	if err := x.Await(t.Context(), cols, one); err != nil {
		t.Fatal(err)
	}
	r, err := x.Search(t.Context(), cols, one)
	if err != nil || r.IndexAge != 0 || len(r.Notes) == 0 {
		t.Errorf("of the space alone: %+v, %v", r, err)
	}
	if r, err = x.Search(t.Context(), cols, all); err != nil {
		t.Fatal(err)
	}
	saysItIsBehind(t, r, "2 pages")
	close(g.opened)
	if err := x.Await(t.Context(), cols, all); err != nil {
		t.Fatal(err)
	}
	if r, err = x.Search(t.Context(), cols, all); err != nil {
		t.Fatal(err)
	}
	isUpToDate(t, r)
}

// A wait ends at its limit, which counts from when the index fell behind, or when the
// caller cancels it. Later searches do not wait at all.
func TestAWaitForTheIndexEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHistory()
		h.commit(toBytes(map[string]string{"a.md": "alpha"}))
		g := newGated(h)
		x, err := Open(Options{Dir: t.TempDir()})
		if err != nil {
			t.Fatal(err)
		}
		f := x.Follow(g)
		f.Refresh(testSpace)
		q := Query{Text: "zanzibar", MaxWait: 2 * time.Second}
		gone, leave := context.WithCancel(t.Context())
		left := make(chan error, 1)
		go func() { left <- x.Await(gone, testCollections, q) }()
		synctest.Wait()
		leave()
		if err := <-left; !errors.Is(err, context.Canceled) {
			t.Errorf("after its caller went: %v", err)
		}
		began := time.Now()
		for i, want := range []time.Duration{2 * time.Second, 0} {
			from := time.Now()
			if err := x.Await(t.Context(), testCollections, q); err != nil {
				t.Error(err)
			}
			if took := time.Since(from); took != want {
				t.Errorf("search %d waited %s", i, took)
			}
			r := search(t, x, "zanzibar")
			saysItIsBehind(t, r, "1 page")
			if r.IndexAge != time.Since(began)+leastAge {
				t.Errorf("it is behind for %s, and says %s", time.Since(began), r.IndexAge)
			}
		}
		f.Close()
		if err := x.Close(); err != nil {
			t.Error(err)
		}
	})
}

// A commit that changes no page does not put the index behind. The lag begins with the
// first commit that changes one.
func TestALagBeginsWithTheFirstPageThatIsMissing(t *testing.T) {
	x, h := indexOf(t, map[string]string{"a.md": "alpha"})
	now := time.Now()
	x.opts.Now = func() time.Time { return now }
	e, err := x.entry(testSpace)
	if err != nil {
		t.Fatal(err)
	}
	at := h.head
	e.follower = &Follower{index: x, src: h} // it never updates
	e.noteHead(h.commit(map[string][]byte{"a.md": []byte("alpha")}), now)
	if age, _, err := x.lag(t.Context(), e, at, true); age != 0 || err != nil {
		t.Errorf("behind for %s by no page, %v", age, err)
	}
	now = now.Add(time.Hour)
	e.noteHead(h.commit(map[string][]byte{"b.md": []byte("beta")}), now)
	if age, pages, err := x.lag(t.Context(), e, at, true); age != leastAge || pages != 1 || err != nil {
		t.Errorf("behind for %s by %d pages, %v", age, pages, err)
	}
}
