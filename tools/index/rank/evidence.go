package rank

import (
	"context"
	"math"
	"path"
	"slices"
	"strings"
	"unicode"

	"satchel/internal/space"
	"satchel/tools/index/parse"
	"satchel/tools/index/postings"
)

// Weights of evidence that is not in the postings. A boost b multiplies the document's score by
// 1+b. A boost for a share or a part is first multiplied by that share, which is from 0 to 1.
const (
	// namedBoost is for a document whose title or file name equals the query. exactBoost is
	// added if the two are equal letter by letter. titledBoost is for a document whose title
	// consists of the query's words in any order.
	namedBoost  = 0.6
	exactBoost  = 0.1
	titledBoost = 0.2
	// headedBoost is for a passage with a heading that equals the query, and definedBoost
	// for one with a heading that is the identifier formed by the query's words.
	headedBoost  = 0.6
	definedBoost = 1.3
	// headedChunks is how many passages of a document are checked for such headings.
	headedChunks = 3
	// coveredBoost is for a title whose words are all in the query. If only some are, it is
	// multiplied by their share to the power of coveredPower. A short title within a sentence
	// is most often what the sentence is about.
	coveredBoost = 0.3
	coveredPower = 3
	// adjacentBoost is for the share of neighbouring words of the query that are also
	// neighbours in the passage.
	adjacentBoost = 0.37
	// openedBoost is for the part of a sentence's weight that is among the first
	// openingWords of a page with headings, because these words say what the page is about.
	// begunBoost is for the part among the first beginningWords, and pathBoost for the part
	// in the path. topicBoost is for the part in the title and the headings of the best
	// passage, because a section of a long page may be about something else than the page's
	// beginning. topicBoost replaces openedBoost and begunBoost if it is more than these two
	// together. Only the best openedDocs documents get these four boosts.
	topicBoost     = 2.0
	openedBoost    = 1.2
	openingWords   = 100
	begunBoost     = 0.8
	beginningWords = 30
	pathBoost      = 0.3
	openedDocs     = 20
	// sentencePower is the exponent of the factor by which all this evidence changes a score, if
	// the query is a sentence. Some of a sentence's many words are on every page, so the score of
	// its words says less than the score of a name.
	sentencePower = 1.2
	// denseBoost is for the largest share of the query's weight that is within denseWords
	// neighbouring words of a conversation. A conversation is about several subjects, so words
	// that are far apart often belong to different subjects.
	denseBoost = 1.0
	denseWords = 25
	// placeWeight is the weight of a word that names a directory above the document,
	// compared with one occurrence in a text.
	placeWeight = 0.3
)

// weighEvidence raises the documents' scores for their names and for the proximity of the
// query's words in their best passages.
func (u *Run) weighEvidence(ctx context.Context, docs []*Candidate) error {
	if err := u.readHeaders(ctx, docs); err != nil {
		return err
	}
	e := newEvidence(u)
	if err := u.readEvidence(ctx, docs); err != nil {
		return err
	}
	for i, f := range docs {
		if len(f.Chunks) == 0 {
			continue
		}
		var words parse.Tokens
		var err error
		if u.looksInto(f, 0) {
			if words, err = f.Source.Tokens(ctx, f.Chunks[0].ID); err != nil {
				return f.Source.Failed(err)
			}
		}
		f.path = space.Path(f.Header.Path)
		headed := e.headed(words)
		// Another passage of the document may be under a heading that equals the query.
		for i := 1; i < min(len(f.Chunks), headedChunks) && headed == 0 && len(e.sequence) <= maxCompound; i++ {
			if !u.mayHead(f.Chunks[i].heads) {
				continue
			}
			other, err := f.Source.Tokens(ctx, f.Chunks[i].ID)
			if err != nil {
				return f.Source.Failed(err)
			}
			if headed = e.headed(other); headed > 0 {
				words = other
				f.Chunks[0], f.Chunks[i] = f.Chunks[i], f.Chunks[0]
			}
		}
		scored := f.Score
		e.weigh(f, words, headed)
		if f.Chunks[0].talk() {
			f.rescore("Words of the search are close together.", f.Score*(1+denseBoost*e.dense(words.Field(parse.FieldBody))))
		}
		if !u.plan.sentence {
			continue
		}
		if i < openedDocs {
			lead := words
			if id := f.ID << postings.ChunkBits; id != f.Chunks[0].ID {
				if lead, err = f.Source.Tokens(ctx, id); err != nil {
					return f.Source.Failed(err)
				}
			}
			opening, beginning := e.opened(lead, words)
			f.rescore("Words of the search are at the beginning of the page or in its headings.", f.Score*max((1+openedBoost*opening)*(1+begunBoost*beginning), 1+topicBoost*e.inHeads(words)))
			if e.total > 0 {
				f.rescore("Words of the search are in the path.", f.Score*(1+pathBoost*e.inPath(string(f.path))/e.total))
			}
		}
		if scored > 0 {
			f.rescore("The search is a sentence, so titles, headings and paths count more.", scored*math.Pow(f.Score/scored, sentencePower))
		}
	}
	return nil
}

// evidence weighs documents for one query.
type evidence struct {
	a        *parse.Analyzer
	p        *plan
	weight   map[string]float64 // the weights of the query's terms
	hashes   map[uint32]float64 // the same weights, by the hashes of the terms
	total    float64            // the sum of all weights
	sequence []uint32           // hashes of the plan's sequence
	places   map[uint32][]int   // by hash: the positions in sequence
	begin    [256]bool          // whether a hash in sequence has this lowest byte
	name     uint32
	words    map[uint32]wordWeight // by the hashes of the terms
	worth    float64               // the sum of the weights of all words
}

// wordWeight is the weight of a word of the query in one of its forms.
type wordWeight struct {
	word   int
	weight float64
}

// dense returns the largest share of the query's weight, from 0 to 1, that is within
// denseWords neighbouring words of a text. Of the forms of a word, only the heaviest counts.
func (e *evidence) dense(text parse.Words) float64 {
	if e.worth == 0 {
		return 0
	}
	best := 0.0
	var near []placed // the query's words among the last denseWords words of the text, in order
	for pos := range text.Len() {
		if text.At(pos) == parse.TokenBreak {
			near = near[:0]
		}
		w, ok := e.words[text.At(pos)]
		if !ok {
			continue
		}
		near = append(near, placed{w, pos})
		for pos-near[0].pos >= denseWords {
			near = near[1:]
		}
		sum := 0.0
		for i, n := range near {
			if !slices.ContainsFunc(near, func(o placed) bool { return o.word == n.word && o.weight > n.weight }) &&
				!slices.ContainsFunc(near[:i], func(o placed) bool { return o.word == n.word && o.weight == n.weight }) {
				sum += n.weight
			}
		}
		best = max(best, sum)
	}
	return best / e.worth
}

// placed is a word of the query at a position of a text.
type placed struct {
	wordWeight
	pos int
}

func newEvidence(u *Run) *evidence {
	e := &evidence{
		a: u.analyzer, p: u.plan, weight: map[string]float64{}, hashes: map[uint32]float64{}, places: map[uint32][]int{},
		name: parse.TermHash(u.plan.name),
	}
	for _, t := range u.plan.terms {
		w := t.Weight * t.residualIDF * idf(u.stats.chunks, t.DF)
		e.weight[t.Text] += w
		e.hashes[parse.TermHash(t.Text)] += w
		e.total += w
	}
	e.words = map[uint32]wordWeight{}
	most := map[int]float64{}
	for _, t := range u.plan.terms {
		if t.word < 0 || t.DF == 0 {
			continue
		}
		w := t.Weight * idf(u.stats.chunks, t.DF)
		e.words[parse.TermHash(t.Text)] = wordWeight{t.word, w}
		most[t.word] = max(most[t.word], w)
	}
	for _, w := range most {
		e.worth += w
	}
	for i, t := range u.plan.sequence {
		h := parse.TermHash(t)
		e.sequence = append(e.sequence, h)
		e.places[h] = append(e.places[h], i)
		e.begin[byte(h)] = true
	}
	return e
}

// weigh changes the score of a document. words are the words of its best passage, and
// headed is the passage's boost for its headings.
func (e *evidence) weigh(f *Candidate, words parse.Tokens, headed float64) {
	f.rescore("Words of the search are in the names of the directories above the page.", f.Score+placeWeight*e.inPath(path.Dir(f.Header.Path)))
	title := e.titleTerms(f.Header.Title)
	share := 0.0
	for _, t := range title {
		if e.weight[t] > 0 {
			share++
		}
	}
	if len(title) > 0 {
		f.rescore("Words of the title are in the search.", f.Score*(1+coveredBoost*math.Pow(share/float64(len(title)), coveredPower)))
	}
	named := max(e.named(f.Header, title), headed)
	near := 0.0
	if len(e.sequence) > 1 {
		near = adjacentBoost * e.adjacency(words.Field(parse.FieldBody))
	}
	scored := f.Score
	f.rescore("The search is the title, the file name or a heading.", scored*(1+named))
	f.rescore("Words of the search are next to each other.", scored*(1+(named+near)))
}

// titleTerms returns the words of a title, without stop words and repetitions.
func (e *evidence) titleTerms(title string) (terms []string) {
	e.a.Words(title, func(w parse.Word) {
		if !isStop(title[w.Start:w.End]) && !slices.Contains(terms, w.Term) {
			terms = append(terms, w.Term)
		}
	})
	return terms
}

// named returns the boost of a document for its title and file name.
func (e *evidence) named(h *postings.Header, title []string) float64 {
	if len(e.p.sequence) == 0 {
		return 0
	}
	base := path.Base(h.Path)
	base = strings.TrimLeft(strings.TrimSuffix(base, path.Ext(base)), "0123456789.")
	if e.a.IsWhole(h.Title, e.p.name) || e.a.IsWhole(base, e.p.name) {
		if squeeze(h.Title) == e.p.letters || squeeze(base) == e.p.letters {
			return namedBoost + exactBoost
		}
		return namedBoost
	}
	if e.p.fullName != e.p.name && e.a.IsWhole(h.Title, e.p.fullName) {
		return namedBoost
	}
	if sameWords(title, e.p.sequence) {
		return titledBoost
	}
	return 0
}

// sameWords reports whether two lists hold the same words, in any order.
func sameWords(title, sequence []string) bool {
	for _, t := range title {
		if !slices.Contains(sequence, t) {
			return false
		}
	}
	for _, s := range sequence {
		if !slices.Contains(title, s) {
			return false
		}
	}
	return len(title) > 0
}

// headed returns the boost of a passage for its headings.
func (e *evidence) headed(words parse.Tokens) float64 {
	if e.p.name == "" {
		return 0
	}
	boost := 0.0
	headings := words.Field(parse.FieldCrumb)
	for from := 0; from < headings.Len(); {
		to, same := from, true // same: the heading equals the sequence so far
		for ; to < headings.Len() && headings.At(to) != parse.TokenBreak; to++ {
			same = same && to-from < len(e.sequence) && headings.At(to) == e.sequence[to-from]
		}
		switch n := to - from; {
		case n == 1 && headings.At(from) == e.name:
			return definedBoost
		case n > 0 && same && n == len(e.sequence):
			boost = headedBoost
		}
		from = to + 1
	}
	return boost
}

// inPath returns the weight of the query's words in a path, and counts each word once.
func (e *evidence) inPath(p string) float64 {
	sum := 0.0
	var seen []string
	e.a.Words(p, func(w parse.Word) {
		if weight := e.weight[w.Term]; weight > 0 && !slices.Contains(seen, w.Term) {
			seen = append(seen, w.Term)
			sum += weight
		}
	})
	return sum
}

// squeeze returns the letters and digits of a text in lower case.
func squeeze(text string) string {
	return strings.Map(func(r rune) rune {
		if parse.IsWordRune(r) {
			return unicode.ToLower(r)
		}
		return -1
	}, text)
}

// adjacency returns the share, from 0 to 1, of the neighbouring pairs of the query's words
// that are neighbours in the text: in the same order with at most one word between.
func (e *evidence) adjacency(text parse.Words) float64 {
	seen := make([]bool, len(e.sequence))
	const never = math.MinInt / 2
	last := make([]int, len(e.sequence))
	for i := range last {
		last[i] = never
	}
	for pos := range text.Len() {
		w := text.At(pos)
		if !e.begin[byte(w)] {
			continue
		}
		places := e.places[w]
		for _, i := range places {
			if i > 0 && pos-last[i-1] <= 2 {
				seen[i] = true
			}
		}
		for _, i := range places {
			last[i] = pos
		}
	}
	n := 0
	for _, s := range seen {
		if s {
			n++
		}
	}
	return float64(n) / float64(len(e.sequence)-1)
}
