package rank

import (
	"context"
	"slices"

	"satchel/tools/index/postings"
)

// Reading the words of a passage requires a row of the database. So the rows are read
// together, and only if they may matter: the postings show which passages have words of the
// query in their headings.

// The bits of heads. The lowest bits are for the words of the plan's sequence, in order.
const (
	headsName  heads = 1 << maxCompound // the plan's name
	headsTalk  heads = 1 << 6           // the passage is part of a conversation
	headsKnown heads = 1 << 7           // the other bits are known
)

// talk reports whether the chunk is part of a conversation.
func (c Chunk) talk() bool { return c.heads&headsTalk != 0 }

// headBits returns the bits that the plan's terms have in heads.
func (u *Run) headBits() []heads {
	p := u.plan
	if len(p.sequence) > maxCompound {
		return nil
	}
	bits := make([]heads, len(p.terms))
	for i, t := range p.terms {
		for k, s := range p.sequence {
			if s == t.Text {
				bits[i] |= 1 << k
			}
		}
		if t.Text == p.name {
			bits[i] |= headsName
		}
	}
	return bits
}

// mayHead reports whether a passage may have a heading that consists of the query's words.
// Each of these words, and the name that they form, is among the plan's terms unless no
// page has it.
func (u *Run) mayHead(h heads) bool {
	all := heads(1)<<min(len(u.plan.sequence), maxCompound) - 1
	return h&headsKnown == 0 || u.unplanned || h&headsName != 0 || h&all == all
}

// pairBits returns, for each pair of neighbouring words of the query, the bits that a chunk with
// both words has; see chunkMatch. A word that is not among the plan's terms has no bit.
func (p *plan) pairBits() (pairs []uint64) {
	bit := func(word string) uint64 {
		k := slices.IndexFunc(p.terms, func(t Term) bool { return t.Text == word })
		if k < 0 {
			return 0
		}
		return 1 << min(k, 63)
	}
	for i := 1; i < len(p.sequence); i++ {
		pairs = append(pairs, bit(p.sequence[i-1])|bit(p.sequence[i]))
	}
	return pairs
}

// mayBeNear reports whether neighbouring words of the query may be in a document's best
// passage.
func (u *Run) mayBeNear(f *Candidate) bool {
	return f.Chunks[0].heads&headsKnown == 0 || slices.ContainsFunc(u.plan.pairs, func(both uint64) bool { return f.terms&both == both })
}

// looksInto reports whether passage k of a document must be read. The best passage is read for
// the proximity of the query's words and, if the query is a sentence, for its headings.
func (u *Run) looksInto(f *Candidate, k int) bool {
	return k == 0 && len(u.plan.sequence) > 1 && (u.plan.sentence || f.Chunks[0].talk() || u.mayBeNear(f)) || u.mayHead(f.Chunks[k].heads)
}

// readEvidence reads the words of the passages that weighEvidence needs, and of the first
// passages of their documents.
func (u *Run) readEvidence(ctx context.Context, docs []*Candidate) (err error) {
	if u.unplanned, err = u.namesMore(ctx); err != nil {
		return err
	}
	for _, s := range u.sources {
		var ids []int64
		for i, f := range docs {
			if f.Source != s || len(f.Chunks) == 0 {
				continue
			}
			for k := range f.Chunks[:min(len(f.Chunks), headedChunks)] {
				if u.looksInto(f, k) && (k == 0 || len(u.plan.sequence) <= maxCompound) {
					ids = append(ids, f.Chunks[k].ID)
				}
			}
			if lead := f.ID << postings.ChunkBits; i < openedDocs && u.plan.sentence && lead != f.Chunks[0].ID {
				ids = append(ids, lead)
			}
		}
		if len(ids) == 0 {
			continue
		}
		if err = s.PrefetchTokens(ctx, ids); err != nil {
			return s.Failed(err)
		}
	}
	return nil
}

// namesMore reports whether a page has a word of the query that a heading may contain but
// that is not among the plan's terms.
func (u *Run) namesMore(ctx context.Context) (bool, error) {
	p := u.plan
	for _, t := range append([]string{p.name}, p.sequence...) {
		planned := t == ""
		for i := range p.terms {
			planned = planned || p.terms[i].Text == t
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
