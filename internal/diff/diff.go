package diff

import (
	"cmp"
	"slices"
)

// Kind is the kind of a run.
type Kind byte

// The kinds.
const (
	Same    Kind = ' '
	Added   Kind = '+'
	Removed Kind = '-'
)

// Run is a run of consecutive elements of the same kind.
type Run struct {
	Kind Kind
	N    int
}

// maxEdits limits the edits of the smallest difference. The memory of the search grows with
// the square of the edits, to at most 4 MB.
const maxEdits = 1000

// Diff returns the runs that turn one sequence into another. If elements are removed and added
// in one place, the removed elements come first. Diff subtracts one from work for each
// comparison of its search. If work is used up, or the difference has more than maxEdits edits,
// the result is correct, but may not be the smallest difference, and exact is false. Without the
// search and the sorting of elements that occur once in each sequence, Diff takes linear time.
func Diff[T comparable](from, to []T, work *int) (runs []Run, exact bool) {
	var b builder
	first, last := ends(from, to)
	x, y := from[first:len(from)-last], to[first:len(to)-last]
	b.same(first)
	exact = smallest(&b, x, y, work)
	if !exact {
		anchored(&b, x, y)
	}
	b.same(last)
	b.flush()
	return b.runs, exact
}

// ends counts the equal elements at the start of two sequences, and then those at the end.
func ends[T comparable](x, y []T) (first, last int) {
	for first < len(x) && first < len(y) && x[first] == y[first] {
		first++
	}
	for last < len(x)-first && last < len(y)-first && x[len(x)-1-last] == y[len(y)-1-last] {
		last++
	}
	return first, last
}

// builder joins edits of the same kind into runs.
type builder struct {
	runs           []Run
	removed, added int
}

func (b *builder) flush() {
	if b.removed > 0 {
		b.runs = append(b.runs, Run{Removed, b.removed})
	}
	if b.added > 0 {
		b.runs = append(b.runs, Run{Added, b.added})
	}
	b.removed, b.added = 0, 0
}

func (b *builder) same(n int) {
	if n == 0 {
		return
	}
	b.flush()
	if k := len(b.runs) - 1; k >= 0 && b.runs[k].Kind == Same {
		b.runs[k].N += n
		return
	}
	b.runs = append(b.runs, Run{Same, n})
}

// smallest is the greedy algorithm of Myers, "An O(ND) Difference Algorithm and
// Its Variations" (1986). If it gives up, it returns false and writes nothing to b.
func smallest[T comparable](b *builder, x, y []T, work *int) bool {
	if len(x) == 0 || len(y) == 0 {
		b.removed, b.added = b.removed+len(x), b.added+len(y)
		return true
	}
	// On the diagonal k, the index in x minus the index in y is k. at[d][k+d] is the farthest
	// index in x that d edits reach there.
	var at [][]int32
	reach := func(d, k int) int {
		if d < 0 || k < -d || k > d {
			return -1
		}
		return int(at[d][k+d])
	}
	// step returns the index in x after the last of d edits on the diagonal k, and the kind
	// of that edit.
	step := func(d, k int) (i int, kind Kind) {
		if d == 0 {
			return 0, Same
		}
		down, right := reach(d-1, k+1), reach(d-1, k-1)
		if k == -d || k != d && right < down {
			return down, Added
		}
		return right + 1, Removed
	}
	for d := 0; d <= maxEdits; d++ {
		row := make([]int32, 2*d+1)
		for k := -d; k <= d; k += 2 {
			i, _ := step(d, k)
			for *work--; i >= 0 && i < len(x) && i-k >= 0 && i-k < len(y) && x[i] == y[i-k]; i++ {
				*work--
			}
			if row[k+d] = int32(i); i >= len(x) && i-k >= len(y) { //nolint:gosec // an index of what is in memory
				at = append(at, row)
				trace(b, step, reach, len(x), len(y), d)
				return true
			}
			if *work < 0 {
				return false
			}
		}
		at = append(at, row)
	}
	return false
}

// trace follows the search back from its end, and writes its edits to b.
func trace(b *builder, step func(d, k int) (int, Kind), reach func(d, k int) int, i, j, d int) {
	var back []Run
	for ; d >= 0; d-- {
		k := i - j
		from, kind := step(d, k)
		back = append(back, Run{Same, reach(d, k) - from})
		switch kind {
		case Added:
			i, j = from, from-k-1
		case Removed:
			i, j = from-1, from-k
		}
		if kind != Same {
			back = append(back, Run{kind, 1})
		}
	}
	for _, r := range slices.Backward(back) {
		switch r.Kind {
		case Same:
			b.same(r.N)
		case Added:
			b.added++
		case Removed:
			b.removed++
		}
	}
}

// anchored finds a difference in nearly linear time. It keeps elements that occur once in each
// sequence, if their order is the same, and the equal elements next to them.
func anchored[T comparable](b *builder, x, y []T) {
	i, j := 0, 0
	gap := func(toI, toJ int) {
		u, v := x[i:toI], y[j:toJ]
		first, last := ends(u, v)
		b.same(first)
		b.removed, b.added = b.removed+len(u)-first-last, b.added+len(v)-first-last
		b.same(last)
	}
	for _, p := range rising(once(x, y)) {
		gap(p.x, p.y)
		b.same(1)
		i, j = p.x+1, p.y+1
	}
	gap(len(x), len(y))
}

type pair struct{ x, y int }

// once returns the positions of the elements that x and y each have exactly once, in the
// order of x.
func once[T comparable](x, y []T) []pair {
	type seen struct{ inX, inY, y int }
	all := make(map[T]seen, len(x))
	for _, e := range x {
		s := all[e]
		s.inX++
		all[e] = s
	}
	for j, e := range y {
		if s, ok := all[e]; ok {
			s.inY, s.y = s.inY+1, j
			all[e] = s
		}
	}
	var out []pair
	for i, e := range x {
		if s := all[e]; s.inX == 1 && s.inY == 1 {
			out = append(out, pair{i, s.y})
		}
	}
	return out
}

// rising returns the longest subsequence of pairs in which y only grows.
func rising(all []pair) []pair {
	var tops []int // for each length, the index of the last pair of the best subsequence
	before := make([]int, len(all))
	for n, p := range all {
		at, _ := slices.BinarySearchFunc(tops, p.y, func(t, y int) int { return cmp.Compare(all[t].y, y) })
		before[n] = -1
		if at > 0 {
			before[n] = tops[at-1]
		}
		if at == len(tops) {
			tops = append(tops, n)
		} else {
			tops[at] = n
		}
	}
	if len(tops) == 0 {
		return nil
	}
	out := make([]pair, len(tops))
	for k, n := len(tops)-1, tops[len(tops)-1]; k >= 0; k, n = k-1, before[n] {
		out[k] = all[n]
	}
	return out
}
