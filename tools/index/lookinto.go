package index

import "context"

// What a document's words say beyond its score takes a row of the database for
// each of its passages, which are read together, and only where it may matter:
// the postings tell which passages have the query's words in their headings.

// The bits of heads: those of the sequence's words come first, in order.
const (
	headsName  heads = 1 << maxCompound // the plan's name
	headsKnown heads = 1 << 7           // the others tell
)

// headBits returns the bits that the plan's terms have in heads.
func (u *inquiry) headBits() []heads {
	p := u.plan
	if len(p.sequence) > maxCompound {
		return nil
	}
	bits := make([]heads, len(p.terms))
	for i, t := range p.terms {
		for k, s := range p.sequence {
			if s == t.text {
				bits[i] |= 1 << k
			}
		}
		if t.text == p.name {
			bits[i] |= headsName
		}
	}
	return bits
}

// mayHead reports whether a passage may have a heading that consists of the query's
// words. Each of these, and the name that they make, is among the plan's terms
// unless no page has it.
func (u *inquiry) mayHead(h heads) bool {
	all := heads(1)<<min(len(u.plan.sequence), maxCompound) - 1
	return h&headsKnown == 0 || u.unplanned || h&headsName != 0 || h&all == all
}

// looksInto reports whether passage k of a document is looked into: the best, for
// how near its words are, if the query has several.
func (u *inquiry) looksInto(f *found, k int) bool {
	return k == 0 && len(u.plan.sequence) > 1 || u.mayHead(f.chunks[k].heads)
}

// readEvidence reads the words of the passages that weighEvidence looks into, and
// of those that their documents begin with.
func (u *inquiry) readEvidence(ctx context.Context, docs []*found) (err error) {
	if u.unplanned, err = u.namesMore(ctx); err != nil {
		return err
	}
	sentence := u.sentence()
	for _, s := range u.sessions {
		var ids []int64
		for i, f := range docs {
			if f.session != s || len(f.chunks) == 0 {
				continue
			}
			for k := range f.chunks[:min(len(f.chunks), headedChunks)] {
				if u.looksInto(f, k) && (k == 0 || len(u.plan.sequence) <= maxCompound) {
					ids = append(ids, f.chunks[k].id)
				}
			}
			if lead := f.id << chunkBits; i < openedDocs && sentence && lead != f.chunks[0].id {
				ids = append(ids, lead)
			}
		}
		if len(ids) == 0 {
			continue
		}
		if s.words, err = s.readTokens(ctx, ids); err != nil {
			return u.x.failed(ctx, s, err)
		}
	}
	return nil
}

// namesMore reports whether some page has a word that headings may consist of, and
// that is none of the plan's terms.
func (u *inquiry) namesMore(ctx context.Context) (bool, error) {
	p := u.plan
	for _, t := range append([]string{p.name}, p.sequence...) {
		planned := t == ""
		for i := range p.terms {
			planned = planned || p.terms[i].text == t
		}
		if planned {
			continue
		}
		if n, err := u.known(ctx, t); err != nil || n > 0 {
			return n > 0, err
		}
	}
	return false, nil
}
