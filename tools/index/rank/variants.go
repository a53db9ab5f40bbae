package rank

import (
	"context"
	"math"
	"slices"
	"time"

	"satchel/tools/index/language"
	"satchel/tools/index/parse"
	"satchel/tools/index/postings"
	"satchel/tools/index/query"
)

// The translations and versions of a page become one hit, which lists the others. Their
// paths identify them, so no text needs to be read.

const (
	// foreignSure and foreignConcluded multiply the score of a page in another language than
	// the reader's. foreignSure is for a query whose language is clear, and foreignConcluded
	// for other queries.
	foreignSure      = 0.5
	foreignConcluded = 0.7
	// concludedShare decides whether English is inferred although another language matches
	// better, because titles and code are often in English. English needs this share of the
	// best score.
	concludedShare = 0.7
	// standInShare is the part of the best member's score that another member of a family
	// needs to replace it, so that a newer version that only mentions the subject does not.
	standInShare = 0.5
	// fresh is the share that a page gains in score if it has just changed. The share halves
	// every freshHalf. It decides between pages that are otherwise equally good.
	fresh     = 0.02
	freshHalf = 180 * 24 * time.Hour
	// maxVariants is how many documents are grouped into families.
	maxVariants = 600
	// maxAlso is how many collapsed paths a hit names: each costs tokens, and the others
	// have similar names.
	maxAlso = 2
)

// prefer adjusts the scores of documents by the reader's language and slightly by their
// age. It keeps only one of each page's variants, preferably in the reader's language and of
// the newest version. It reads no text.
func (u *Run) prefer(ctx context.Context, all []*Candidate, limit int) ([]*Candidate, error) {
	if len(all) < 2 {
		return all, nil
	}
	wanted := max(reranked, limit)
	families := map[string]bool{}
	languages := map[string]bool{}
	n := 0
	for n < min(len(all), maxVariants) && (len(families) < wanted || len(languages) > 1) {
		batch := all[n:min(len(all), n+max(wanted, n))]
		if err := u.readHeaders(ctx, batch); err != nil {
			return nil, err
		}
		n += len(batch)
		for _, f := range batch {
			f.variant = variantKey(f, u.Parsed)
			families[f.variant] = true
			if l := f.Header.Lang; l != "" {
				languages[language.Base(l)] = true
			}
		}
	}
	head, rest := slices.Clone(all[:n]), all[n:]
	reader, factor := u.reader(), foreignSure
	if reader == "" || !u.Sure {
		factor = foreignConcluded
	}
	if reader == "" {
		reader = concludeReader(u.queryLanguage, head)
	}
	now := u.opts.Now()
	asked := !u.Filters.Lang.Empty()
	for _, f := range head {
		k := f.Header
		if k.Lang != "" && reader != "" && language.Base(k.Lang) != reader && !asked {
			f.rescore("The page is in another language than yours.", f.Score*factor)
		}
		f.rescore("Newer pages rank higher.", f.Score*(1+freshness(k.Date, now)))
	}
	byScore(head)
	return append(gather(head, reader), rest...), nil
}

func byScore(all []*Candidate) {
	slices.SortStableFunc(all, func(a, b *Candidate) int {
		switch {
		case a.Score > b.Score:
			return -1
		case a.Score < b.Score:
			return 1
		}
		return 0
	})
}

// freshness returns what a page's age adds to its score. It is 0 if the date is unknown or
// in the future.
func freshness(date int64, now time.Time) float64 {
	age := now.Sub(time.Unix(date, 0))
	if date == 0 || age < 0 {
		return 0
	}
	return fresh * math.Exp2(-age.Hours()/freshHalf.Hours())
}

// readHeaders reads the headers of documents, with one statement for each database.
func (u *Run) readHeaders(ctx context.Context, docs []*Candidate) error {
	for _, s := range u.sources {
		var of []*Candidate
		var ids []int64
		for _, f := range docs {
			if f.Source == s && f.Header == nil {
				of, ids = append(of, f), append(ids, f.ID)
			}
		}
		if len(ids) == 0 {
			continue
		}
		headers, err := s.Headers(ctx, ids)
		if err != nil {
			return s.Failed(err)
		}
		for i, f := range of {
			f.Header = headers[i]
		}
	}
	return nil
}

// concludeReader infers the language of the query. It is the possible language whose best
// pages match best, or English if its pages match nearly as well (see concludedShare). English
// is not possible for a query in Han characters.
func concludeReader(t queryLanguage, docs []*Candidate) string {
	const best = 3
	sums, counts := map[string]float64{}, map[string]int{}
	for _, f := range docs { // best first
		l := language.Base(f.Header.Lang)
		if l == "" || counts[l] == best || len(t.Langs) > 0 && !slices.Contains(t.Langs, l) && (l != "en" || t.Langs[0] == "zh") {
			continue
		}
		counts[l]++
		sums[l] += f.Score / float64(int(1)<<counts[l])
	}
	reader := ""
	for l, s := range sums {
		if reader == "" || s > sums[reader] || s == sums[reader] && l < reader {
			reader = l
		}
	}
	if sums["en"] >= concludedShare*sums[reader] && sums["en"] > 0 {
		return "en"
	}
	return reader
}

// variantKey identifies a document's family of variants within its collection. Variants
// that a filter of the query distinguishes belong to different families.
func variantKey(f *Candidate, q *query.Parsed) string {
	k := f.Header
	key := string(f.Source.ID) + "\x00" + k.Family
	if !q.Filters.Lang.Empty() {
		key += "\x00" + k.Lang
	}
	if !q.Filters.Version.Empty() {
		key += "\x00" + k.Version
	}
	return key
}

// gather keeps one of the related documents of each family, at the position of the best one.
func gather(docs []*Candidate, reader string) []*Candidate {
	type group struct{ members []*Candidate }
	groups := map[string][]*group{}
	var order []*group
	for _, f := range docs {
		key := f.variant
		var mine *group
		for _, g := range groups[key] {
			if related(f.Header, g.members[0].Header) {
				mine = g
				break
			}
		}
		if mine == nil {
			mine = &group{}
			groups[key] = append(groups[key], mine)
			order = append(order, mine)
		}
		mine.members = append(mine.members, f)
	}
	out := make([]*Candidate, 0, len(order))
	for _, g := range order {
		out = append(out, standIn(g.members, reader))
	}
	return out
}

// related reports whether two documents of a family are the same page: in two languages, or
// with the same title except for the version.
func related(a, b *postings.Header) bool {
	return a.Lang != b.Lang || parse.SameButVersion(a.Title, a.Version, b.Title, b.Version)
}

// standIn returns the member of a family that is shown. It gets the best score and the
// paths of the others.
func standIn(members []*Candidate, reader string) *Candidate {
	best := members[0]
	if len(members) == 1 {
		return best
	}
	if reader == "" {
		reader = language.Base(best.Header.Lang)
	}
	foreign := func(k *postings.Header) int {
		switch language.Base(k.Lang) {
		case reader:
			return 0
		case "":
			return 1
		}
		return 2
	}
	top := best.Score
	shown := best
	for _, f := range members[1:] {
		if f.Score < standInShare*top {
			break
		}
		a, b := f.Header, shown.Header
		if x, y := foreign(a), foreign(b); x < y || x == y && (foreign(a) == 0 || a.Lang == b.Lang) && parse.Newer(a.Version, b.Version) {
			shown = f
		}
	}
	for _, f := range members {
		if f != shown {
			shown.takeIn(f, f.Header.Path)
		}
	}
	shown.rescore("The page represents its other versions and translations, and has the score of the best one.", top)
	return shown
}

// takeIn records that a hit represents another document.
func (f *Candidate) takeIn(other *Candidate, path string) {
	f.AlsoCount += 1 + other.AlsoCount
	f.Also = append(append(f.Also, other.Source.Shown(path)), other.Also...)
	f.Also = f.Also[:min(len(f.Also), maxAlso)]
}
