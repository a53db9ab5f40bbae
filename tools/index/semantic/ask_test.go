package semantic_test

import (
	"errors"
	"net/http"
	"sync/atomic"
	"testing"
	"time"

	"satchel/internal/testenv"
	"satchel/tools/index/semantic"
)

func TestAQueryIsRemembered(t *testing.T) {
	f := newFixture(t)
	e := f.open()
	for range 3 {
		if _, err := e.Ask(f.id, "deploy checklist").Wait(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	if n := f.server.Requests(); n != 1 {
		t.Errorf("%d requests", n)
	}
}

// TestALateVectorIsTheNextOnes has a slow model. The search continues without the vector, and
// the next search with the same query uses it.
func TestALateVectorIsTheNextOnes(t *testing.T) {
	f := newFixture(t)
	f.o.QueryWait = time.Millisecond
	e := f.open()
	f.server.Hold()
	if _, err := e.Ask(f.id, "slow").Wait(t.Context()); !errors.Is(err, semantic.ErrSlow) {
		t.Fatalf("got %v", err)
	}
	f.server.Release()
	testenv.WaitFor(t, "the vector", func() bool {
		_, err := e.Ask(f.id, "slow").Wait(t.Context())
		return err == nil
	})
	if n := f.server.Requests(); n != 1 {
		t.Errorf("%d requests", n)
	}
}

// TestADeadModelIsLeftAlone counts the requests to a failing model during a rest, and then
// makes the model work again.
func TestADeadModelIsLeftAlone(t *testing.T) {
	f := newFixture(t)
	var now atomic.Int64
	f.o.Now = func() time.Time { return time.Unix(1_000_000+now.Load(), 0) }
	f.o.BreakAfter, f.o.BreakFor = 2, 10*time.Second
	f.server.Break(func(w http.ResponseWriter, _ *http.Request, _ []string) bool { w.WriteHeader(503); return true })
	e := f.open()
	ask := func(text string) error {
		_, err := e.Ask(f.id, text).Wait(t.Context())
		return err
	}
	for _, text := range []string{"a", "b"} {
		if err := ask(text); err == nil || errors.Is(err, semantic.ErrResting) {
			t.Fatalf("got %v", err)
		}
	}
	for range 5 {
		if err := ask("c"); !errors.Is(err, semantic.ErrResting) {
			t.Fatalf("got %v", err)
		}
	}
	if n := f.server.Requests(); n != 2 {
		t.Errorf("%d requests reached a dead model", n)
	}
	now.Add(11)
	if err := ask("d"); err == nil || errors.Is(err, semantic.ErrResting) {
		t.Fatalf("after the rest one asks: %v", err)
	}
	now.Add(11) // the second rest is twice as long
	if err := ask("e"); !errors.Is(err, semantic.ErrResting) {
		t.Fatalf("got %v", err)
	}
	f.server.Break(nil)
	now.Add(10)
	if err := ask("f"); err != nil {
		t.Fatalf("alive again: %v", err)
	}
	if err := ask("g"); err != nil {
		t.Fatal(err)
	}
}

func TestTooManyQueriesGoOnWithout(t *testing.T) {
	f := newFixture(t)
	f.o.MaxAsking = 1
	e := f.open()
	f.server.Hold()
	first := e.Ask(f.id, "one")
	if _, err := e.Ask(f.id, "two").Wait(t.Context()); !errors.Is(err, semantic.ErrBusy) {
		t.Errorf("got %v", err)
	}
	same := e.Ask(f.id, "one")
	f.server.Release()
	for _, a := range []*semantic.Answer{first, same} {
		if v, err := a.Wait(t.Context()); err != nil || v == nil {
			t.Errorf("%v, %v", v, err)
		}
	}
}

// TestOffCostsNothing uses a nil Engine, which is switched off.
func TestOffCostsNothing(t *testing.T) {
	var e *semantic.Engine
	if n := testing.AllocsPerRun(100, func() {
		e.Changed("space")
		if v := e.View("space"); v != nil {
			t.Error("a view of nothing")
		}
		if a := e.Ask(semantic.Identity{}, "q"); a != nil {
			t.Error("an answer of nothing")
		}
		_ = e.Drop(t.Context(), "space")
		_ = e.Close()
	}); n > 0 {
		t.Errorf("%v allocations", n)
	}
}
