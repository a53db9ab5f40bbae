package rank

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"unicode"

	"satchel/tools/index/language"
	"satchel/tools/index/parse"
)

// Term is a term of a query.
type Term struct {
	Text        string
	Weight      float64 // how often the query has the term; less for parts of identifiers
	DF          int64   // number of chunks that have the term, or a more frequent form of its word
	residualIDF float64 // see residualIDF
	word        int     // the index of the query's word from which the term comes; -1: none
	inBody      bool    // the term is searched for only in bodies
}

// plan is a query translated into terms of the index.
type plan struct {
	terms   []Term
	typed   []string   // the words of the query as typed, by Term.word
	phrases [][]string // terms that must occur one after another
	without [][]string // terms that must not occur, alone or one after another
	// sequence holds the query's words as terms, in order, without stop words and names of
	// sources. name is the identifier formed by all words except these names, and letters is
	// that identifier in lower case as typed.
	sequence []string
	name     string
	letters  string
	// sentence reports that the query has so many words that it describes something instead
	// of naming it. pairs is the result of pairBits.
	sentence bool
	pairs    []uint64
	// named holds the sources that the query names. fullName is like name, but includes the words
	// that name a source.
	named    []*Source
	fullName string
	// missing holds the query's words, as typed, that no document has in any form.
	missing []string
}

// maxMissingNamed limits the missing words that an answer names.
const maxMissingNamed = 5

// The weights of terms that were not typed. A typed term has weight 1.
const (
	// partWeight is for a part of an identifier.
	partWeight = 0.3
	// joinedWeight is for an identifier that was typed as such, like use_async_data.
	joinedWeight = 1.0
	// wholeWeight is for an identifier formed by the whole query or by at least three of its
	// words. twoWordWeight is for one formed by two words of a longer query. Such an identifier
	// is often accidental, especially in a sentence (accidentWeight), and would weigh much
	// because it is rare.
	wholeWeight    = 1.0
	twoWordWeight  = 0.3
	accidentWeight = 0.1
	maxCompound    = 4 // maximum number of words of such an identifier
	// pairShare is for each of several pairs of a run of characters without spaces. Each
	// character is in two pairs, so a run would otherwise outweigh a word of another script
	// ("Astro で middleware を使う").
	pairShare = 0.5
	// requestWords is a number of words. A query of so few words is too short to be a request
	// in a sentence.
	requestWords = 4
	// shortWeight is for the short form of a word that was written out, and for the long
	// form of a short one.
	shortWeight = 0.3
	// otherWeight is for a word from an Expander.
	otherWeight = 0.3
)

// maxQueryTerms is the maximum number of terms of a plan. The rarest are kept.
const maxQueryTerms = 40

// planner makes a plan.
type planner struct {
	u       *Run
	p       *plan
	weights map[string]float64
	words   map[string]int
	floors  map[string]int64 // lower bounds for Term.DF
	order   []string
}

// piece is a word of the query as it was typed and as the analyzer sees it.
type piece struct {
	raw  string
	word parse.Word
	stop bool
	pair bool // one of several pairs of a run of characters without spaces
	// names reports that the word is a name of a source, or a part of one.
	names bool
}

// makePlan turns the query's words into terms, and those in others, which mean nearly the same.
func (u *Run) makePlan(ctx context.Context, others []string) error {
	b := &planner{u: u, p: &plan{}, weights: map[string]float64{}, words: map[string]int{}, floors: map[string]int64{}}
	u.plan = b.p
	pieces, err := b.pieces(ctx)
	if err != nil {
		return err
	}
	u.findNames(pieces)
	for i, pc := range pieces {
		b.p.typed = append(b.p.typed, pc.raw)
		if pc.names {
			if err := b.addText(ctx, pc.raw, nameWeight, i); err != nil {
				return err
			}
			b.add(pc.word.Joined, joinedWeight, i)
			continue
		}
		if pc.stop {
			continue
		}
		meant, err := b.word(ctx, i, pc)
		if err != nil {
			return err
		}
		pieces[i] = meant
	}
	if err := b.compounds(ctx, pieces); err != nil {
		return err
	}
	var whole, full strings.Builder
	for _, pc := range pieces {
		full.WriteString(pc.raw)
		if !pc.names {
			whole.WriteString(pc.raw)
		}
	}
	b.p.name = u.analyzer.Join([]string{whole.String()}, false)
	b.p.fullName = u.analyzer.Join([]string{full.String()}, false)
	b.p.letters = squeeze(whole.String())
	for _, other := range others {
		if err := b.addText(ctx, other, otherWeight, -1); err != nil {
			return err
		}
	}
	if err := b.finish(ctx); err != nil {
		return err
	}
	for _, ph := range u.Phrases {
		if s := u.analyzer.Phrase(ph); len(s) > 0 {
			b.p.phrases = append(b.p.phrases, s)
		}
	}
	for _, ph := range u.Without {
		if s := u.analyzer.Phrase(ph); len(s) > 0 {
			b.p.without = append(b.p.without, s)
		}
	}
	return nil
}

func (b *planner) add(t string, weight float64, word int) {
	if t == "" || len(t) > parse.MaxTermBytes {
		return
	}
	if _, ok := b.weights[t]; !ok {
		b.order = append(b.order, t)
		b.words[t] = word
	}
	b.weights[t] += weight
}

// pieces returns the words of the query. It marks stop words, unless there are no other
// words. It also marks the words that introduce a request ("Learn how to …", "An
// introduction to …"), because they are not what the page is about.
func (b *planner) pieces(ctx context.Context) ([]piece, error) {
	var pieces []piece
	for _, text := range b.u.Words {
		from := len(pieces)
		b.u.analyzer.Words(text, func(w parse.Word) {
			if w.End-w.Start <= 2 && elided(text[:w.Start]) {
				return
			}
			next := piece{raw: text[w.Start:w.End], word: w}
			if last := len(pieces) - 1; last >= from && w.Start < pieces[last].word.End {
				next.pair, pieces[last].pair = true, true
			}
			pieces = append(pieces, next)
		})
		// The parts of a version number mean nothing by themselves.
		if last := len(pieces) - 1; last > from && strings.Contains(pieces[last].word.Joined, parse.VersionDot) {
			n, err := b.u.known(ctx, pieces[last].word.Joined)
			if err != nil {
				return nil, err
			}
			if n > 0 {
				pieces = append(pieces[:from], piece{raw: text, word: parse.Word{Term: pieces[last].word.Joined}})
			}
		}
	}
	topic, asking := false, len(pieces) > requestWords
	for i := range pieces {
		pc := &pieces[i]
		pc.stop = b.u.isStop(pc.raw)
		if asking && !pc.stop {
			pc.stop = language.IsRequest(strings.ToLower(pc.raw))
			asking = pc.stop
		}
		topic = topic || !pc.stop
	}
	if !topic {
		for i := range pieces {
			pieces[i].stop = false
		}
	}
	return pieces, nil
}

// elided reports whether the next word is the rest of a word with an apostrophe, like the s
// of "site's" or the t of "don't".
func elided(before string) bool {
	return strings.HasSuffix(before, "'") || strings.HasSuffix(before, "’")
}

// word adds the terms of one word of the query, and returns the word as it was probably
// meant. For a word that no page has, that is the nearest word that pages have. Titles,
// headings and names are compared with the returned word.
func (b *planner) word(ctx context.Context, i int, pc piece) (meant piece, err error) {
	respelled := len(b.u.Respelled)
	forms, missing, err := b.u.forms(ctx, pc.raw, pc.word)
	if err != nil {
		return pc, err
	}
	meant = pc
	if missing && len(b.u.Respelled) > respelled {
		r := b.u.Respelled[respelled]
		meant.raw, meant.word = r.Word, parse.Word{Term: r.term}
	}
	b.p.sequence = append(b.p.sequence, meant.word.Term)
	// Every form of a word counts as if it were as frequent as the most frequent form.
	most := int64(0)
	for _, f := range forms {
		n, err := b.u.known(ctx, f.term)
		if err != nil {
			return pc, err
		}
		most = max(most, n)
	}
	share := 1.0
	if pc.pair {
		share = pairShare
	}
	for _, f := range forms {
		b.floors[f.term] = max(b.floors[f.term], most)
		b.add(f.term, share*f.weight, i)
	}
	for _, other := range language.OtherForms(strings.ToLower(meant.raw)) {
		if err := b.addText(ctx, other, shortWeight, i); err != nil {
			return pc, err
		}
	}
	for _, part := range pc.word.Parts {
		b.add(part, partWeight, i)
	}
	b.add(pc.word.Joined, joinedWeight, i)
	if missing && !b.u.isStop(pc.raw) && len(b.p.missing) < maxMissingNamed && !slices.Contains(b.p.missing, pc.raw) {
		b.p.missing = append(b.p.missing, pc.raw)
	}
	return meant, nil
}

// compounds adds the identifiers formed by neighbouring words, if a page has them: "use
// async data" is also useAsyncData. It ignores those that begin or end with a stop word
// ("as a CMS" is not ACM), unless they are the whole query.
func (b *planner) compounds(ctx context.Context, pieces []piece) error {
	if len(pieces) > maxQueryTerms {
		return nil
	}
	for i := range pieces {
		raw := pieces[i].raw
		for j := i + 1; j < len(pieces) && j < i+maxCompound; j++ {
			raw += pieces[j].raw
			all := i == 0 && j == len(pieces)-1
			if !all && (b.u.isStop(pieces[i].raw) || b.u.isStop(pieces[j].raw)) {
				continue
			}
			t := b.u.analyzer.Join([]string{raw}, false)
			if t == "" || b.weights[t] > 0 {
				continue
			}
			n, err := b.u.known(ctx, t)
			if err != nil {
				return err
			}
			switch {
			case n == 0:
			case all || j-i >= 2:
				b.add(t, wholeWeight, i)
			case len(pieces) >= sentenceWords:
				b.add(t, accidentWeight, i)
			default:
				b.add(t, twoWordWeight, i)
			}
		}
	}
	return nil
}

// addText adds the words of a text that was not typed, if a page has them. at is the index of the
// query's word from which they come, or -1 for none.
func (b *planner) addText(ctx context.Context, text string, weight float64, at int) error {
	var terms []string
	b.u.analyzer.Words(text, func(w parse.Word) {
		if !b.u.isStop(text[w.Start:w.End]) {
			terms = append(terms, w.Term)
		}
	})
	for _, t := range terms {
		if b.weights[t] > 0 {
			continue
		}
		n, err := b.u.known(ctx, t)
		if err != nil {
			return err
		}
		if n > 0 {
			b.add(t, weight, at)
		}
	}
	return nil
}

// finish makes the terms of the plan, and sets sentence and pairs.
func (b *planner) finish(ctx context.Context) error {
	for _, t := range b.order {
		n, err := b.u.known(ctx, t)
		if err != nil {
			return err
		}
		one := Term{Text: t, Weight: b.weights[t], residualIDF: 1, DF: n, word: b.words[t]}
		if n > 0 {
			one.DF = max(n, b.floors[t])
		}
		b.p.terms = append(b.p.terms, one)
	}
	// Keep the rarest terms. Those that no page has are dropped first.
	if most := maxQueryTerms; len(b.p.terms) > most {
		slices.SortStableFunc(b.p.terms, func(x, y Term) int {
			if (x.DF == 0) != (y.DF == 0) {
				return map[bool]int{true: 1, false: -1}[x.DF == 0]
			}
			return cmp.Compare(x.DF, y.DF)
		})
		b.p.terms = b.p.terms[:most]
	}
	for i := range b.p.terms {
		t := &b.p.terms[i]
		if t.DF == 0 {
			continue
		}
		sum := int64(0)
		for _, s := range b.u.sources {
			n, err := s.Occurrences(ctx, t.Text)
			if err != nil {
				return s.Failed(err)
			}
			sum += n
		}
		t.residualIDF = residualIDF(b.u.stats.chunks, t.DF, sum)
	}
	distinct := map[string]bool{}
	for _, t := range b.p.sequence {
		distinct[t] = true
	}
	b.p.sentence, b.p.pairs = len(distinct) >= sentenceWords, b.p.pairBits()
	return nil
}

// spaced reports whether a word's script separates words by blanks. In other scripts, the
// analyzer's words are not words for a reader.
func spaced(w string) bool {
	return !strings.ContainsFunc(w, func(r rune) bool {
		return unicode.In(r, unicode.Han, unicode.Hiragana, unicode.Katakana, unicode.Hangul, unicode.Thai, unicode.Lao, unicode.Khmer, unicode.Myanmar)
	})
}
