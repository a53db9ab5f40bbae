package index

import (
	"context"
	"fmt"
	"slices"
	"strings"
)

const (
	// hitOverhead is what the names of a hit's fields, its numbers, dates and
	// etag cost in an answer, in tokens.
	hitOverhead = 60
	// minTextTokens is the budget under which no hit is given its text.
	minTextTokens = 120
	// snippetBytes is about how long a snippet is.
	snippetBytes = 320
	// metadataShare is the part of the budget that hits may take before any has
	// its text; the best minHits get theirs while the whole budget lasts.
	metadataShare = 0.6
	minHits       = 3
	// textShare is the part of the budget that one hit's text may take.
	textShare = 0.4
)

// present fills in the hits within the token budget: all of them get their
// metadata and snippet while the budget lasts, then those at the top their
// text.
func (x *Index) present(ctx context.Context, a *analyzer, p *plan, docs []*found, budget int, r *Results) error {
	if budget <= 0 {
		budget = DefaultMaxTokens
	}
	terms := map[string]float64{}
	for _, t := range p.terms {
		terms[t.text] = t.weight / float64(1+t.df)
	}
	for _, f := range docs {
		if err := f.load(ctx); err != nil {
			return x.failed(ctx, f.session, err)
		}
		d := &f.doc
		sn := makeSnippet(a, f.best, string(d.path), terms)
		h := Hit{
			Collection: f.session.col.ID, Source: f.session.col.Label,
			Path: string(d.path), File: d.path, Title: d.title, Heading: sn.heading, Anchor: sn.anchor,
			Lines: sn.lines, Snippet: sn.text, Score: f.score, Description: d.description,
			Kind: d.kind, Lang: d.lang, Version: d.version, Date: d.time(), Blob: d.blob,
		}
		if m := f.session.col.Mount; m != "" {
			h.Path = m + "/" + h.Path
		}
		cost := hitOverhead + EstimateTokens(h.Path) + EstimateTokens(h.Title) + EstimateTokens(h.Heading) +
			EstimateTokens(h.Description) + EstimateTokens(h.Snippet)
		share := budget
		if len(r.Hits) >= minHits {
			share = int(metadataShare * float64(budget))
		}
		if r.Tokens+cost > share && len(r.Hits) > 0 {
			r.Notes = append(r.Notes, fmt.Sprintf("Only the best %d hits fit into %d tokens.", len(r.Hits), budget))
			break
		}
		r.Tokens += cost
		r.Hits = append(r.Hits, h)
	}
	for i := range r.Hits {
		left := budget - r.Tokens
		if left < minTextTokens {
			break
		}
		text, lines, err := docs[i].text(ctx, min(left, int(textShare*float64(budget))))
		if err != nil {
			return x.failed(ctx, docs[i].session, err)
		}
		if text == "" {
			continue
		}
		r.Hits[i].Text, r.Hits[i].Lines = text, lines
		r.Tokens += EstimateTokens(text)
	}
	return nil
}

// text returns the document where it fits into the budget, else its best
// passage joined with the neighbours that matched too, else the best passage
// alone, else nothing.
func (f *found) text(ctx context.Context, budget int) (string, [2]int, error) {
	var size int
	if err := f.session.tx.QueryRowContext(ctx, `SELECT length(text) FROM texts WHERE id = ?`, f.id).Scan(&size); err != nil {
		return "", [2]int{}, err
	}
	if size <= budget*4 { // more bytes than that cannot fit, as good as never
		var text []byte
		if err := f.session.tx.QueryRowContext(ctx, `SELECT text FROM texts WHERE id = ?`, f.id).Scan(&text); err != nil {
			return "", [2]int{}, err
		}
		if whole := strings.ToValidUTF8(string(text), "\ufffd"); EstimateTokens(whole) <= budget {
			return whole, [2]int{1, max(1, f.doc.lines)}, nil
		}
	}
	text, lines := strings.ToValidUTF8(f.best.text, "\ufffd"), f.best.lines
	cost := EstimateTokens(text)
	if cost > budget {
		return "", lines, nil
	}
	matched := map[int64]bool{}
	for _, c := range f.chunks {
		matched[c.id] = true
	}
	for _, step := range []int64{1, -1} {
		for id := f.chunks[0].id + step; matched[id]; id += step {
			n, _, err := f.session.passage(ctx, id)
			if err != nil {
				return "", lines, err
			}
			t := strings.ToValidUTF8(n.text, "\ufffd")
			c := EstimateTokens(t)
			if cost+c > budget {
				break
			}
			cost += c
			if step > 0 {
				text, lines[1] = text+t, n.lines[1]
			} else {
				text, lines[0] = t+text, n.lines[0]
			}
		}
	}
	return text, lines, nil
}

// snippet is the part of a passage that shows why it is a hit.
type snippet struct {
	text    string
	heading string
	anchor  string // the heading's
	lines   [2]int
}

// makeSnippet picks the run of lines with the rarest of the query's terms, and
// of a long line its best sentences.
func makeSnippet(a *analyzer, ps passage, name string, terms map[string]float64) snippet {
	type scoredLine struct {
		text    string
		heading string
		anchor  string
		level   int
		terms   []string
	}
	heading := ""
	if i := strings.LastIndexByte(ps.crumbs, '\n'); ps.crumbs != "" {
		heading = ps.crumbs[i+1:]
	}
	anchor, anchors, _ := strings.Cut(ps.anchors, "\n")
	var lines []scoredLine
	for _, l := range parseLines(name, []byte(ps.text), ps.start) {
		if l.level > 0 {
			heading = l.heading
			anchor, anchors, _ = strings.Cut(anchors, "\n")
		}
		s := scoredLine{text: strings.TrimRight(strings.ToValidUTF8(ps.text[l.start:l.end], ""), " \t\r\n"), heading: heading, anchor: anchor, level: l.level}
		a.words(s.text, func(w word) {
			for _, t := range append(w.parts, w.term, w.joined) {
				if _, ok := terms[t]; ok && !slices.Contains(s.terms, t) {
					s.terms = append(s.terms, t)
				}
			}
		})
		lines = append(lines, s)
	}
	if len(lines) == 0 {
		return snippet{heading: heading, anchor: anchor, lines: ps.lines}
	}
	best, bestScore := 0, -1.0
	for i := range lines {
		if len(lines[i].terms) == 0 {
			continue
		}
		seen := map[string]bool{}
		score, size := 0.0, 0
		for j := i; j < len(lines) && (j == i || size+len(lines[j].text) <= snippetBytes); j++ {
			size += len(lines[j].text) + 1
			for _, t := range lines[j].terms {
				if !seen[t] {
					seen[t] = true
					score += terms[t]
				}
			}
		}
		if lines[i].level > 0 && len(lines[i].terms) > 0 {
			score *= 1.05
		}
		if score > bestScore {
			best, bestScore = i, score
		}
	}
	last, size := best, len(lines[best].text)
	for last+1 < len(lines) && size+len(lines[last+1].text) <= snippetBytes {
		last++
		size += len(lines[last].text) + 1
	}
	for last > best && strings.TrimSpace(lines[last].text) == "" {
		last--
	}
	var out []string
	for i := best; i <= last; i++ {
		if len(lines[i].text) > snippetBytes {
			out = append(out, bestSentences(a, lines[i].text, terms))
		} else {
			out = append(out, lines[i].text)
		}
	}
	return snippet{
		text: strings.Join(out, "\n"), heading: lines[best].heading, anchor: lines[best].anchor,
		lines: [2]int{ps.lines[0] + best, ps.lines[0] + last},
	}
}

// bestSentences shortens one long line to whole sentences around its best one;
// where a sentence is itself too long, to the words around the first match.
func bestSentences(a *analyzer, text string, terms map[string]float64) string {
	var cuts []int // starts of sentences
	cuts = append(cuts, 0)
	for i := 0; i+1 < len(text); i++ {
		if strings.IndexByte(".!?", text[i]) >= 0 && text[i+1] == ' ' {
			cuts = append(cuts, i+2)
		} else if strings.HasPrefix(text[i:], "。") {
			cuts = append(cuts, i+len("。"))
		}
	}
	cuts = append(cuts, len(text))
	scores := make([]float64, len(cuts)-1)
	first, at := -1, 0
	seen := map[string]bool{}
	a.words(text, func(w word) {
		for at+1 < len(scores) && w.start >= cuts[at+1] {
			at++
			clear(seen)
		}
		for _, t := range append(w.parts, w.term, w.joined) {
			if v, ok := terms[t]; ok && !seen[t] {
				seen[t] = true
				scores[at] += v
				if first < 0 {
					first = w.start
				}
			}
		}
	})
	best := 0
	for i, s := range scores {
		if s > scores[best] {
			best = i
		}
	}
	from, to := cuts[best], cuts[best+1]
	if to-from > 2*snippetBytes {
		from = max(from, first-snippetBytes/2)
		to = min(to, from+snippetBytes)
		for from < to && text[from]&0xc0 == 0x80 {
			from++
		}
		return "…" + clip(text[from:], to-from) + "…"
	}
	for i := best + 1; i < len(scores) && cuts[i+1]-from <= snippetBytes; i++ {
		to = cuts[i+1]
	}
	s := strings.TrimSpace(text[from:to])
	if from > 0 {
		s = "… " + s
	}
	if to < len(text) {
		s += " …"
	}
	return s
}
