package index

import (
	"context"
	"database/sql"
	"math"
	"slices"
	"strings"
	"time"

	"satchel/tools/index/language"
	"satchel/tools/index/parse"
	"satchel/tools/index/query"
)

// Pages that say the same thing take one place in an answer: the translations
// and the versions of a page, which its path tells before anything is read, and
// copies, which the texts of those at the top tell. What is collapsed is named
// in the hit that stands for it.

const (
	// Factors of the score of a page in another language than the reader's, who
	// was sure of it or for whom it was concluded from what matches best.
	foreignSure      = 0.5
	foreignConcluded = 0.7
	// concludedShare is how near to the best language English must come to be
	// concluded: titles and code are often English in every language.
	concludedShare = 0.7
	// standInShare is the part of the best member's score that another member of
	// a family must have to stand for it: a newer version that only mentions
	// what an older one is about does not.
	standInShare = 0.5
	// fresh is what being changed just now adds to a score; it halves with every
	// freshHalf. It decides between pages that are equally good otherwise.
	fresh     = 0.02
	freshHalf = 180 * 24 * time.Hour
	// maxKin is how many documents are looked at for families.
	maxKin = 600
	// maxAlso is how many collapsed paths a hit names: they cost tokens, and the
	// others are named alike.
	maxAlso = 2
)

// kin is what tells a document's relatives.
type kin struct {
	path, title, lang, version string
	date                       int64
	family                     string // of the path
	key                        string // see familyKey
}

// prefer weighs documents, best first, by the reader's language and a little by
// their age, and leaves of each family only the one in the reader's language and
// of the newest version. It reads no text.
func (x *Index) prefer(ctx context.Context, t tongue, sessions []*session, q *query.Parsed, all []*found, limit int) ([]*found, error) {
	if len(all) < 2 {
		return all, nil
	}
	wanted := max(reranked, limit)
	families := map[string]bool{}
	languages := map[string]bool{}
	n := 0
	for n < min(len(all), maxKin) && (len(families) < wanted || len(languages) > 1) {
		batch := all[n:min(len(all), n+max(wanted, n))]
		if err := x.readKin(ctx, sessions, batch); err != nil {
			return nil, err
		}
		n += len(batch)
		for _, f := range batch {
			k := f.kin
			k.key = familyKey(f, q)
			families[k.key] = true
			if k.lang != "" {
				languages[language.Base(k.lang)] = true
			}
		}
	}
	head, rest := slices.Clone(all[:n]), all[n:]
	reader, factor := t.reader(), foreignSure
	if reader == "" || !t.Sure {
		factor = foreignConcluded
	}
	if reader == "" {
		reader = concludeReader(t, head)
	}
	now := x.opts.Now()
	asked := !q.Filters.Lang.Empty()
	for _, f := range head {
		k := f.kin
		if k.lang != "" && reader != "" && language.Base(k.lang) != reader && !asked {
			f.rescore("another language than the reader's", f.score*factor)
		}
		f.rescore("how recently the page was changed", f.score*(1+freshness(k.date, now)))
	}
	byScore(head)
	return append(gather(head, reader), rest...), nil
}

func byScore(all []*found) {
	slices.SortStableFunc(all, func(a, b *found) int {
		switch {
		case a.score > b.score:
			return -1
		case a.score < b.score:
			return 1
		}
		return 0
	})
}

// freshness is what a page's age adds to its score; nothing where it is unknown
// or lies in the future.
func freshness(date int64, now time.Time) float64 {
	age := now.Sub(time.Unix(date, 0))
	if date == 0 || age < 0 {
		return 0
	}
	return fresh * math.Exp2(-age.Hours()/freshHalf.Hours())
}

// readKin reads what is needed of the documents, with one statement for each
// database.
func (x *Index) readKin(ctx context.Context, sessions []*session, docs []*found) error {
	for _, s := range sessions {
		of := make(map[int64]*found, len(docs))
		ids := make([]int64, 0, len(docs))
		for _, f := range docs {
			if f.session == s && f.kin == nil {
				if r, ok := s.db.cache.find(rowKey{db: s.db, row: f.id, doc: true}); ok {
					known := *r.kin
					f.kin = &known
					continue
				}
				f.kin = &kin{}
				of[f.id] = f
				ids = append(ids, f.id)
			}
		}
		if len(ids) == 0 {
			continue
		}
		err := s.eachRow(ctx, s.db.stmts.kin, func(rows *sql.Rows) error {
			var id, sum int64
			var k kin
			if err := rows.Scan(&id, &k.path, &k.title, &k.lang, &k.version, &k.date, &sum); err != nil {
				return err
			}
			if err := headFields(id, k.path, k.title, k.lang, k.version, k.date).check(sum, nil, "document", id); err != nil {
				return err
			}
			k.family = parse.Family(k.path)
			*of[id].kin = k
			s.db.cache.keep(cachedRow{key: rowKey{db: s.db, row: id, doc: true}, kin: &k})
			return nil
		}, jsonList(ids))
		if err != nil {
			return x.failed(ctx, s, err)
		}
	}
	return nil
}

// concludeReader returns the language whose best pages match best, of those that
// the query may be in; English where it comes near to that, unless the query is
// in Han characters.
func concludeReader(t tongue, docs []*found) string {
	const best = 3
	sums, counts := map[string]float64{}, map[string]int{}
	for _, f := range docs { // best first
		l := language.Base(f.kin.lang)
		if l == "" || counts[l] == best || len(t.Langs) > 0 && !slices.Contains(t.Langs, l) && (l != "en" || t.Langs[0] == "zh") {
			continue
		}
		counts[l]++
		sums[l] += f.score / float64(int(1)<<counts[l])
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

// familyKey names a document's family within its collection. What a query asks
// for by a filter tells members apart.
func familyKey(f *found, q *query.Parsed) string {
	k := f.kin
	key := string(f.session.col.ID) + "\x00" + k.family
	if !q.Filters.Lang.Empty() {
		key += "\x00" + k.lang
	}
	if !q.Filters.Version.Empty() {
		key += "\x00" + k.version
	}
	return key
}

// gather leaves one document of each family, in the place of its best member.
func gather(docs []*found, reader string) []*found {
	type group struct{ members []*found }
	groups := map[string][]*group{}
	var order []*group
	for _, f := range docs {
		k := f.kin
		key := k.key
		var mine *group
		for _, g := range groups[key] {
			if related(k, g.members[0].kin) {
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
	out := make([]*found, 0, len(order))
	for _, g := range order {
		out = append(out, standIn(g.members, reader))
	}
	return out
}

// related reports whether two documents of a family are one page: in two
// languages, or with the same title but for the version.
func related(a, b *kin) bool {
	return a.lang != b.lang || parse.SameButVersion(a.title, a.version, b.title, b.version)
}

// standIn chooses which of a family's members, best first, is shown, gives it
// the best one's score, and tells it of the others.
func standIn(members []*found, reader string) *found {
	best := members[0]
	if len(members) == 1 {
		return best
	}
	if reader == "" {
		reader = language.Base(best.kin.lang)
	}
	foreign := func(k *kin) int {
		switch language.Base(k.lang) {
		case reader:
			return 0
		case "":
			return 1
		}
		return 2
	}
	top := best.score
	shown := best
	for _, f := range members[1:] {
		if f.score < standInShare*top {
			break
		}
		a, b := f.kin, shown.kin
		if x, y := foreign(a), foreign(b); x < y || x == y && (foreign(a) == 0 || a.lang == b.lang) && parse.Newer(a.version, b.version) {
			shown = f
		}
	}
	for _, f := range members {
		if f != shown {
			shown.takeIn(f, f.kin.path)
		}
	}
	shown.rescore("the best of its versions and translations", top)
	return shown
}

// takeIn notes that a hit stands for another document.
func (f *found) takeIn(other *found, name string) {
	f.alsoCount += 1 + other.alsoCount
	if m := other.session.col.Mount; m != "" {
		name = m + "/" + name
	}
	f.also = append(append(f.also, name), other.also...)
	f.also = f.also[:min(len(f.also), maxAlso)]
}

// Copies are told by their words.
const (
	// copyShare is the part of all words of two texts that both have, for them
	// to count as one.
	copyShare = 0.9
	// copyWords is the fewest different words of a text that may be a copy of
	// another in its collection: of shorter ones, each costs next to nothing to
	// show. The same file in two collections is one page, however short.
	copyWords = 12
	// copyScore and copyLines are how near scores and lengths of copies are: what
	// is farther apart is not compared.
	copyScore = 0.9
	copyLines = 0.9
	// copyBytes is how much of a text is compared.
	copyBytes = 64 << 10
)

// collapse leaves of copies among the first documents, best first, the first or
// the one of the newest version, and of the same file in several collections that
// of the one which the query names first; in another
// order than that of relevance, of the latter alone. Those that are read are as many
// as make up an answer of limit hits.
func (x *Index) collapse(ctx context.Context, q *query.Parsed, all []*found, limit int) ([]*found, error) {
	if len(all) < 2 {
		return all, nil
	}
	if err := x.loadDocs(ctx, all[:min(len(all), limit)]); err != nil {
		return nil, err
	}
	words := map[*found][]uint32{}
	kept := make([]*found, 0, limit)
	for i, f := range all {
		if len(kept) == limit {
			return append(kept, all[i:]...), nil
		}
		if err := f.load(ctx); err != nil {
			return nil, x.failed(ctx, f.session, err)
		}
		at := -1
		for j, k := range kept {
			same, err := copies(ctx, k, f, words, q)
			if err != nil {
				return nil, x.failed(ctx, f.session, err)
			}
			if same {
				at = j
				break
			}
		}
		switch {
		case at < 0:
			kept = append(kept, f)
		case parse.Newer(f.doc.version, kept[at].doc.version) && kept[at].doc.lang == f.doc.lang,
			f.doc.blob == kept[at].doc.blob && f.session.order < kept[at].session.order:
			f.rescore("the best of its copies", kept[at].score)
			f.takeIn(kept[at], string(kept[at].doc.path))
			if q.Sort == query.ByRelevance {
				kept[at] = f
			} else { // each has its own place
				kept = append(slices.Delete(kept, at, at+1), f)
			}
		default:
			kept[at].takeIn(f, string(f.doc.path))
		}
	}
	return kept, nil
}

// copies reports whether two loaded documents say the same: what is cheap to tell
// first, whole texts last.
func copies(ctx context.Context, a, b *found, words map[*found][]uint32, q *query.Parsed) (bool, error) {
	x, y := &a.doc, &b.doc
	if !q.Filters.Version.Empty() && x.version != y.version || !q.Filters.Lang.Empty() && x.lang != y.lang {
		return false, nil
	}
	of := func(f *found) []uint32 {
		w, ok := words[f]
		if !ok {
			w = wordSet(f.best.text)
			words[f] = w
		}
		return w
	}
	if x.blob == y.blob && a.session != b.session {
		return true, nil
	}
	if q.Sort != query.ByRelevance {
		return false, nil // a list has every other page
	}
	if x.blob != y.blob {
		near := b.score >= copyScore*a.score || x.title == y.title
		if !near || float64(min(x.lines, y.lines)) < copyLines*float64(max(x.lines, y.lines)) {
			return false, nil
		}
	}
	if len(of(a)) < copyWords || x.blob != y.blob && overlap(of(a), of(b)) < copyShare {
		return false, nil
	}
	if x.blob == y.blob {
		return true, nil
	}
	var texts [2][]uint32
	for i, f := range []*found{a, b} {
		text, err := f.wholeText(ctx)
		if err != nil {
			return false, err
		}
		texts[i] = wordSet(text[:min(len(text), copyBytes)])
	}
	return overlap(texts[0], texts[1]) >= copyShare, nil
}

// wordSet returns hashes of a text's words, which blanks part, in order and each
// once.
func wordSet(text string) []uint32 {
	set := make([]uint32, 0, len(text)/6)
	for w := range strings.FieldsSeq(text) {
		set = append(set, parse.TermHash(w))
	}
	slices.Sort(set)
	return slices.Compact(set)
}

// overlap is the Jaccard index of two sets.
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
