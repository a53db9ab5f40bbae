package agent

import (
	"slices"
	"strings"
)

// walkState is how far a walk over the upper layer has come.
type walkState struct {
	from string          // the path that it goes on with; empty: it begins
	seen map[string]bool // acknowledged paths that are still there
	gone []string        // what is to be told as deleted still; nil while it walks
}

// cutWalk is a walk that the limits of a batch ended. It may go on when the
// batch is acknowledged: what it has passed is then known to the host, or was
// refused, and is looked at again by the next walk.
type cutWalk struct {
	walkState
	batch uint64
	acked bool
}

// goOn returns the walk that a batch ended, or a new one where there is none:
// after an application, or an acknowledgement of another batch, a walk no more
// knows what it has passed.
func (v *spaceView) goOn(after uint64) walkState {
	cut := v.cut
	v.cut = nil
	if cut != nil && cut.acked && cut.batch == after {
		return cut.walkState
	}
	return walkState{seen: make(map[string]bool)}
}

// ackCut notes that a batch with these paths is acknowledged.
func (v *spaceView) ackCut(batch uint64, reported map[string]*stamp) {
	if v.cut == nil {
		return
	}
	if v.cut.batch != batch {
		v.cut = nil
		return
	}
	v.cut.acked = true
	for p := range reported {
		v.cut.seen[p] = true
	}
}

// reportedOf returns how many of a directory's names, which are sorted, a walk that
// goes on has passed already.
func (w *walkState) reportedOf(prefix string, names []string) int {
	rest, ok := strings.CutPrefix(w.from, prefix)
	if !ok {
		return 0
	}
	next, _, _ := strings.Cut(rest, "/")
	n, _ := slices.BinarySearch(names, next)
	return n
}
