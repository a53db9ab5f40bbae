package index

import (
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"satchel/internal/space"
	"satchel/internal/testenv"
)

func TestFollowerKeepsUp(t *testing.T) {
	h := newHistory()
	x := openIndex(t, Options{})
	f := x.Follow(h)
	defer f.Close()
	for i := range 50 {
		c := h.commit(map[string][]byte{fmt.Sprintf("p%d.md", i): fmt.Appendf(nil, "page number%d", i)})
		f.Publish(space.Event{Space: testSpace, Commit: space.Commit{ID: c}})
	}
	if err := x.Wait(testenv.Context(t), testSpace, h.head); err != nil {
		t.Fatal(err)
	}
	if r := search(t, x, "page limit:50"); r.Total != 50 || r.IndexAge != 0 {
		t.Errorf("%d of 50, %s behind", r.Total, r.IndexAge)
	}
	c := h.commit(map[string][]byte{"late.md": []byte("heliotrope")})
	f.Publish(space.Event{Space: testSpace, Commit: space.Commit{ID: c}})
	if err := x.Await(t.Context(), testCollections, Query{Text: "heliotrope", MaxWait: time.Hour}); err != nil {
		t.Fatal(err)
	}
	if r := search(t, x, "heliotrope"); len(r.Hits) != 1 {
		t.Errorf("a search that may wait does not see the newest commit: %+v", r)
	}
}

func TestFollowerTriesAgainAndSaysHowFarBehindItIs(t *testing.T) {
	x, h := indexOf(t, map[string]string{"a.md": "alpha"})
	x.opts.retryAfter = time.Millisecond
	var mu sync.Mutex
	broken, tries := true, 0
	h.fail = func(string) error {
		mu.Lock()
		defer mu.Unlock()
		if broken {
			tries++
			return errors.New("store is away")
		}
		return nil
	}
	f := x.Follow(h)
	defer f.Close()
	c := h.commit(map[string][]byte{"b.md": []byte("beta")})
	f.Publish(space.Event{Space: testSpace, Commit: space.Commit{ID: c}})
	e, _ := x.entry(testSpace)
	for { // until a retry has failed too
		e.mu.Lock()
		news := e.news
		e.mu.Unlock()
		mu.Lock()
		n := tries
		mu.Unlock()
		if n >= 2 {
			break
		}
		<-news
	}
	if r := search(t, x, "alpha"); len(r.Hits) != 1 || r.IndexAge <= 0 || r.IndexCommit == c {
		t.Errorf("an index that is behind does not say so: %+v", r)
	}
	mu.Lock()
	broken = false
	mu.Unlock()
	for {
		s, err := x.Status(t.Context(), testSpace)
		if err != nil {
			t.Fatal(err)
		}
		if s.Commit == c {
			break
		}
		_ = x.Wait(t.Context(), testSpace, c)
	}
}
