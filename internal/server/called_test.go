package server

import (
	"fmt"
	"testing"
	"time"

	"satchel/internal/space"
)

// What clients call themselves is known by their grants, the last one first.
func TestCalled(t *testing.T) {
	now := time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)
	c := newCalled(func() time.Time { now = now.Add(time.Second); return now })
	c.note("g_a", "cursor/1")
	c.note("g_a", "claude-ai/2")
	c.note("g_a", "")
	c.note("", "nobody")
	if got := c.of("g_a"); len(got) != 2 || got[0].Name != "claude-ai/2" || got[1].Name != "cursor/1" || !got[0].At.After(got[1].At) {
		t.Errorf("%v", got)
	}
	if got := c.of("g_b"); got != nil {
		t.Errorf("another: %v", got)
	}
}

// Attack: clients that call themselves by a new name each time, and grants without
// end, fill no memory; the last ones stay.
func TestAttackCalledByManyNames(t *testing.T) {
	now := time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)
	c := newCalled(func() time.Time { now = now.Add(time.Millisecond); return now })
	for i := range 100 {
		c.note("g_a", fmt.Sprint("name ", i))
	}
	if got := c.of("g_a"); len(got) != maxCalledAs || got[0].Name != "name 99" {
		t.Errorf("%d names, the last is %v", len(got), got[0])
	}
	for i := range maxCalled + 10 {
		id := space.GrantID(fmt.Sprint("g_", i))
		c.note(id, "x")
		if c.of(id) == nil {
			t.Fatal("the last one is not known")
		}
	}
	if c.by.Len() > maxCalled {
		t.Errorf("%d grants", c.by.Len())
	}
}
