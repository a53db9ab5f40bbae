package procmem

import "testing"

// What an idle process allocates is no work, and each period of work ends once: the start
// at the first idle check, later work after as many as asked for.
func TestIdle(t *testing.T) {
	const bytes = 64 << 10
	w := watch{Idle: Idle{Bytes: bytes, Checks: 2}}
	total := uint64(0)
	for i, c := range []struct {
		allocates uint64
		want      bool
	}{
		{4 << 20, false}, // the start
		{1000, true},
		{1000, false},
		{bytes, false},
		{bytes + 1, false}, // a command
		{0, false},
		{8 << 20, false}, // another
		{100, false},
		{0, true},
		{0, false},
	} {
		total += c.allocates
		if got := w.idles(total); got != c.want {
			t.Errorf("check %d: %v", i, got)
		}
	}
}
