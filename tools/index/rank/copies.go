package rank

import (
	"cmp"
	"context"
	"math/bits"
	"slices"
	"strings"

	"satchel/tools/index/parse"
	"satchel/tools/index/query"
)

// Limits for copies: texts that have nearly the same words.
const (
	// copyShare is the least share of all words of two texts that copies have in common.
	copyShare = 0.9
	// copyWords is how many different words a text needs to count as a copy within its
	// collection. A shorter text costs little to show. The same file in two collections is one
	// page, even if it is short.
	copyWords = 12
	// copyScore and copyLines limit how much the scores and lengths of copies may differ.
	copyScore = 0.9
	copyLines = 0.9
	// copyBytes is how many bytes of a text are compared.
	copyBytes = 64 << 10
)

// collapse removes copies among the first documents. Of several copies, it keeps the first one or
// the newest version. If several collections have the same file, it keeps the file of the
// collection that is first in Request.Sources. In an order other than relevance, it removes only
// copies of the same file. It reads as many documents as an answer of limit hits needs.
func (u *Run) collapse(ctx context.Context, all []*Candidate) ([]*Candidate, error) {
	q, limit := u.Parsed, u.limit
	if len(all) < 2 {
		return all, nil
	}
	if err := loadPassages(ctx, all[:min(len(all), limit)]); err != nil {
		return nil, err
	}
	words := map[*Candidate]*bag{}
	kept := make([]*Candidate, 0, limit)
	for i, f := range all {
		if len(kept) == limit {
			return append(kept, all[i:]...), nil
		}
		if err := f.Load(ctx); err != nil {
			return nil, f.Source.Failed(err)
		}
		at := -1
		for j, k := range kept {
			same, err := copies(ctx, k, f, words, q)
			if err != nil {
				return nil, f.Source.Failed(err)
			}
			if same {
				at = j
				break
			}
		}
		switch {
		case at < 0:
			kept = append(kept, f)
		case u.replaces(f, kept[at]) && kept[at].Doc.Lang == f.Doc.Lang,
			f.Doc.Blob == kept[at].Doc.Blob && f.Source.order < kept[at].Source.order && !u.replaces(kept[at], f):
			f.rescore("The page represents its copies, and has the score of the best one.", kept[at].Score)
			f.takeIn(kept[at], string(kept[at].Doc.Path))
			if q.Sort == query.ByRelevance {
				kept[at] = f
			} else { // f keeps its own place in the order
				kept = append(slices.Delete(kept, at, at+1), f)
			}
		default:
			kept[at].takeIn(f, string(f.Doc.Path))
		}
	}
	return kept, nil
}

// replaces reports whether a document is of a newer version than its copy, and may replace it. A
// page of a source that the query names is replaced only by a page of another such source.
func (u *Run) replaces(f, kept *Candidate) bool {
	version := func(c *Candidate) string { return cmp.Or(c.Doc.Version, c.Source.Version) }
	named := func(c *Candidate) bool { return slices.Contains(u.plan.named, c.Source) }
	return parse.Newer(version(f), version(kept)) && (named(f) || !named(kept))
}

// copies reports whether two loaded documents have the same content. It makes cheap
// comparisons first and compares whole texts last.
func copies(ctx context.Context, a, b *Candidate, words map[*Candidate]*bag, q *query.Parsed) (bool, error) {
	x, y := &a.Doc, &b.Doc
	if !q.Filters.Version.Empty() && x.Version != y.Version || !q.Filters.Lang.Empty() && x.Lang != y.Lang {
		return false, nil
	}
	of := func(f *Candidate) *bag {
		if words[f] == nil {
			words[f] = newBag(f.Text)
		}
		return words[f]
	}
	if x.Blob == y.Blob && a.Source != b.Source {
		return true, nil
	}
	if q.Sort != query.ByRelevance {
		return false, nil // a list by date or path contains similar pages too
	}
	if x.Blob != y.Blob {
		near := b.Score >= copyScore*a.Score || x.Title == y.Title
		if !near || float64(min(x.Lines, y.Lines)) < copyLines*float64(max(x.Lines, y.Lines)) {
			return false, nil
		}
	}
	if x.Blob == y.Blob {
		return len(of(a).set()) >= copyWords, nil
	}
	if !of(a).mayCopy(of(b)) || len(of(a).set()) < copyWords || overlap(of(a).set(), of(b).set()) < copyShare {
		return false, nil
	}
	var texts [2]*bag
	for i, f := range []*Candidate{a, b} {
		text, err := f.Source.WholeText(ctx, f.ID, &f.Doc)
		if err != nil {
			return false, err
		}
		texts[i] = newBag(text[:min(len(text), copyBytes)])
	}
	return overlap(texts[0].set(), texts[1].set()) >= copyShare, nil
}

// bag holds the hashes of a text's blank-separated words.
type bag struct {
	words  []uint32
	sorted bool       // words is sorted and has no repetitions
	bits   [32]uint64 // each word sets a bit; several words may share a bit
	size   int        // the number of words, with repetitions
}

func newBag(text string) *bag {
	b := &bag{words: make([]uint32, 0, len(text)/6)}
	for w := range strings.FieldsSeq(text) {
		h := parse.TermHash(w)
		b.words = append(b.words, h)
		b.bits[h/64%32] |= 1 << (h % 64)
	}
	b.size = len(b.words)
	return b
}

// set returns the distinct words in order.
func (b *bag) set() []uint32 {
	if !b.sorted {
		slices.Sort(b.words)
		b.words, b.sorted = slices.Compact(b.words), true
	}
	return b.words
}

// mayCopy reports whether two bags may have copyShare of all their words in common. Each
// bit in which they differ stands for at least one word that only one of them has, and
// copies have few such words.
func (b *bag) mayCopy(o *bag) bool {
	differ := 0
	for i := range b.bits {
		differ += bits.OnesCount64(b.bits[i] ^ o.bits[i])
	}
	return float64(differ) <= (1-copyShare)/(1+copyShare)*float64(b.size+o.size)
}

// overlap returns the Jaccard index of two sets.
func overlap(a, b []uint32) float64 {
	both := 0
	for i, j := 0, 0; i < len(a) && j < len(b); {
		switch {
		case a[i] < b[j]:
			i++
		case a[i] > b[j]:
			j++
		default:
			both++
			i++
			j++
		}
	}
	if len(a)+len(b) == both {
		return 1
	}
	return float64(both) / float64(len(a)+len(b)-both)
}
