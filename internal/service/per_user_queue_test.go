package service

import (
	"context"
	"slices"
	"testing"
	"testing/synctest"

	"satchel/internal/fault"
	"satchel/internal/space"
)

// The searches of a user wait only for each other, in order. Too many are refused. A
// canceled search frees its place.
func TestPerUserQueue(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := newPerUserQueue(2, 3, "Wait.")
		var began []string
		end := map[string]chan struct{}{}
		take := func(ctx context.Context, user space.UserID, name string) <-chan error {
			done := make(chan error, 1)
			let := make(chan struct{})
			end[name] = let
			go func() {
				leave, err := q.take(ctx, user)
				if err == nil {
					began = append(began, name)
					<-let
					leave()
				}
				done <- err
			}()
			synctest.Wait()
			return done
		}
		want := func(names ...string) {
			t.Helper()
			synctest.Wait()
			if !slices.Equal(began, names) {
				t.Errorf("began %q, want %q", began, names)
			}
		}
		take(t.Context(), "ann", "one")
		take(t.Context(), "ann", "two")
		gone, leave := context.WithCancel(t.Context())
		third := take(gone, "ann", "three")
		take(t.Context(), "ann", "four")
		take(t.Context(), "ann", "five")
		want("one", "two")
		if err := <-take(t.Context(), "ann", "six"); fault.CodeOf(err) != fault.Limited {
			t.Errorf("too many: %v", err)
		}
		take(t.Context(), "ben", "ben's")
		want("one", "two", "ben's")
		leave()
		if err := <-third; err == nil {
			t.Error("a search whose caller went began")
		}
		take(t.Context(), "ann", "seven") // in the freed place
		close(end["two"])
		want("one", "two", "ben's", "four")
		close(end["four"])
		want("one", "two", "ben's", "four", "five")
		for _, name := range []string{"one", "ben's", "five"} {
			close(end[name])
		}
		want("one", "two", "ben's", "four", "five", "seven")
		close(end["seven"])
		synctest.Wait()
		if len(q.users) != 0 {
			t.Errorf("%d users are remembered", len(q.users))
		}
	})
}
