package web_test

import (
	"context"
	"fmt"
	"net/http"
	"testing"
	"time"

	"satchel/gitstore"
	"satchel/gitstore/reviews"
	"satchel/internal/service/servicetest"
	"satchel/internal/space"
	"satchel/web"
)

// stuckHistory cannot be read for reviews until it is released.
type stuckHistory struct {
	reviews.Git
	release chan struct{}
}

func (s stuckHistory) CommitsBetween(ctx context.Context, id space.SpaceID, from, to space.CommitID, under []space.Path) ([]gitstore.CommitBetween, int, bool, error) {
	select {
	case <-s.release:
	case <-ctx.Done():
	}
	return s.Git.CommitsBetween(ctx, id, from, to, under)
}

// stuckReviews makes reviews that know nothing yet, and for which a page waits as long as
// it allows.
func stuckReviews(t *testing.T, patience time.Duration) servicetest.Setup {
	release := make(chan struct{})
	t.Cleanup(func() { close(release) })
	return servicetest.Setup{Reviews: func(o *reviews.Options) { o.Git, o.Patience = stuckHistory{o.Git, release}, patience }}
}

// A page about many spaces does not wait until it is known what waits for review in them.
func TestManySpacesHoldUpNoPage(t *testing.T) {
	a := newActiveOf(t, stuckReviews(t, 1000*time.Hour), web.LiveOptions{}, func(o *web.Options) { o.WaitingTime = web.DefaultWaitingTime })
	for i := range 6 {
		a.newSpace(a.ada, fmt.Sprintf("garden%d", i))
	}
	b := a.as(a.ada)
	for _, page := range []string{"/", "/spaces", "/account"} {
		want(t, page, b.get(page), http.StatusOK)
	}
}
