package procmem

import "testing"

// The few allocations of an idle process do not count as work. idles reports each period of
// work once: the start and later periods after their own counts of idle checks, and a
// collection at once.
func TestIdle(t *testing.T) {
	const bytes = 64 << 10
	w := watch{Idle: Idle{Bytes: bytes, Start: 1, Checks: 2}}
	var total work
	for i, c := range []struct {
		work
		want bool
	}{
		{work{allocated: 4 << 20}, false}, // the start
		{work{allocated: 1000}, true},
		{work{allocated: 1000}, false},
		{work{allocated: bytes}, false},
		{work{allocated: bytes + 1}, false}, // a command
		{work{}, false},
		{work{allocated: 8 << 20, collections: 2}, false}, // another
		{work{allocated: 100}, false},
		{work{}, true},
		{work{}, false},
		{work{allocated: 1000, collections: 1}, true},
		{work{}, false},
	} {
		total.allocated += c.allocated
		total.collections += c.collections
		if got := w.idles(total); got != c.want {
			t.Errorf("check %d: %v", i, got)
		}
	}
}
