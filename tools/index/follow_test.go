package index

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
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
	r, err := x.Search(t.Context(), testCollections, Query{Text: "heliotrope", MaxWait: time.Hour})
	if err != nil || len(r.Hits) != 1 {
		t.Errorf("a search that may wait does not see the newest commit: %+v, %v", r, err)
	}
}

// After a start the index does not know how far the collection is. A search
// waits for that as for a commit, and says so where it could not.
func TestASearchAfterAStartKnowsThatItMayBeBehind(t *testing.T) {
	h := newHistory()
	h.commit(map[string][]byte{"a.md": []byte("alpha")})
	dir := t.TempDir()
	before := openIndex(t, Options{Dir: dir})
	if err := before.Update(t.Context(), testSpace, h); err != nil {
		t.Fatal(err)
	}
	if err := before.Close(); err != nil {
		t.Fatal(err)
	}
	h.commit(map[string][]byte{"b.md": []byte("zanzibar")})

	x := openIndex(t, Options{Dir: dir})
	release := make(chan struct{})
	f := x.Follow(blocked{h, release})
	defer f.Close()
	f.Refresh(testSpace)
	r := search(t, x, "zanzibar")
	if r.IndexAge <= 0 || !slices.ContainsFunc(r.Notes, func(n string) bool { return strings.Contains(n, "not in the index yet") }) {
		t.Errorf("an index that may be behind does not say so: %+v", r)
	}
	close(release)
	r, err := x.Search(t.Context(), testCollections, Query{Text: "zanzibar", MaxWait: time.Hour})
	if err != nil || len(r.Hits) != 1 || r.IndexAge != 0 {
		t.Errorf("%+v, %v", r, err)
	}
}

// A search waits for the index no longer than it may, counted from when the
// index was told of the head: one that comes later than that does not wait at
// all. Were it otherwise, this would take an hour.
func TestALateSearchDoesNotWaitForARebuild(t *testing.T) {
	x, h := indexOf(t, map[string]string{"a.md": "alpha"})
	now := time.Now()
	x.opts.Now = func() time.Time { return now }
	release := make(chan struct{})
	f := x.Follow(blocked{h, release})
	defer f.Close()
	defer close(release)
	f.Publish(space.Event{Space: testSpace, Commit: space.Commit{ID: space.CommitID(strings.Repeat("7", 40))}})
	now = now.Add(time.Hour + time.Second)
	r, err := x.Search(t.Context(), testCollections, Query{Text: "alpha", MaxWait: time.Hour})
	if err != nil || len(r.Hits) != 1 || r.IndexAge < time.Hour {
		t.Errorf("%+v, %v", r, err)
	}
}

// blocked is a Source that knows no head until it is released.
type blocked struct {
	Source
	released chan struct{}
}

func (b blocked) Head(ctx context.Context, id space.SpaceID) (space.CommitID, error) {
	<-b.released
	return b.Source.Head(ctx, id)
}

func TestFollowerTriesAgainAndSaysHowFarBehindItIs(t *testing.T) {
	x, h := indexOf(t, map[string]string{"a.md": "alpha"})
	x.opts.RetryAfter = time.Millisecond
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
	for { // until a retry has failed as well
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
