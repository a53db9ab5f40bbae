package web_test

import (
	"context"
	"fmt"
	"net/http"
	"sync"
	"testing"
	"time"

	"satchel/internal/space"
	"satchel/internal/testenv"
	"satchel/web"
)

// slowReviews are the reviews of a server that has just started: nothing is known, and
// finding out takes as long as the caller allows.
type slowReviews struct {
	web.Reviews
	mu    sync.Mutex
	until map[time.Time]int // how many spaces were to be looked at by then; zero: no end
}

func (s *slowReviews) Waiting(ctx context.Context, _ space.SpaceID) ([]space.Review, bool, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	end, _ := ctx.Deadline()
	s.until[end]++
	if !end.IsZero() {
		<-ctx.Done()
	}
	return make([]space.Review, 3), true, nil
}

// A page about many spaces spends one short time on what waits in all of them, and shows
// what is known of each.
func TestManySpacesHoldUpNoPage(t *testing.T) {
	slow := &slowReviews{}
	a := newActive(t, web.LiveOptions{}, func(o *web.Options) { o.Reviews, o.WaitingTime = slow, web.DefaultWaitingTime })
	for i := range 6 {
		a.newSpace(a.ada, fmt.Sprintf("garden%d", i))
	}
	b := a.as(a.ada)
	for _, page := range []string{"/", "/spaces"} {
		slow.until = map[time.Time]int{}
		got := b.get(page)
		want(t, page, got, http.StatusOK)
		looks := 0
		for end, n := range slow.until {
			if end.IsZero() && n > 1 { // the space of the menu has no end of its own
				t.Errorf("%s looks at %d spaces without an end", page, n)
			}
			if !end.IsZero() {
				looks++
			}
		}
		if looks != 1 {
			t.Errorf("%s takes %d times for its spaces: %v", page, looks, slow.until)
		}
	}
}

// stuckPatches blocks comparisons of one space until it is released.
type stuckPatches struct {
	web.History
	of    space.SpaceID
	begun chan struct{}
	gone  chan struct{}
}

func (s *stuckPatches) FilePatch(ctx context.Context, id space.SpaceID, f space.FileChange) (string, error) {
	if id == s.of {
		s.begun <- struct{}{}
		<-s.gone
	}
	return s.History.FilePatch(ctx, id, f)
}

// Attack: a comparison that takes long keeps others from seeing what waits for them.
func TestAttackALongComparisonHoldsUpNoOtherSpace(t *testing.T) {
	stuck := &stuckPatches{begun: make(chan struct{}), gone: make(chan struct{})}
	a := newActive(t, web.LiveOptions{}, func(o *web.Options) { stuck.History, o.History = o.History, stuck })
	stuck.of = a.space.ID
	other := a.garden()
	for _, id := range []space.SpaceID{a.space.ID, other.ID} {
		b, mode, _, err := a.git.Blob(t.Context(), id, "", "skills/a/SKILL.md")
		must(t, err)
		cs := space.ChangeSet{Changes: []space.Change{{Path: "skills/a/SKILL.md", Content: []byte("EVIL\n"), Base: b, BaseMode: mode}}}
		_, err = a.git.Commit(t.Context(), id, cs, space.Meta{Tool: "bash", Client: "claude-code", Time: a.clock()})
		must(t, err)
	}
	slow, done := a.as(a.ada), make(chan answer, 1)
	go func() { done <- slow.get(a.in("reviews")) }()
	<-stuck.begun
	fine := make(chan answer, 1)
	bob := a.as(a.bob)
	go func() { fine <- bob.get("/spaces/" + string(other.ID) + "/reviews") }()
	release := sync.OnceFunc(func() { close(stuck.gone) })
	t.Cleanup(release)
	shows(t, testenv.Receive(t, "the page of another space", fine), http.StatusOK, "EVIL")
	release()
	want(t, "the slow page", <-done, http.StatusOK)
}
