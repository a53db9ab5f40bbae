package rank

import (
	"cmp"
	"context"
	"slices"

	"satchel/tools/index/parse"
	"satchel/tools/index/query"
)

// A sentence rarely has all the words that the pages about its subject use. So the words
// that the best pages of a first pass have in common are searched for too, with a share of
// the query's weight. This is RM3 (Abdul-Jaleel and others, "UMass at TREC 2004"), but the
// terms are also weighed by their rarity.
//
// Nothing in the first pass predicts which queries this feedback helps (docs/measurements.md).
// So feedback is the same for all sentences, and conservative: few documents, words in at least
// two of them, and less weight than the query. A query of a few words is usually a name, to
// which nothing is added.
const (
	// sentenceWords is how many different words a query must have to count as a sentence.
	sentenceWords = 4
	// feedbackDocs is the maximum number of documents that are read.
	feedbackDocs = 5
	// feedbackTerms is the maximum number of terms that are added.
	feedbackTerms = 14
	// feedbackShare is the total weight of the added terms, as a share of the total weight of
	// the query's own terms.
	feedbackShare = 0.3
	// feedbackIn is how many of the documents must have a term.
	feedbackIn = 2
	// feedbackFrequent is the part of all chunks above which a term is too frequent.
	feedbackFrequent = 0.2
	// shortChunk is a length in words. A shorter chunk counts as this long.
	shortChunk = 20
)

// feeds reports whether the query gets feedback.
func (u *Run) feeds() bool {
	if u.Sort != query.ByRelevance || len(u.plan.phrases) > 0 {
		return false
	}
	return u.plan.sentence
}

// feedback returns the terms that a second pass also looks for in bodies. They are the terms
// that the best documents of the first pass have in common. Conversations do not count. docs is
// sorted best first.
func (u *Run) feedback(ctx context.Context, docs []*Candidate) ([]Term, error) {
	docs = slices.Clone(docs[:min(len(docs), feedbackDocs)])
	// A passage of a conversation is about several subjects.
	docs = slices.DeleteFunc(docs, func(f *Candidate) bool { return f.Chunks[0].talk() })
	if len(docs) < feedbackIn {
		return nil, nil
	}
	total := 0.0
	for _, f := range docs {
		total += f.Score
	}
	type word struct {
		text  string
		df    int64
		score float64
		in    int
	}
	words := map[string]*word{}
	if err := loadPassages(ctx, docs); err != nil {
		return nil, err
	}
	for _, f := range docs {
		vector, err := f.Source.Vector(ctx, u.analyzer, f.Chunks[0].ID)
		if err != nil {
			return nil, f.Source.Failed(err)
		}
		length := 0
		for _, t := range vector {
			length += int(t.N[parse.FieldBody])
		}
		for _, t := range vector {
			if t.N[parse.FieldBody] == 0 || !isTopical(t.Term) {
				continue
			}
			w := words[t.Term]
			if w == nil {
				w = &word{text: t.Term}
				words[t.Term] = w
			}
			w.in++
			w.score += f.Score / total * float64(t.N[parse.FieldBody]) / float64(max(length, shortChunk))
		}
	}
	var best []*word
	for _, w := range words {
		if w.in < feedbackIn {
			continue
		}
		var err error
		if w.df, err = u.known(ctx, w.text); err != nil {
			return nil, err
		}
		if w.df < feedbackIn || float64(w.df) > feedbackFrequent*float64(u.stats.chunks) {
			continue
		}
		w.score *= idf(u.stats.chunks, w.df)
		best = append(best, w)
	}
	slices.SortFunc(best, func(a, b *word) int { return cmp.Or(cmp.Compare(b.score, a.score), cmp.Compare(a.text, b.text)) })
	best = best[:min(len(best), feedbackTerms)]
	theirs, own := 0.0, 0.0
	for _, w := range best {
		theirs += w.score * idf(u.stats.chunks, w.df)
	}
	for _, t := range u.plan.terms {
		if t.DF > 0 {
			own += t.Weight * t.residualIDF * idf(u.stats.chunks, t.DF)
		}
	}
	terms := make([]Term, len(best))
	for i, w := range best {
		terms[i] = Term{Text: w.text, Weight: w.score / theirs * own * feedbackShare, residualIDF: 1, DF: w.df, word: -1, inBody: true}
	}
	return terms, nil
}

// isTopical reports whether a term of a page may be added to a query. Stop words, terms with
// digits, and terms of fewer than 3 bytes may not.
func isTopical(t string) bool {
	if len(t) < 3 || isStop(t) {
		return false
	}
	for i := range len(t) {
		if parse.IsDigit(t[i]) {
			return false
		}
	}
	return true
}
