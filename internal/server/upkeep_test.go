package server

import (
	"log/slog"
	"slices"
	"testing"
	"time"

	"satchel/internal/service"
	"satchel/internal/space"
)

func TestUpkeepTidiesWhatIsIdleAndPacksWhatIsBusy(t *testing.T) {
	u := newUpkeep(nil, slog.New(slog.DiscardHandler))
	commit := func(id space.SpaceID) { u.Publish(space.Event{Space: id}) }
	awake := func() bool {
		select {
		case <-u.wake:
			return true
		default:
			return false
		}
	}
	commit("quiet")
	if !awake() {
		t.Fatal("the first commit does not set the timer")
	}
	now := time.Now()
	if w := u.work(now); len(w.idle)+len(w.busy)+len(w.cold) != 0 || w.next <= 0 || w.next > tidyAfter {
		t.Fatalf("right after a commit: %+v", w)
	}
	for range commitsBetweenLooks {
		commit("busy")
	}
	if !awake() {
		t.Fatal("many commits wake nobody")
	}
	if w := u.work(now); !slices.Equal(w.busy, []space.SpaceID{"busy"}) || len(w.idle) != 0 {
		t.Fatalf("after many commits: %+v", w)
	}
	u.touched["busy"] = now.Add(30 * time.Second)
	w := u.work(now.Add(tidyAfter))
	if !slices.Equal(w.idle, []space.SpaceID{"quiet"}) || w.next != 30*time.Second {
		t.Fatalf("when one is idle: %+v", w)
	}
	if w := u.work(now.Add(2 * tidyAfter)); !slices.Equal(w.idle, []space.SpaceID{"busy"}) || w.next != 0 {
		t.Fatalf("when all is quiet: %+v", w)
	}
	u.Publish(space.Event{Space: "new", Commit: space.Commit{Tool: service.ToolImport}})
	if w := u.work(now); !slices.Equal(w.cold, []space.SpaceID{"new"}) {
		t.Fatalf("after an import: %+v", w)
	}
}
