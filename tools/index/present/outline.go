package present

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"satchel/internal/frontmatter"
	"satchel/tools/index/parse"
	"satchel/tools/index/rank"
)

const (
	// outlineEnvelope is what an outline costs without its hits and notes.
	outlineEnvelope = 20
	// placeOverhead is the cost of a hit's number, lines, date and punctuation.
	placeOverhead = 12
	// The number of hits with a text is the budget divided by tokensForText, and at least one.
	// A text takes at most outlineTextShare of the budget.
	tokensForText    = 1600
	outlineTextShare = 0.3
	// maxMore is how many further passages of a page follow its text. The best passage of the
	// right page often lacks the answer, and a later one has it.
	maxMore = 4
	// moreShare is the share of the best passage's score that a further passage needs.
	moreShare = 0.5
	// maxNamed is how many other versions of a page, and how many related files, a hit names.
	maxNamed = 2
	// weakHits is how many weak matches an outline lists.
	weakHits = 3
)

// Outline presents documents, best first, for a model that reads them as Markdown. It gives
// all documents their places (path, title, heading and lines), the first ones their best
// passages, and the next ones their matching lines, as far as the budget of the whole answer
// allows. The other hits have neither a text nor a snippet. If the matches are weak, Outline
// presents only a few places.
func Outline(ctx context.Context, u *rank.Run, docs []*rank.Candidate, budget int, weak bool) (hits []Hit, tokens int, err error) {
	if weak {
		docs = docs[:min(len(docs), weakHits)]
	}
	texts, textBudget := max(1, budget/tokensForText), int(outlineTextShare*float64(budget))
	budget -= outlineEnvelope + int(spareShare*float64(budget))
	for _, n := range u.Notes {
		budget -= EstimateTokens(n)
	}
	a, w := u.Analyzer(), newHighlightTerms(u.Terms())
	var given []*hitPassage
	best := 0.0
	for _, doc := range docs {
		f := &hitPassage{Candidate: doc, cost: EstimateTokens}
		h, err := f.describe(ctx, a, w)
		if err != nil {
			return nil, 0, doc.Source.Failed(err)
		}
		f.body = f.Doc.Kind != parse.KindMemory // a fact has nothing but front matter
		cost := placeOverhead + EstimateTokens(h.Path) + EstimateTokens(h.Title) + EstimateTokens(h.Heading)
		if tokens+cost > budget && len(hits) > 0 {
			break
		}
		tokens += cost
		best = max(best, h.Score)
		hits, given = append(hits, h), append(given, f)
	}
	for i, f := range given {
		h := &hits[i]
		snippet, also, related := h.Snippet, h.AlsoIn, h.Related
		h.Snippet, h.AlsoIn, h.Related = "", nil, nil
		if weak || u.Weak(h.Score, best) {
			continue
		}
		if i < texts {
			t, err := f.passages(ctx, a, w, min(budget-tokens, textBudget), budget-tokens)
			if err != nil {
				return nil, 0, f.Source.Failed(err)
			}
			if t.text != "" {
				h.Text, h.Lines = t.text, t.lines
				tokens += EstimateTokens(t.text)
				h.AlsoIn, h.Related = also[:min(len(also), maxNamed)], related[:min(len(related), maxNamed)]
				for _, p := range slices.Concat(h.AlsoIn, h.Related) {
					tokens += EstimateTokens(p) + 3
				}
				continue
			}
		}
		if cost := EstimateTokens(snippet); tokens+cost <= budget {
			h.Snippet = snippet
			tokens += cost
		}
	}
	return hits, tokens, nil
}

// passages returns the text of a page within the budget, followed by the matching lines of its
// next best passages. all is the maximum cost of the whole result.
func (f *hitPassage) passages(ctx context.Context, a *parse.Analyzer, w highlightTerms, budget, all int) (extract, error) {
	t, err := f.text(ctx, budget)
	if err != nil || t.text == "" {
		return t, err
	}
	ids := f.Passages(moreShare)
	for _, id := range ids[min(1, len(ids)):min(len(ids), 1+maxMore)] {
		p, known, err := f.neighbour(ctx, id)
		if err != nil {
			return t, err
		}
		if !known || p.Lines[0] <= t.lines[1] && p.Lines[1] >= t.lines[0] {
			continue
		}
		sn := f.snippetOf(a, p, w, snippetBytes)
		longer := fmt.Sprintf("%s\n… %d-%d:\n%s", strings.TrimRight(t.text, "\n"), sn.lines[0], sn.lines[1], sn.text)
		if f.cost(longer) > all {
			break
		}
		t.text = longer
	}
	return t, nil
}

// withoutHead removes front matter from the beginning of a text, because the hit already shows
// the title. It keeps the description. line is the number of the text's first line.
func (f *hitPassage) withoutHead(text string, line int) (body string, from int) {
	if !f.body || line != 1 || !strings.HasPrefix(text, "---") {
		return text, line
	}
	d, err := frontmatter.Parse([]byte(text))
	if err != nil || len(strings.TrimSpace(string(d.Body))) == 0 {
		return text, line
	}
	body = strings.TrimLeft(string(d.Body), "\r\n")
	from = d.BodyLine + strings.Count(string(d.Body[:len(d.Body)-len(body)]), "\n")
	if f.Doc.Description != "" {
		body = f.Doc.Description + "\n\n" + body
	}
	return body, from
}
