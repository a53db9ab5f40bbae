package agent

import (
	"slices"
	"strings"
)

// walkState is the progress of a walk over the upper layer.
type walkState struct {
	from string          // the path to continue with; empty at the start
	seen map[string]bool // acknowledged paths that are still there
	gone []string        // deleted paths still to report; nil during the walk
}

// cutWalk is a walk that stopped at the limits of a batch. It can continue when the batch is
// acknowledged: the host then knows the paths before the stop. The host may have rejected some of
// them. The next walk from the start visits these again.
type cutWalk struct {
	walkState
	batch uint64
	acked bool
}

// goOn returns the walk that stopped with the batch number after, if the host acknowledged that
// batch, or else a new walk. A walk cannot continue after an application, or after an
// acknowledgement of another batch.
func (v *spaceView) goOn(after uint64) walkState {
	cut := v.cut
	v.cut = nil
	if cut != nil && cut.acked && cut.batch == after {
		return cut.walkState
	}
	return walkState{seen: make(map[string]bool)}
}

// ackCut records that a batch with these paths is acknowledged.
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

// reportedOf returns how many of a directory's sorted names a continued walk has already
// visited.
func (w *walkState) reportedOf(prefix string, names []string) int {
	rest, ok := strings.CutPrefix(w.from, prefix)
	if !ok {
		return 0
	}
	next, _, _ := strings.Cut(rest, "/")
	n, _ := slices.BinarySearch(names, next)
	return n
}
